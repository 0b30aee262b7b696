"""The port for API calls, and how a call of a file becomes a request.

Params, preconditions and post actions call through `ApiCaller`. `api_http` implements it for real, `api_recorded` with
the answers of a file. An answer that is not a success is a value: each caller decides what it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from hyperfleet.adapter.config import ApiCall, Backoff, Method
from hyperfleet.adapter.faults import SourceFault
from hyperfleet.adapter.templates import TextTemplate

MAX_ANSWER: Final = 4 * 1024 * 1024  # bytes; a page of a hundred clusters has a tenth of it
_BODY_METHODS: Final = frozenset(("POST", "PUT", "PATCH"))
_NO_SUCH_ROUTE: Final = "HYPERFLEET-NTF-000"  # a 404 with this code is a wrong path, not a resource that is gone
_SHOWN_BODY: Final = 300  # characters of an answer in a message
_FAILURES: Final = range(400, 600)


class ApiRequest(Struct, frozen=True, kw_only=True):
    """A call without templates. The URL is as the file says it: the caller resolves it."""

    method: Method
    url: str
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timeout: timedelta | None = None
    attempts: int = 0
    backoff: Backoff | None = None


class ApiAnswer(Struct, frozen=True, kw_only=True):
    """What came of a call. Without an answer `status` is 0 and `error` tells why."""

    method: str
    url: str  # without its query, which may hold a secret
    status: int = 0
    body: bytes = b""
    error: str = ""
    attempts: int = 1
    seconds: float = 0.0
    retry_after: float | None = None  # seconds that the server asks to wait

    @property
    def is_success(self) -> bool:
        """Tell whether the call was accepted."""
        return 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Tell whether the resource does not exist; a path that does not exist is a mistake instead."""
        return self.status == 404 and self.problem.get("code") != _NO_SUCH_ROUTE

    @property
    def problem(self) -> Mapping[str, Any]:
        """Return the problem document (RFC 9457) of an answer; empty if it has none."""
        if self.status not in _FAILURES:
            return {}
        try:
            value = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def describe(self) -> str:
        """Say for people why a call is no success."""
        tries = f" after {self.attempts} attempts" if self.attempts > 1 else ""
        head = f"{self.method} {self.url}"
        if not self.status:
            return f"{head} failed{tries}: {self.error}"
        problem = self.problem
        detail = problem.get("detail") or problem.get("title") or self.body[:_SHOWN_BODY].decode("utf-8", "replace")
        return f"{head} answered {self.status}{tries}" + (f": {str(detail)[:_SHOWN_BODY].strip()}" if detail else "")


class JsonObject(NamedTuple):
    """The JSON object of an answer, or why there is none."""

    value: dict[str, Any]
    fault: str = ""


class ApiCaller(Protocol):
    """Sends requests. Never raises for what a server does; every call ends within a bounded time."""

    async def call(self, request: ApiRequest) -> ApiAnswer:
        """Send a request, with its retries, and return the last answer."""
        ...


class PreparedCall(NamedTuple):
    """A request, or the fault of the template that has no value."""

    request: ApiRequest | None
    fault: SourceFault | None = None


class _TemplateSignal(Exception):  # noqa: N818 - internal: `prepare` returns the fault
    def __init__(self, fault: SourceFault) -> None:
        self.fault = fault
        super().__init__(fault.message)


def prepare(call: ApiCall, variables: Mapping[str, Any], now: datetime) -> PreparedCall:
    """Render the templates of a call."""

    def render(template: TextTemplate) -> str:
        text, fault = template.render(variables, now)
        if fault:
            raise _TemplateSignal(fault)
        return text

    try:
        has_body = call.body is not None and call.method in _BODY_METHODS
        return PreparedCall(
            ApiRequest(
                method=call.method,
                url=render(call.url),
                body=render(call.body) if has_body and call.body is not None else None,
                headers=tuple((name, render(value)) for name, value in call.headers),
                timeout=call.timeout,
                attempts=call.attempts,
                backoff=call.backoff,
            )
        )
    except _TemplateSignal as signal:
        return PreparedCall(None, signal.fault)


def read_object(answer: ApiAnswer) -> JsonObject:
    """Return the JSON object of a successful answer; lists and scalars are faults."""
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return JsonObject({}, f"{answer.method} {answer.url} answered with something that is not JSON: {error}")
    if not isinstance(value, dict):
        return JsonObject({}, f"{answer.method} {answer.url} answered with JSON that is not an object")
    return JsonObject(value)
