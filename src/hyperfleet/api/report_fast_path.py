"""The fast path of reports, which are nearly all writes: plain reports are accepted without the router.

Anything unusual about a request (a bundle, a header that asks for something, a body with errors or notes) goes to the
router, where `statuses` does the same with all options. `python -m bench server` measures the gain.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Final

import msgspec
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.aggregation import read_plain
from hyperfleet.api.boundary import id_of, send_problem
from hyperfleet.api.callers import caller_or_none
from hyperfleet.api.context import Context
from hyperfleet.api.json_bodies import MAX_TEXT, is_small, is_suspicious
from hyperfleet.api.problems import Problem, from_code, from_error, from_refusal
from hyperfleet.api.report_bodies import generation_key_of
from hyperfleet.api.request_metrics import note_template
from hyperfleet.api.requests import ID
from hyperfleet.api.shared_timeout import SharedTimeout
from hyperfleet.api.wire import ALIASES, BASE, brief_report_answer, outcome_of, path_of
from hyperfleet.model.kind import Kind
from hyperfleet.model.report import ADAPTER_PATTERN, Report
from hyperfleet.services.callers import Caller
from hyperfleet.services.reports import REPORT_PREFIX, AcceptReports, Submission
from hyperfleet.services.results import Refusal, Reported, Target

# Headers that only the router handles, and all headers that are read here.
_UNUSUAL: Final = frozenset({b"prefer", b"content-encoding"})
_READ_HEADERS: Final = _UNUSUAL | {b"content-length", b"content-type"}
_MAX_PIECES: Final = 16  # of a body; one in more pieces is read elsewhere, which bounds their number
_MAX_DIGITS: Final = 10  # of a length: gigabytes, far above any limit
_JSON: Final = frozenset({b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8"})
_ReportPath = tuple[Target, str]  # which resource is reported on and, for PUT, by which adapter
_encode: Final = msgspec.json.Encoder().encode
_HEADERS: Final = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class ReportFastPath:
    """ASGI middleware that accepts plain reports: `POST …/statuses`, `PUT …/statuses/adapters/{name}`."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        """Accept plain reports; `app` answers the rest."""
        self._app = app
        self._context = context
        self._timeout = SharedTimeout(context.limits.time.total_seconds())
        self._patterns = [(kind, _pattern_of(kind, context)) for kind in context.kinds]
        self._templates = {
            (kind.name, is_put): f"{BASE}{path_of(kind, context.kinds)}/{{id}}/statuses{'/adapters/{adapter}' * is_put}"
            for kind in context.kinds
            for is_put in (False, True)
        }

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Accept a plain report; pass everything else on."""
        report_path = self._find(scope) if scope["type"] == "http" else None
        caller = caller_or_none(scope) if report_path is not None else None
        if report_path is None or caller is None or not caller.may("reporter"):
            return self._app(scope, receive, send)
        length = length_of(scope)
        if not 0 < length <= self._context.limits.body_bytes:
            return self._app(scope, receive, send)
        return self._serve(report_path, caller, Upload(receive, length), scope, send)

    async def _serve(self, report_path: _ReportPath, caller: Caller, upload: Upload, scope: Scope, send: Send) -> None:
        target, adapter = report_path
        note_template(scope, self._templates[target.kind.name, bool(adapter)])
        try:
            with self._timeout:
                raw = await upload.read()
                report = read_plain(raw, adapter) if self._is_plain(raw, upload) else None
                command = None if report is None else self._command(report, raw, target, caller)
                result = None if command is None else await self._context.committer.submit(command)
                answer = None if result is None else _write_answer(result)
        except TimeoutError:
            await send_problem(from_code("Timeout" if upload.is_read else "RequestTimeout"), scope, send)
        except Exception as error:  # noqa: BLE001  # outside the boundary: the caller must get an answer
            await send_problem(from_error(error), scope, send, error)
        else:
            if answer is None:
                await self._app(scope, upload.replay, send)
            elif isinstance(answer, Problem):
                await send_problem(answer, scope, send)
            else:
                await send(_start_of(answer, scope))
                await send({"type": "http.response.body", "body": answer})

    def _find(self, scope: Scope) -> _ReportPath | None:
        """Return the resource of a report and, for PUT, the adapter; None: not a report."""
        path, method = scope["path"], scope["method"]
        is_put = method == "PUT"
        if not (is_put or method == "POST") or scope["query_string"] or "/statuses" not in path:
            return None
        for kind, pattern in self._patterns:
            match = pattern.fullmatch(path)
            if match is not None:
                parent, id_, adapter = match.groups()
                return (Target(kind, id_, parent or None), adapter or "") if is_put == bool(adapter) else None
        return None

    def _is_plain(self, raw: bytes, upload: Upload) -> bool:
        limits = self._context.limits
        if len(raw) != upload.length or len(raw) > MAX_TEXT:
            return False
        is_usual = is_small(raw, limits.values) and not is_suspicious(raw, limits.depth)
        return is_usual and self._context.redactor.is_harmless(raw)

    def _command(self, report: Report, raw: bytes, target: Target, caller: Caller) -> AcceptReports:
        submission = Submission(report, self._context.new_id(REPORT_PREFIX), "", generation_key_of(raw))
        return AcceptReports(target, (submission,), caller, answer="outcome")


class Upload(Struct):
    """A request body of a few pieces that can be replayed for another reader."""

    receive: Receive
    length: int
    messages: list[Message] = []
    is_read: bool = False

    async def read(self) -> bytes:
        """Read up to the announced length; less, if the body ends early or comes in many pieces."""
        raw = b""
        while not self.is_read and len(self.messages) < _MAX_PIECES:
            message = await self.receive()
            self.messages.append(message)
            raw += message.get("body", b"")
            self.is_read = len(raw) >= self.length or not message.get("more_body", False)
        return raw

    async def replay(self) -> Message:
        """Receive the messages that were read again, then further ones."""
        return self.messages.pop(0) if self.messages else await self.receive()


def _pattern_of(kind: Kind, context: Context) -> re.Pattern[str]:
    """Return the pattern of the report paths of a kind; groups: parent, id, adapter."""
    bases = "|".join(re.escape(base) for base in (BASE, *ALIASES))
    path = path_of(kind, context.kinds, f"({ID.pattern})")
    parent = path if kind.parent else f"{path}()"
    adapter = f"(?:/adapters/({ADAPTER_PATTERN.pattern.replace('(', '(?:')}))?"
    return re.compile(rf"(?:{bases}){parent}/({ID.pattern})/statuses{adapter}")


def length_of(scope: Scope) -> int:
    """Return the content length; -1: there is none, no media type, or another header needs the router."""
    length, is_json = -1, False
    for name, value in scope["headers"]:
        if name not in _READ_HEADERS:
            continue
        if name == b"content-length":
            length = int(value) if value.isdigit() and len(value) < _MAX_DIGITS else -1
        elif name in _UNUSUAL or value not in _JSON:
            return -1
        else:
            is_json = True
    return length if is_json else -1


def _write_answer(result: Reported | Refusal) -> bytes | Problem:
    """Return the body of the answer, or the problem."""
    if isinstance(result, Refusal):
        return from_refusal(result)
    return _encode(brief_report_answer(result, (outcome_of(result.results[0], ()),)))


def _start_of(body: bytes, scope: Scope) -> Message:
    headers = [
        *_HEADERS,
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", id_of(scope)),
    ]
    return {"type": "http.response.start", "status": 200, "headers": headers}
