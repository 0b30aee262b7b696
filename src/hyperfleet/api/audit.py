"""The audit log: for every write and every refused write, who sent it from where, and the result.

Wraps the whole application, if an audit log is configured, so it also sees the fast paths, `/compat` and callers who
are not authenticated. What was written is noted by `services.audit`. It never reads the body of a request. Rate-limited
requests are not recorded: they would be a way to fill the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.api.callers import CALLER
from hyperfleet.api.compat.description import describe
from hyperfleet.api.compat.resource_collections import PREFIX as COMPAT
from hyperfleet.api.context import Context
from hyperfleet.api.description.table import list_operations
from hyperfleet.api.exchanges import remote_of, request_id_in
from hyperfleet.api.problems import CATALOGUE
from hyperfleet.api.request_metrics import route_of
from hyperfleet.api.wire import path_of
from hyperfleet.services.audit import AUDITED_WRITES, AuditedReport, AuditedWrite, AuditTarget, Journal
from hyperfleet.services.callers import Caller

AuditOutcome = Literal["done", "refused", "failed", "unanswered"]

_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_MAX_TEXT: Final = 1_024  # characters of a path or an id: real ones are shorter, and a caller cannot bloat the log
_CLIENT_ERROR: Final = 400
_RATE_LIMITED: Final = 429
_SERVER_ERROR: Final = 500
_UNANSWERED: Final = 0  # the status of a request whose caller disconnected before the answer


class AuditedCaller(Struct, frozen=True, omit_defaults=True):
    """Who sent the request."""

    name: str
    roles: tuple[str, ...] = ()
    tenants: tuple[str, ...] | None = None  # None: all


class AuditRecord(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One line of the audit log: a request or, with an `event`, something without a request, such as a signal."""

    time: datetime
    outcome: AuditOutcome
    event: str = ""
    request_id: str = ""
    caller: AuditedCaller | UnsetType | None = UNSET  # None: not authenticated
    remote: str = ""
    method: str = ""
    route: str = ""
    path: str = ""
    status: int = 0
    code: str = ""
    target: AuditTarget | UnsetType = UNSET
    adapter: str = ""  # named in the path
    generation: int | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    reports: tuple[AuditedReport, ...] = ()
    dry_run: bool = False


class _Refusal(Struct):
    """The part of a problem document that is read, of either API."""

    code: str = ""


_encode: Final = msgspec.json.Encoder().encode
_decode_refusal: Final = msgspec.json.Decoder(_Refusal).decode


class Audit:
    """ASGI middleware that records writes."""

    def __init__(self, app: ASGIApp, context: Context, journal: Journal, *, has_reports: bool) -> None:
        """Record in `journal`; accepted reports only with `has_reports`, because nearly all writes are reports."""
        self._app = app
        self._clock = context.clock
        self._journal = journal
        self._has_reports = has_reports
        self._writes = frozenset(_list_writes(context))
        self._collections = {path_of(kind, context.kinds).rpartition("/")[2]: kind.name for kind in context.kinds}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; record a write before its answer is sent."""
        if scope["type"] != "http" or scope["method"] not in _WRITES:
            await self._app(scope, receive, send)
            return
        audited = _AuditedSend(self, scope, send)
        former = AUDITED_WRITES.set(audited.acts)
        try:
            await self._app(scope, receive, audited)
        finally:
            AUDITED_WRITES.reset(former)
            audited.record_unanswered()

    def record(self, audited: _AuditedSend, status: int, request_id: str, code: str) -> None:
        """Record the result of a request."""
        scope, time = audited.scope, self._clock.now()
        route = route_of(scope)
        if status == _RATE_LIMITED or not (audited.acts or (scope["method"], route) in self._writes):
            return
        acts = audited.acts or [AuditedWrite(self._target_of(scope["path"]), code)]
        acts = [replace(act, code=code) if act.is_open else act for act in acts]
        recorded = [act for act in acts if self._has_reports or act.code or not act.reports]
        lines = [_encode(_describe(scope, route, status, request_id, act, time)) for act in recorded]
        if lines:
            self._journal.write(lines)

    def _target_of(self, path: str) -> AuditTarget | UnsetType:
        """Return the resource that a path names, for a request that never became a command."""
        target: AuditTarget | UnsetType = UNSET
        parts = path.split("/")
        for index, part in enumerate(parts):
            if part in self._collections:
                parent = target.id if isinstance(target, AuditTarget) else None
                target = AuditTarget(self._collections[part], "".join(parts[index + 1 : index + 2])[:_MAX_TEXT], parent)
        return target


class _AuditedSend:
    """The `send` of a request: records the result, then sends the answer."""

    def __init__(self, audit: Audit, scope: Scope, send: Send) -> None:
        self._audit = audit
        self._send = send
        self._held: Message | None = None  # the start of an error response, until the code in its body is known
        self._is_recorded = False
        self.scope = scope
        self.acts: list[AuditedWrite] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if message["status"] >= _CLIENT_ERROR:
                self._held = message
                return
            self._record(message, "")
        elif self._held is not None:
            held, self._held = self._held, None
            self._record(held, _code_in(message.get("body", b"")))
            await self._send(held)
        await self._send(message)

    def record_unanswered(self) -> None:
        """Record a request whose caller disconnected before the answer."""
        if not self._is_recorded:
            self._audit.record(self, _UNANSWERED, "", "")

    def _record(self, start: Message, code: str) -> None:
        if not self._is_recorded:
            self._is_recorded = True
            self._audit.record(self, start["status"], request_id_in(start), code)


def describe_event(event: str, time: datetime, *, is_done: bool) -> bytes:
    """Describe something without a request: a signal."""
    return _encode(AuditRecord(time=time, outcome="done" if is_done else "refused", event=event))


def _describe(scope: Scope, route: str, status: int, request_id: str, act: AuditedWrite, time: datetime) -> AuditRecord:
    return AuditRecord(
        time=time,
        request_id=request_id,
        caller=_caller_of(scope),
        remote=remote_of(scope),
        method=scope["method"],
        route=route,
        path=scope["path"][:_MAX_TEXT],
        status=status,
        outcome=_outcome_of(status, act),
        code=act.code,
        target=act.target,
        adapter=scope["path"].partition("/adapters/")[2][:_MAX_TEXT],
        generation=act.generation,
        revision=act.revision,
        reports=act.reports,
        dry_run=act.is_dry_run,
    )


def _caller_of(scope: Scope) -> AuditedCaller | None:
    caller = scope.get(CALLER)
    if not isinstance(caller, Caller):
        return None
    tenants = caller.scope.tenants
    return AuditedCaller(caller.name, tuple(sorted(caller.roles)), None if tenants is None else tuple(sorted(tenants)))


def _outcome_of(status: int, act: AuditedWrite) -> AuditOutcome:
    if act.is_open or not (status or act.code):
        return "unanswered"
    if status >= _SERVER_ERROR or (act.code in CATALOGUE and CATALOGUE[act.code].status >= _SERVER_ERROR):
        return "failed"
    return "refused" if act.code or status >= _CLIENT_ERROR else "done"


def _code_in(body: bytes) -> str:
    try:
        return _decode_refusal(body).code
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _list_writes(context: Context) -> Iterator[tuple[str, str]]:
    """List the methods and paths that write; what a reader may do never writes."""
    for each in list_operations(context):
        if each.method.upper() in _WRITES and each.role != "reader":
            yield each.method.upper(), each.path
    for path, operations in describe(context)["paths"].items():
        yield from ((method.upper(), COMPAT + path) for method in operations if method.upper() in _WRITES)
