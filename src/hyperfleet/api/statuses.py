"""Accept reports of adapters, one by one or in batches, and read what they reported.

Every resource has the same sub-resources. Services decide whether a report counts; a discarded report is answered like
any other, and the answer says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem, read_plain
from hyperfleet.api.callers import caller_of, charge
from hyperfleet.api.context import Context, RequestLimits
from hyperfleet.api.json_bodies import (
    MAX_TEXT,
    count_values,
    is_small,
    is_suspicious,
    parse_json,
    require_values,
    work_on,
)
from hyperfleet.api.past import answer_past_reports
from hyperfleet.api.problems import Problem, Refused, from_body, from_error, from_query, from_refusal
from hyperfleet.api.report_bodies import (
    BatchItem,
    ReceivedReport,
    ReportsBody,
    generation_key_of,
    read_batch_item,
    read_report_of,
    read_reports,
    split_batch,
)
from hyperfleet.api.requests import (
    MERGE_PATCH,
    adapter_of,
    checked_target,
    read_body,
    target_of,
)
from hyperfleet.api.responses import answer_made, answer_written, preferred_return
from hyperfleet.api.wire import (
    BatchAnswer,
    BatchResultBody,
    adapter_status,
    brief_report_answer,
    href_of,
    outcome_of,
    path_of,
    report_answer,
    status_id_of,
    status_object,
)
from hyperfleet.model.kind import Kind
from hyperfleet.ports import Record
from hyperfleet.services.audit import note_refusal
from hyperfleet.services.callers import Caller
from hyperfleet.services.past import AT
from hyperfleet.services.reports import REPORT_PREFIX, AcceptReports, RetireAdapter, Submission
from hyperfleet.services.results import Refusal, Reported, Target, not_found
from hyperfleet.services.time_slices import TimeSlices

_MAX_ERRORS: Final = 5  # of one item of a batch; the detail has their number
_GENERATION: Final = re.compile(r"[1-9][0-9]{0,17}")


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    found = [Route("/statuses:batch", _Batches(context).take, methods=["POST"])]
    for kind in context.kinds:
        handlers = _Statuses(context, kind)
        path = path_of(kind, context.kinds) + "/{id}/statuses"
        found += [
            Route(path, handlers.read, methods=["GET"]),
            Route(path, handlers.post, methods=["POST"]),
            Route(path + "/{status_id}", handlers.read_by_id, methods=["GET"]),
            Route(path + "/{status_id}", handlers.patch, methods=["PATCH"]),
            Route(path + "/adapters/{adapter}", handlers.read_adapter, methods=["GET"]),
            Route(path + "/adapters/{adapter}", handlers.put_adapter, methods=["PUT"]),
            Route(path + "/adapters/{adapter}", handlers.retire_adapter, methods=["DELETE"]),
        ]
    return found


class _Statuses(Struct, frozen=True):
    """The handlers below the resources of one kind."""

    context: Context
    kind: Kind

    # read

    async def read(self, request: Request) -> Response:
        """Answer the last report of every adapter: of all, at one generation, or at a past time."""
        target = target_of(request, self.kind)
        if AT in request.query_params:
            return await answer_past_reports(request, self.context, target)
        return await self._answer(request, target, _generation_asked(request))

    async def read_by_id(self, request: Request) -> Response:
        """Answer the status object with that id."""
        target = target_of(request, self.kind)
        return await self._answer(request, target, _generation_named(request, target))

    async def read_adapter(self, request: Request) -> Response:
        """Answer the last report of one adapter."""
        target, adapter = target_of(request, self.kind), adapter_of(request)
        stored = (await self._find(request, target)).reports.get(adapter)
        if stored is None:
            raise Refused(Problem("NotFound", f"{adapter} has not reported on {target.id}"))
        return answer_made(request, adapter_status(stored))

    # report

    async def post(self, request: Request) -> Response:
        """Accept one report, or several of different adapters together."""
        target = target_of(request, self.kind)
        raw = await read_body(request, self.context.limits)
        return await self._accept(request, target, await work_on(raw, self._read, raw))

    async def patch(self, request: Request) -> Response:
        """Accept a report if a status object exists, as in the status guide."""
        target = target_of(request, self.kind)
        raw = await read_body(request, self.context.limits, MERGE_PATCH)
        body = await work_on(raw, self._read, raw)
        if body.errors:
            raise Refused(from_body(body.errors))
        _generation_named(request, target)
        await self._find(request, target)
        return await self._accept(request, target, body, first=200, is_brief=False)

    async def put_adapter(self, request: Request) -> Response:
        """Accept the report of the adapter that the path names."""
        target, adapter = target_of(request, self.kind), adapter_of(request)
        raw = await read_body(request, self.context.limits)
        return await self._accept(request, target, await work_on(raw, self._read_of, raw, adapter))

    async def retire_adapter(self, request: Request) -> Response:
        """Delete the report of an adapter that will not report again."""
        command = RetireAdapter(target_of(request, self.kind), adapter_of(request), caller_of(request))
        result = await self.context.committer.submit(command)
        if isinstance(result, Refusal):
            raise Refused(from_refusal(result))
        return Response(status_code=204)

    # steps

    def _read_of(self, raw: bytes, adapter: str) -> ReportsBody:
        return read_report_of(parse_json(raw, self.context.limits), adapter, self.context.redactor)

    def _read(self, raw: bytes) -> ReportsBody:
        """Read a body with reports; one plain report takes a shortcut."""
        limits, redactor = self.context.limits, self.context.redactor
        if not is_small(raw, limits.values) or len(raw) > MAX_TEXT or is_suspicious(raw, limits.depth):
            return read_reports(parse_json(raw, limits), limits.batch, redactor)
        plain = read_plain(raw) if redactor.is_harmless(raw) else None
        if plain is None:
            return read_reports(parse_json(raw, limits), limits.batch, redactor)
        return ReportsBody((ReceivedReport(plain, generation_key=generation_key_of(raw)),))

    async def _accept(
        self, request: Request, target: Target, body: ReportsBody, *, first: int = 201, is_brief: bool = True
    ) -> Response:
        """Accept reports; the status guide's routes answer the status object, the others the outcome."""
        if body.errors:
            raise Refused(from_body(body.errors))
        preferred = preferred_return(request)
        is_brief = preferred == "minimal" or (is_brief and not body.is_bundle and not preferred)
        submissions = tuple([_submission(sent, self.context) for sent in body.sent])
        command = AcceptReports(target, submissions, caller_of(request), answer="outcome" if is_brief else "record")
        result = await self.context.committer.submit(command)
        if isinstance(result, Refusal):
            raise Refused(from_refusal(result))
        status = first if body.is_bundle and result.is_first else 200
        headers = {"Location": self._href_of(target)} if status == 201 else {}
        if preferred:
            headers["Preference-Applied"] = f"return={preferred}"
        return answer_written(request, status, self._render(result, body, is_brief=is_brief), headers=headers)

    def _render(self, reported: Reported, body: ReportsBody, *, is_brief: bool) -> bytes:
        notes = {sent.report.adapter: sent.notes for sent in body.sent}
        outcomes = tuple([outcome_of(verdict, notes[verdict.adapter]) for verdict in reported.results])
        if is_brief:
            return msgspec.json.encode(brief_report_answer(reported, outcomes))
        return msgspec.json.encode(report_answer(reported, outcomes, self.context.kinds))

    def _href_of(self, target: Target) -> str:
        return f"{href_of(self.kind, target.id, target.parent_id, self.context.kinds)}/statuses"

    async def _answer(self, request: Request, target: Target, generation: int | None) -> Response:
        record = await self._find(request, target)
        reports = tuple(record.reports.values())
        if generation == record.resource.generation:  # retired adapters are not shown
            reports = tuple(each for each in reports if each.report.observed_generation == generation)
        elif generation is not None:
            scope = caller_of(request).scope
            reports = await self.context.store.read_reports_at(target.id, scope, generation)
        if not reports:
            raise Refused(Problem("NotFound", f"no adapter has reported on {target.id} at generation {generation}"))
        return answer_made(request, status_object(record.resource, reports, generation, self.context.kinds))

    async def _find(self, request: Request, target: Target) -> Record:
        """Return the resource if it has a report: without one there is no status object."""
        scope = caller_of(request).scope
        record = await self.context.store.read_record(self.kind.name, target.id, scope, target.parent_id)
        if record is None:
            raise Refused(from_refusal(not_found(target)))
        if not record.reports:
            raise Refused(Problem("NotFound", f"no adapter has reported on {target.id} yet"))
        return record


