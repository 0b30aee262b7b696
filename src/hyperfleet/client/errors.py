"""Every error the client raises, drawn as a tree.

    FleetError
    ├── BadConnection         the connection options are invalid or unsafe; nothing was sent
    ├── ConnectionFailed      the server cannot be reached, or the connection was lost
    ├── UnexpectedAnswer      the answer is not from a HyperFleet server, or from a much newer one
    ├── Ambiguous             several resources have the name
    └── ApiError              the server refused, with a problem document
        ├── Invalid           400, 405, 413, 414, 415, 422, 428  the request is wrong: `errors` lists every problem
        ├── Unauthenticated   401  the token is missing or not accepted
        ├── Forbidden         403  the token does not allow it
        ├── NotFound          404
        ├── Conflict          409  it has changed, its name is taken, it is being deleted …: see `code`
        ├── WaitFailed        409  the awaited state cannot be reached: a `fail_on` condition holds
        ├── Gone              410  the resource was removed during the wait
        ├── Forgotten         410  the requested history is no longer kept
        ├── PreconditionFailed  412
        ├── RateLimited       429
        ├── Unavailable       5xx  the server cannot do it now
        └── WaitTimeout       504  the awaited state was not reached in time

`str()` is for people: everything that is wrong, where, and what may help. No error ever contains a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec
from msgspec import Struct, field

from hyperfleet.errors import HyperFleetError

PROBLEM: Final = "application/problem+json"
_SHOWN: Final = 200  # characters of an unknown response that are quoted


class ErrorDetail(Struct, frozen=True, rename="camel"):
    """One error and where it is: in the body, a parameter, a header or a policy."""

    code: str = ""
    message: str = ""
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Format as `place: message`."""
        place = self.pointer or self.parameter or self.header or ""
        if self.line:
            place = f"{self.line}:{self.column or 1}"
        return f"{place}: {self.message}" if place else self.message


class ProblemDocument(Struct, frozen=True, rename="camel"):
    """The server's description of an error (RFC 9457)."""

    title: str = ""
    detail: str = ""
    status: int = 0
    code: str = ""
    type: str = ""
    instance: str = ""
    request_id: str = ""
    errors: tuple[ErrorDetail, ...] = field(default_factory=tuple)


class FleetError(HyperFleetError):
    """The root of the tree; `except FleetError` catches every error the client raises on purpose."""

    code: ClassVar[str] = "ClientError"
    attempts: int = 1  # how often the request was sent


class BadConnection(FleetError):  # noqa: N818  # the names describe states
    """The connection options are invalid or unsafe; nothing was sent."""

    code: ClassVar[str] = "BadConnection"


class ConnectionFailed(FleetError):  # noqa: N818
    """The server cannot be reached, or the connection was lost.

    `is_sent`: the server may have received the request. `is_lasting`: retrying does not help, so there is no retry.
    """

    code: ClassVar[str] = "ConnectionFailed"

    def __init__(self, message: str, *, is_sent: bool = False, is_lasting: bool = False) -> None:
        """Describe what happened, and whether the server may have processed the request."""
        self.is_sent = is_sent
        self.is_lasting = is_lasting
        super().__init__(message)


class UnexpectedAnswer(FleetError):  # noqa: N818
    """The answer is not one of a HyperFleet API."""

    code: ClassVar[str] = "UnexpectedAnswer"


class Ambiguous(FleetError):  # noqa: N818
    """Several resources have the name; `candidates` are their ids."""

    code: ClassVar[str] = "Ambiguous"

    def __init__(self, message: str, candidates: tuple[str, ...]) -> None:
        """Keep the ids of the candidates."""
        self.candidates = candidates
        super().__init__(message)


