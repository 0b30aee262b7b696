"""The fast path of the compat API: reads of one resource and plain reports, without the router.

As in `api.read_fast_path` and `api.report_fast_path`, anything unusual about a request goes to the router.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.aggregation import read_plain
from hyperfleet.api.boundary import id_of
from hyperfleet.api.callers import caller_or_none
from hyperfleet.api.compat.bodies import AHEAD, BEHIND, MAX_GENERATION
from hyperfleet.api.compat.metadata import read_metadata
from hyperfleet.api.compat.resource_collections import HEADERS, PREFIX
from hyperfleet.api.compat.shapes import shape_report, shape_resource
from hyperfleet.api.compat.statuses import DISCARDED, stored_of
from hyperfleet.api.context import Context
from hyperfleet.api.json_bodies import MAX_TEXT, is_small, is_suspicious
from hyperfleet.api.outgoing import PIECE
from hyperfleet.api.report_fast_path import Upload, length_of
from hyperfleet.api.request_metrics import note_template
from hyperfleet.api.requests import ID
from hyperfleet.api.shared_timeout import SharedTimeout
from hyperfleet.api.wire import BASE
from hyperfleet.model.kind import Kind
from hyperfleet.model.report import Report
from hyperfleet.services.callers import Caller
from hyperfleet.services.reports import REPORT_PREFIX, AcceptReports, Submission
from hyperfleet.services.results import Refusal, Reported, Target

_CAMEL_CASE: Final = b'"observedGeneration"'  # the compat API has only snake_case
_JSON_HEADERS: Final = (
    (b"content-type", b"application/json"),
    *[(name.lower().encode(), value.encode()) for name, value in HEADERS.items()],
)
_encode: Final = msgspec.json.Encoder().encode


class _Route(Struct, frozen=True):
    """The path of the resources of a kind, below a parent or not."""

    kind: Kind
    pattern: re.Pattern[str]  # groups: parent, id, and `/statuses` if the path ends so
    template: str


class _Answer(Struct, frozen=True):
    """A response."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


class CompatFastPath:
    """ASGI middleware that answers plain reads of one resource and plain reports."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        """Answer plain requests; `app` answers the rest."""
        self._app = app
        self._context = context
        self._timeout = SharedTimeout(context.limits.time.total_seconds())
        self._routes = list(_routes(context))

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a plain request; pass everything else on."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX) or scope["query_string"]:
            return self._app(scope, receive, send)
        return self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        upload = Upload(receive, length_of(scope) if scope["method"] == "PUT" else 0)
        answer = await self._answer(scope, upload)
        if answer is None or (scope["method"] == "GET" and len(answer.body) > PIECE):
            await self._app(scope, upload.replay, send)
            return
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [*answer.headers, length, (b"x-request-id", id_of(scope))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, upload: Upload) -> _Answer | None:
        """Return the answer; None: the router must answer."""
        caller, method = caller_or_none(scope), scope["method"]
        found = self._find(scope["path"]) if caller is not None and method in ("GET", "PUT") else None
        if found is None or caller is None:
            return None
        route, target, is_statuses = found
        if method == "GET" and not is_statuses and caller.may("reader"):
            answer = await self._read(target, caller)
        elif method == "PUT" and is_statuses and caller.may("reporter"):
            answer = await self._accept(target, caller, upload)
        else:
            return None
        if answer is not None:
            note_template(scope, route.template + "/statuses" * is_statuses)
        return answer

    def _find(self, path: str) -> tuple[_Route, Target, bool] | None:
        for route in self._routes:
            match = route.pattern.fullmatch(path)
            if match is not None:
                parent, id_, statuses = match.groups()
                return route, Target(route.kind, id_, parent or None), bool(statuses)
        return None

    async def _read(self, target: Target, caller: Caller) -> _Answer | None:
        store, kind = self._context.store, target.kind.name
        try:
            with self._timeout:
                record = await store.read_record(kind, target.id, caller.scope, target.parent_id)
        except Exception:  # noqa: BLE001  # the router meets the same error and reports it
            return None
        if record is None:
            return None
        return _Answer(200, _encode(shape_resource(record, self._context.kinds)), _JSON_HEADERS)

    async def _accept(self, target: Target, caller: Caller, upload: Upload) -> _Answer | None:
        context = self._context
        if not 0 < upload.length <= context.limits.body_bytes:
            return None
        try:
            with self._timeout:
                raw = await upload.read()
                report = self._report_of(raw, upload.length)
                if report is None:
                    return None
                submission = Submission(report, context.new_id(REPORT_PREFIX), generation_key="observed_generation")
                command = AcceptReports(target, (submission,), caller, answer="report")
                return _write_answer(await context.committer.submit(command), report.adapter)
        except Exception:  # noqa: BLE001  # the router meets the same error and reports it
            return None

    def _report_of(self, raw: bytes, length: int) -> Report | None:
        """Read a plain report; None: the router must read it."""
        context = self._context
        limits = context.limits
        if len(raw) != length or len(raw) > MAX_TEXT or _CAMEL_CASE in raw:
            return None
        if not is_small(raw, limits.values) or is_suspicious(raw, limits.depth):
            return None
        report = read_plain(raw) if context.redactor.is_harmless(raw) else None
        if report is None or not _is_in_range(report, context.clock.now()):
            return None
        metadata, errors = read_metadata(report.metadata)
        return None if errors else replace(report, metadata=metadata)


def _routes(context: Context) -> Iterator[_Route]:
    for kind in context.kinds:
        above = context.kinds.get(kind.parent) if kind.parent else None
        yield _route(kind, f"/{kind.plural}", "()")
        if above is not None:
            yield _route(kind, f"/{above.plural}/{{parent_id}}/{kind.plural}", "")


def _route(kind: Kind, path: str, no_parent: str) -> _Route:
    below = re.escape(PREFIX + BASE) + path.replace("{parent_id}", f"({ID.pattern})") + no_parent
    return _Route(kind, re.compile(rf"{below}/({ID.pattern})(/statuses)?"), f"{PREFIX}{BASE}{path}/{{id}}")


def _is_in_range(report: Report, now: datetime) -> bool:
    observed = report.observed_time
    in_time = observed is None or now - BEHIND <= observed <= now + AHEAD
    return in_time and report.observed_generation <= MAX_GENERATION


def _write_answer(result: Reported | Refusal, adapter: str) -> _Answer | None:
    cause = result.code if isinstance(result, Refusal) else result.results[0].cause
    if cause:
        is_discard = cause == "GenerationAhead" or isinstance(result, Reported)
        return _Answer(204, headers=((DISCARDED.lower().encode(), cause.encode()),)) if is_discard else None
    if isinstance(result, Refusal):
        return None
    return _Answer(201, _encode(shape_report(stored_of(result, adapter))), _JSON_HEADERS)