class _Batches(Struct, frozen=True):
    """The handler of reports on many resources."""

    context: Context

    async def take(self, request: Request) -> Response:
        """Accept many reports, each as if it had been sent alone."""
        limits = self.context.limits
        raw = await read_body(request, limits, most=limits.batch_bytes)
        items = await work_on(raw, split_batch, raw, limits)
        charge(request, len(items))
        results = await self._submit(request, await self._read(items))
        refused = sum(1 for result in results if result.problem is not UNSET)
        answer = BatchAnswer(tuple(results), len(results) - refused, refused)
        return answer_written(request, 200, msgspec.json.encode(answer))

    async def _read(self, items: Sequence[bytes]) -> list[BatchItem]:
        """Read the items of a batch, within its limit of values; other requests run in between."""
        limits, slices = self.context.limits, TimeSlices()
        found: list[BatchItem] = []
        values = 0
        for index, raw in enumerate(items):
            size = count_values(raw, limits.values)
            values += size
            require_values(values, limits.batch_values)
            at = f"/reports/{index}"
            is_allowed = size <= limits.values
            item = await work_on(raw, read_batch_item, raw, at, self.context) if is_allowed else _too_many(at, limits)
            found.append(item)
            await slices.yield_if_due()
        return found

    async def _submit(self, request: Request, entries: list[BatchItem]) -> list[BatchResultBody]:
        caller = caller_of(request)
        results: dict[int, BatchResultBody] = {}
        commands: dict[int, AcceptReports] = {}
        for index, entry in enumerate(entries):
            try:
                commands[index] = self._command(entry, caller)
            except Refused as refused:
                results[index] = _refused(index, refused.problem)
                note_refusal(entry.target, refused.problem.code)
        answers = await self.context.committer.submit_all(list(commands.values()))
        for index, answer in zip(commands, answers, strict=True):
            results[index] = _result(index, entries[index], answer)
        return [results[index] for index in range(len(entries))]

    def _command(self, entry: BatchItem, caller: Caller) -> AcceptReports:
        if entry.errors or entry.target is None or entry.sent is None:
            raise Refused(from_body(entry.errors))
        submission = _submission(entry.sent, self.context)
        return AcceptReports(checked_target(entry.target), (submission,), caller, answer="outcome")


