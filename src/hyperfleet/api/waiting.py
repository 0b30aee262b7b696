"""Waits until a resource is in a wanted state: one request, answered when it is, when it cannot be, or at a timeout.

Every version is checked, also one that was replaced before anybody could read it. `services.wait_query` reads what to
wait for, `services.wait_check` decides whether a version meets it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from msgspec import UNSET, Raw, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.boundary import lift_time_limit
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import FaultBody, Problem, Refused, from_error, from_query, from_refusal
from hyperfleet.api.requests import parameters_of, target_of
from hyperfleet.api.responses import answer_written, prefers
from hyperfleet.api.shapes import WaitAnswer
from hyperfleet.api.streams import EVENT_STREAM, HEARTBEAT, QUIET, EventStream, Frames, frame, run_while_connected
from hyperfleet.api.wire import path_of
from hyperfleet.documents.durations import format_duration
from hyperfleet.errors import HistoryPruned, Overloaded
from hyperfleet.model.kind import Kind
from hyperfleet.ports import Scope
from hyperfleet.services.results import Target, not_found
from hyperfleet.services.tail import LogSegment, LogTail
from hyperfleet.services.wait_check import UnmetCondition, WaitCheck, check_version
from hyperfleet.services.wait_query import FAIL_ON, FOR, WaitQuery, read_wait_query
from hyperfleet.services.watch_filter import WatchFilter


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    return [
        Route(f"{path_of(kind, context.kinds)}/{{id}}:wait", _Waits(context, kind).wait, methods=["GET"])
        for kind in context.kinds
    ]


class _Waits(Struct, frozen=True):
    """The handler of one kind."""

    context: Context
    kind: Kind

    async def wait(self, request: Request) -> Response:
        """Answer when a resource is in the wanted state; or stream every version, if the caller prefers events."""
        target, scope, tail = target_of(request, self.kind), caller_of(request).scope, self.context.tail
        waiting = read_wait_query(parameters_of(request))
        if waiting.errors:
            raise Refused(from_query(waiting.errors))
        start = await self.context.store.position()
        first = await self._read(target, scope)
        wait = _Wait(tail, waiting, WatchFilter(self.kind.name, scope, target.parent_id, target.id), start, first)
        if prefers(request, EVENT_STREAM):
            return EventStream(tail, wait.stream())
        with tail.admit(caller_of(request).name):
            lift_time_limit(request.scope)
            answer = await run_while_connected(request.receive, wait.answer())
        return answer_written(request, 200, msgspec.json.encode(answer))

    async def _read(self, target: Target, scope: Scope) -> _Version:
        """Return the resource as it is, or that it was removed."""
        store = self.context.store
        answer = await store.read_answer(self.kind.name, target.id, scope, target.parent_id)
        if answer is not None:
            return _Version(answer.body, answer.revision)
        if await store.existed(self.kind.name, target.id, scope, target.parent_id):
            return _Version(None, 0)
        raise Refused(from_refusal(not_found(target)))


class _Version(Struct, frozen=True):
    """A resource as answered from one position on; without an answer, it was removed."""

    answer: bytes | None
    revision: int


class _Step(Struct, frozen=True):
    """One version and what it means for the wait."""

    version: _Version
    finding: WaitCheck

    @property
    def is_last(self) -> bool:
        """Return whether the wait has ended."""
        return self.finding.failure is not None or not self.finding.missing or self.version.answer is None


class _Wait(Struct, frozen=True):
    """A wait that starts with the version `first`, at the position `start`."""

    tail: LogTail
    waiting: WaitQuery
    interest: WatchFilter
    start: int
    first: _Version

    async def answer(self) -> WaitAnswer:
        """Wait; raise `Refused` if the wait fails."""
        last = None
        async for step in self._steps():
            last = step or last
        return _conclude(last, self.waiting)

    async def stream(self) -> Frames:
        """Wait, and write every version, then the result: an answer or a problem document."""
        last = None
        try:
            async for step in self._steps():
                last = step or last
                if step is None:
                    yield HEARTBEAT
                elif step.version.answer is not None:
                    yield frame("version", step.version.answer, step.version.revision)
            yield frame("result", msgspec.json.encode(_conclude(last, self.waiting)))
        except Refused as refused:
            yield _write_failure(refused.problem)
        except (Overloaded, HistoryPruned) as error:
            yield _write_failure(from_error(error))

    async def _steps(self) -> AsyncIterator[_Step | None]:
        """Yield a step for each version until the wait ends or times out; None: nothing happened for a while."""
        time = asyncio.get_running_loop().time
        limit = time() + self.waiting.timeout.total_seconds()
        cursor, last_sent, step = self.start, time(), self._step(self.first)
        yield step
        while not step.is_last and time() < limit:
            segment = await self.tail.read(cursor, min(last_sent + QUIET, limit) - time())
            if self.tail.is_closing:
                raise Overloaded("the server is stopping")
            for version in self._versions(segment):
                if not step.is_last:
                    last_sent, step = time(), self._step(version)
                    yield step
            cursor = segment.upto if segment else cursor
            if time() >= last_sent + QUIET:
                last_sent = time()
                yield None

    def _step(self, version: _Version) -> _Step:
        return _Step(version, check_version(self.waiting, version.answer))

    def _versions(self, segment: LogSegment | None) -> list[_Version]:
        """Return the versions of the resource in a part of the log that are newer than the first one."""
        entries = segment.entries if segment else ()
        later = [each for each in entries if each.position > self.first.revision and self.interest.classify(each)]
        return [_Version(entry.answer, entry.position) for entry in later]


def _conclude(last: _Step | None, waiting: WaitQuery) -> WaitAnswer:
    """Return the answer of a wait, or raise the problem."""
    assert last is not None  # noqa: S101  # there is always a first version
    finding, answer = last.finding, last.version.answer
    if finding.is_met:
        return WaitAnswer(
            "met", UNSET if answer is None else last.version.revision, UNSET if answer is None else Raw(answer)
        )
    if finding.failure is not None:
        raise Refused(_problem("WaitFailed", FAIL_ON, (finding.failure,)))
    if answer is None:
        raise Refused(_problem("Gone", FOR, finding.missing))
    problem = _problem("WaitTimeout", FOR, finding.missing)
    raise Refused(Problem(problem.code, f"after {format_duration(waiting.timeout)}: {problem.detail}", problem.errors))


def _write_failure(problem: Problem) -> bytes:
    return frame("failed", msgspec.json.encode(problem.document()))


def _problem(code: str, parameter: str, shortfalls: tuple[UnmetCondition, ...]) -> Problem:
    texts = [f"{each.condition.text}: {each.why}" for each in shortfalls]
    is_failure = parameter == FAIL_ON
    faults = [FaultBody("Met" if is_failure else "NotMet", message, parameter=parameter) for message in texts]
    return Problem(code, "; ".join(texts), tuple(faults))