class ApiError(FleetError):
    """The server refused. `problem` is its document, `code` its stable error code such as `NameTaken`."""

    code: ClassVar[str] = "ApiError"
    hint: ClassVar[str] = ""  # advice that the document does not contain

    def __init__(self, problem: ProblemDocument, *, retry_after: float | None = None) -> None:
        """Carry the document."""
        self.problem = problem
        self.retry_after = retry_after
        self.__dict__["code"] = problem.code or self.code  # the instance's code hides the class's
        super().__init__(format_problem(problem, self.hint))

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return self.problem.status

    @property
    def request_id(self) -> str:
        """Return the id of the request in the server's log."""
        return self.problem.request_id

    @property
    def errors(self) -> tuple[ErrorDetail, ...]:
        """Return every single error."""
        return self.problem.errors


class Invalid(ApiError):  # noqa: N818
    """The request is wrong; `errors` lists every problem."""


class Unauthenticated(ApiError):  # noqa: N818
    """The token is missing or not accepted."""

    hint = "pass a token: `token=…`, or HYPERFLEET_TOKEN"


class Forbidden(ApiError):  # noqa: N818
    """The token does not allow it."""


class NotFound(ApiError):  # noqa: N818
    """The resource does not exist."""


class Conflict(ApiError):  # noqa: N818
    """The resource is not in the state that this needs."""


class PreconditionFailed(ApiError):  # noqa: N818
    """The resource is not at the version given."""


class Gone(ApiError):  # noqa: N818
    """The resource was removed, and the wait was not for that."""


class Forgotten(ApiError):  # noqa: N818
    """The requested history is no longer kept."""


class RateLimited(ApiError):  # noqa: N818
    """Too many requests; `retry_after` is the number of seconds to wait."""


class Unavailable(ApiError):  # noqa: N818
    """The server cannot do it now."""


class WaitFailed(ApiError):  # noqa: N818
    """The wait failed: one of its `fail_on` conditions holds."""


class WaitTimeout(ApiError):  # noqa: N818
    """The awaited state was not reached in time; `errors` says what is missing and why."""


_BY_CODE: Final[Mapping[str, type[ApiError]]] = {
    "WaitFailed": WaitFailed,
    "WaitTimeout": WaitTimeout,
    "Gone": Gone,
    "Forgotten": Forgotten,
}
_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    429: RateLimited,
    **dict.fromkeys((400, 405, 413, 414, 415, 422, 428), Invalid),
}


def error_of(problem: ProblemDocument, retry_after: float | None = None) -> ApiError:
    """Return the error for a problem document: by its code, or by its status if the client does not know the code."""
    fallback = Unavailable if problem.status >= 500 else ApiError
    kind = _BY_CODE.get(problem.code) or _BY_STATUS.get(problem.status, fallback)
    return kind(problem, retry_after=retry_after)


def read_problem(body: bytes, status: int, request_id: str = "") -> ProblemDocument | None:
    """Read a problem document; None if the body is not one."""
    try:
        problem = msgspec.json.decode(body, type=ProblemDocument)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not problem.code:
        return None
    return msgspec.structs.replace(
        problem, status=problem.status or status, request_id=problem.request_id or request_id
    )


def make_problem(status: int, body: bytes, request_id: str = "") -> ProblemDocument:
    """Make a problem document for a response without one, which a proxy may have sent."""
    text = " ".join(body[: 4 * _SHOWN].decode("utf-8", "replace").split())[:_SHOWN]
    detail = f"HTTP {status} without a problem document; a proxy may have answered"
    return ProblemDocument(
        title="", detail=f"{detail}: {text}" if text else detail, status=status, request_id=request_id
    )


def format_problem(problem: ProblemDocument, hint: str = "") -> str:
    """Format a problem for people: one sentence, then a line per error."""
    title, detail = problem.title, problem.detail
    summary = f"{title}: {detail}" if title and detail and title.lower() != detail.lower() else detail or title
    if problem.code:
        summary += f" ({problem.code})"
    lines = [summary, *(f"  {error}" for error in problem.errors if error.message not in detail)]
    if hint:
        lines.append(f"  {hint}")
    if problem.request_id and problem.status >= 500:
        lines.append(f"  the server's log has it under {problem.request_id}")
    return "\n".join(lines)