def _too_many(at: str, limits: RequestLimits) -> BatchItem:
    message = f"the report has more than {limits.values} values, keys aside"
    return BatchItem(errors=(BodyProblem(at, "TooMany", message),))


def _submission(sent: ReceivedReport, context: Context) -> Submission:
    return Submission(sent.report, context.new_id(REPORT_PREFIX), sent.pointer, sent.generation_key)


def _result(index: int, entry: BatchItem, answer: Reported | Refusal | BaseException) -> BatchResultBody:
    """Write the result of one item of a batch."""
    if isinstance(answer, Refusal):
        return _refused(index, from_refusal(answer))
    if isinstance(answer, Reported):
        outcome = outcome_of(answer.results[0], entry.sent.notes if entry.sent else ())
        return BatchResultBody(index=index, status=200, **asdict(outcome), phase=answer.phase)
    if isinstance(answer, Exception):
        return _refused(index, from_error(answer))
    raise answer


def _refused(index: int, problem: Problem) -> BatchResultBody:
    """Write the problem of one item, with its first errors: others have problems too."""
    shown = replace(problem, errors=problem.errors[:_MAX_ERRORS])
    return BatchResultBody(index=index, status=problem.status, problem=shown.document())


def _generation_asked(request: Request) -> int | None:
    """Read the query parameters of the status object."""
    errors = [
        BodyProblem(name, "UnknownParameter", f"the only parameters here are generation and {AT}")
        for name in request.query_params
        if name != "generation"
    ]
    values = request.query_params.getlist("generation")
    if len(values) > 1 or (values and not _GENERATION.fullmatch(values[0])):
        errors.append(BodyProblem("generation", "BadFormat", "generation must be one integer from 1"))
    if errors:
        raise Refused(from_query(errors))
    return int(values[0]) if values else None


def _generation_named(request: Request, target: Target) -> int | None:
    """Return the generation in the id of a status object; the id must be this resource's."""
    given, own = str(request.path_params["status_id"]), status_id_of(target.id)
    if given == own:
        return None
    generation = given.removeprefix(f"{own}-gen")
    if generation == given or not _GENERATION.fullmatch(generation):
        raise Refused(Problem("NotFound", f"the status object of {target.id} is {own}"))
    return int(generation)
