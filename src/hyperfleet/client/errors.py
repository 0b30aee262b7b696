"""Every error the client raises, drawn as a tree.

    FleetError
    ├── BadConnection         what was given to connect with makes no sense or is not safe; nothing was sent
    ├── ConnectionFailed      the server cannot be reached, or the connection was lost on the way
    ├── UnexpectedAnswer      what answered is not a HyperFleet server, or much newer than this client
    ├── Ambiguous             a name is that of several resources
    └── ApiError              the server said no, in a problem document
        ├── Invalid           400, 405, 413, 414, 415, 422, 428  the request is wrong: `errors` says everything that is
        ├── Unauthenticated   401  the token is missing or not accepted
        ├── Forbidden         403  the token does not allow it
        ├── NotFound          404
        ├── Conflict          409  it has changed, its name is taken, it is being deleted …: see `code`
        ├── WaitFailed        409  what was waited for will not be
        ├── Gone              410  what was waited for was removed
        ├── Forgotten         410  the past that was asked for is no longer kept
        ├── PreconditionFailed  412
        ├── RateLimited       429
        ├── Unavailable       5xx  the server cannot do it now
        └── WaitTimeout       504  what was waited for did not come in time

`str()` is for people: what is wrong, all of it, where, and what may help. No error ever contains a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec
from msgspec import Struct, field

from hyperfleet.errors import HyperFleetError

PROBLEM: Final = "application/problem+json"
_SHOWN: Final = 200  # characters of an answer that nobody understands


class Fault(Struct, frozen=True, rename="camel"):
    """One thing that is wrong, and where: in the body, in a parameter, in a header, or in a policy."""

    code: str = ""
    message: str = ""
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Say where it is, then what."""
        place = self.pointer or self.parameter or self.header or ""
        if self.line:
            place = f"{self.line}:{self.column or 1}"
        return f"{place}: {self.message}" if place else self.message


class ProblemDocument(Struct, frozen=True, rename="camel"):
    """What the server says went wrong (RFC 9457)."""

    title: str = ""
    detail: str = ""
    status: int = 0
    code: str = ""
    type: str = ""
    instance: str = ""
    request_id: str = ""
    errors: tuple[Fault, ...] = field(default_factory=tuple)


class FleetError(HyperFleetError):
    """The root of the tree; `except FleetError` catches whatever the client raises on purpose."""

    code: ClassVar[str] = "ClientError"
    attempts: int = 1  # how often the request had been sent when this came of it


class BadConnection(FleetError):  # noqa: N818  # these name states, not mistakes
    """What was given to connect with makes no sense or is not safe; nothing was sent."""

    code: ClassVar[str] = "BadConnection"


class ConnectionFailed(FleetError):  # noqa: N818
    """The server cannot be reached, or the connection was lost.

    `is_sent`: it may have got the request. `is_lasting`: it will not do better by itself, so it is not tried again.
    """

    code: ClassVar[str] = "ConnectionFailed"

    def __init__(self, message: str, *, is_sent: bool = False, is_lasting: bool = False) -> None:
        """Say what happened, and whether the request may have been done."""
        self.is_sent = is_sent
        self.is_lasting = is_lasting
        super().__init__(message)


class UnexpectedAnswer(FleetError):  # noqa: N818
    """What answered does not speak our language."""

    code: ClassVar[str] = "UnexpectedAnswer"


class Ambiguous(FleetError):  # noqa: N818
    """A name is that of several resources; `candidates` are their ids."""

    code: ClassVar[str] = "Ambiguous"

    def __init__(self, message: str, candidates: tuple[str, ...]) -> None:
        """Say which ones."""
        self.candidates = candidates
        super().__init__(message)


class ApiError(FleetError):
    """The server said no. `problem` is its document, `code` the stable word in it for what is wrong: `NameTaken`."""

    code: ClassVar[str] = "ApiError"
    hint: ClassVar[str] = ""  # what a person can do beside what the document says

    def __init__(self, problem: ProblemDocument, *, retry_after: float | None = None) -> None:
        """Carry the document."""
        self.problem = problem
        self.retry_after = retry_after
        self.__dict__["code"] = problem.code or self.code  # it has a code of its own where others have their class's
        super().__init__(tell(problem, self.hint))

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return self.problem.status

    @property
    def request_id(self) -> str:
        """Return the id under which the server's log has the request."""
        return self.problem.request_id

    @property
    def errors(self) -> tuple[Fault, ...]:
        """Return everything that is wrong, one by one."""
        return self.problem.errors


class Invalid(ApiError):  # noqa: N818
    """The request is wrong; `errors` lists everything that is."""


class Unauthenticated(ApiError):  # noqa: N818
    """The token is missing or not accepted."""

    hint = "give a token: `token=…`, or HYPERFLEET_TOKEN"


class Forbidden(ApiError):  # noqa: N818
    """The token does not allow it."""


class NotFound(ApiError):  # noqa: N818
    """There is no such thing."""


class Conflict(ApiError):  # noqa: N818
    """The resource is not in the state that this needs."""


class PreconditionFailed(ApiError):  # noqa: N818
    """The resource is not the version that was named."""


class Gone(ApiError):  # noqa: N818
    """The resource was removed, and that was not what was waited for."""


class Forgotten(ApiError):  # noqa: N818
    """The past that was asked for is no longer kept."""


class RateLimited(ApiError):  # noqa: N818
    """Too many requests; `retry_after` says in how many seconds there is room again."""


class Unavailable(ApiError):  # noqa: N818
    """The server cannot do it now."""


class WaitFailed(ApiError):  # noqa: N818
    """What was waited for will not be: what the wait should fail on has happened."""


class WaitTimeout(ApiError):  # noqa: N818
    """What was waited for did not come in time; `errors` says what is missing and why."""


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
    """Return the error that a problem document stands for; a code that is newer than this client by its status."""
    fallback = Unavailable if problem.status >= 500 else ApiError
    kind = _BY_CODE.get(problem.code) or _BY_STATUS.get(problem.status, fallback)
    return kind(problem, retry_after=retry_after)


def read_problem(body: bytes, status: int, request_id: str = "") -> ProblemDocument | None:
    """Read a problem document; None if it is none."""
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
    """Make a problem document of an answer that has none: somebody between us and the server spoke."""
    said = " ".join(body[: 4 * _SHOWN].decode("utf-8", "replace").split())[:_SHOWN]
    detail = f"HTTP {status} without a problem document; something before the server may have answered"
    return ProblemDocument(
        title="", detail=f"{detail}: {said}" if said else detail, status=status, request_id=request_id
    )


def tell(problem: ProblemDocument, hint: str = "") -> str:
    """Write a problem for people: one sentence, then every single fault on a line."""
    title, detail = problem.title, problem.detail
    gist = f"{title}: {detail}" if title and detail and title.lower() != detail.lower() else detail or title
    if problem.code:
        gist += f" ({problem.code})"
    lines = [gist, *(f"  {fault}" for fault in problem.errors if fault.message not in detail)]
    if hint:
        lines.append(f"  {hint}")
    if problem.request_id and problem.status >= 500:
        lines.append(f"  the server's log has it under {problem.request_id}")
    return "\n".join(lines)
