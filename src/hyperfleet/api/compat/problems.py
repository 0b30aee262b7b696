"""Problem documents of the compat API. The only module that maps our codes to those of the original.

Handlers raise `CompatRefused` for what only the compat API refuses; problems of shared code come as
`api.problems.Problem` and are translated. As everywhere, internal details are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from hyperfleet.api import problems
from hyperfleet.api.callers import OTHER_SCHEME
from hyperfleet.api.problems import FaultBody, Problem
from hyperfleet.api.request_metrics import note_problem
from hyperfleet.services.callers import EXPIRED
from hyperfleet.services.tracing import CURRENT_SPAN

PREFIX: Final = "HYPERFLEET-"
TYPES: Final = "https://api.hyperfleet.io/errors/"  # an identifier, not a URL: clients compare it


class CompatProblemType(Struct, frozen=True):
    """What a code means."""

    status: int
    slug: str
    title: str


INVALID: Final = "VAL-000"
BAD_REQUEST: Final = "VAL-005"
MALFORMED: Final = "VAL-006"
NOT_ACCEPTED: Final = "AUT-002"
TOO_LATE: Final = "AUT-003"
NO_ENDPOINT: Final = "NTF-000"
NO_RESOURCE: Final = "NTF-001"
EXISTS: Final = "CNF-001"
CONFLICT: Final = "CNF-003"
INTERNAL: Final = "INT-001"
UNAVAILABLE: Final = "SVC-001"

CATALOGUE: Final[Mapping[str, CompatProblemType]] = {
    INVALID: CompatProblemType(400, "validation-error", "Validation Failed"),
    BAD_REQUEST: CompatProblemType(400, "bad-request", "Bad Request"),
    MALFORMED: CompatProblemType(400, "malformed-request", "Malformed Request"),
    "AUT-001": CompatProblemType(401, "authentication-error", "Authentication Required"),
    NOT_ACCEPTED: CompatProblemType(401, "authentication-error", "Invalid Credentials"),
    TOO_LATE: CompatProblemType(401, "authentication-error", "Invalid Token"),
    "AUZ-001": CompatProblemType(403, "permission-denied", "Permission Denied"),
    NO_ENDPOINT: CompatProblemType(404, "not-found", "Endpoint Not Found"),
    NO_RESOURCE: CompatProblemType(404, "not-found", "Resource Not Found"),
    EXISTS: CompatProblemType(409, "conflict", "Resource Conflict"),
    CONFLICT: CompatProblemType(409, "conflict", "State Conflict"),
    "LMT-001": CompatProblemType(429, "rate-limit", "Rate Limit Exceeded"),
    INTERNAL: CompatProblemType(500, "internal-error", "Internal Server Error"),
    UNAVAILABLE: CompatProblemType(503, "service-unavailable", "Service Unavailable"),
}

# Our codes that are not mapped by their status.
_CODES: Final[Mapping[str, str]] = {"NameTaken": EXISTS, "InvalidRequest": BAD_REQUEST, "Unauthenticated": "AUT-001"}
_CODES_BY_STATUS: Final[Mapping[int, str]] = {
    400: INVALID,
    401: NOT_ACCEPTED,
    403: "AUZ-001",
    404: NO_RESOURCE,
    409: CONFLICT,
    422: INVALID,
    429: "LMT-001",
    503: UNAVAILABLE,
}
# The original never answers these; they are kept because they say more than a 400 or 500.
_KEPT: Final = frozenset({408, 413, 414, 415})
_MALFORMED: Final = frozenset({"MalformedJson", "BadEncoding"})
# The constraints of the original, and no others: its clients have an enumeration of them.
_CONSTRAINTS: Final[Mapping[str, str]] = {
    "MissingField": "required",
    "MissingCondition": "required",
    "BadFormat": "pattern",
    "TooLong": "max_length",
    "TooMany": "max",
    "WrongType": "format",
    "NotAllowed": "enum",
    "DuplicateType": "unique",
}
_INDEX: Final = re.compile(r"\.(\d+)(?=\.|$)")


class FieldError(Struct, frozen=True):
    """One error and its field."""

    field: str
    message: str
    constraint: str | UnsetType = UNSET
    value: str | int | UnsetType = UNSET  # as it was sent, where the original shows it


class CompatErrorBody(Struct, frozen=True):
    """A problem document of the compat API."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    timestamp: datetime
    trace_id: str
    errors: tuple[FieldError, ...] | UnsetType = UNSET


class CompatRefused(Exception):  # noqa: N818  # never leaves this package: the application answers it
    """Ends a request with a problem of the compat API."""

    def __init__(
        self,
        code: str,
        detail: str,
        errors: tuple[FieldError, ...] = (),
        *,
        status: int = 0,
        headers: Mapping[str, str] | None = None,
        counts_as: str = "",
    ) -> None:
        """Keep the problem; `status` overrides that of the code; `counts_as` is our own code for it."""
        self.code = code
        self.counts_as = counts_as or PREFIX + code
        self.detail = detail
        self.errors = errors
        self.status = status or CATALOGUE[code].status
        self.headers = headers or {}
        super().__init__(detail)


def not_found(kind: str, id_: str) -> CompatRefused:
    """Return the problem of a resource that does not exist, or that the caller may not see."""
    return CompatRefused(NO_RESOURCE, f"{kind} with id='{id_}' not found")


def from_problem(problem: Problem) -> CompatRefused:
    """Translate a problem of shared code."""
    status, code = problem.status, _code_of(problem)
    errors = tuple([_field_error(fault) for fault in problem.errors])
    detail = errors[0].message if errors and code in (INVALID, MALFORMED) else problem.detail
    kept = status if status in _KEPT else 0
    shown = errors if code == INVALID else ()
    return CompatRefused(code, detail, shown, status=kept, headers=problem.headers, counts_as=problem.code)


def _code_of(problem: Problem) -> str:
    status = problem.status
    if problem == OTHER_SCHEME:
        return NOT_ACCEPTED
    if status == 401 and problem.detail == EXPIRED.reason:
        return TOO_LATE
    code = _CODES.get(problem.code) or _CODES_BY_STATUS.get(status, MALFORMED if status < 500 else INTERNAL)
    is_malformed = code == INVALID and any(fault.code in _MALFORMED for fault in problem.errors)
    return MALFORMED if is_malformed else code


def from_error(error: Exception) -> CompatRefused:
    """Translate an error, without internal details."""
    return from_problem(problems.from_error(error))


def answer_refused(refused: CompatRefused, request: Request, now: datetime) -> Response:
    """Answer a request with a problem."""
    note_problem(request.scope, refused.counts_as)
    entry, state, here = CATALOGUE[refused.code], request.scope.get("state", {}), CURRENT_SPAN.get()
    body = CompatErrorBody(
        f"{TYPES}{entry.slug}",
        entry.title,
        refused.status,
        refused.detail,
        state.get("path", request.scope["path"]),
        f"{PREFIX}{refused.code}",
        now,
        here.trace_id if here is not None else state.get("request_id", ""),
        refused.errors or UNSET,
    )
    headers = {**refused.headers, "Vary": "Authorization"}
    return Response(msgspec.json.encode(body), refused.status, headers, problems.MEDIA_TYPE)


def _field_error(fault: FaultBody) -> FieldError:
    place = fault.pointer or fault.parameter or fault.header or ""
    return FieldError(spell_field(place), fault.message, _CONSTRAINTS.get(fault.code, UNSET))


def spell_field(pointer: str) -> str:
    """Write a JSON pointer as the original does: `spec.a.b`, `conditions[0].type`, `labels[env]`."""
    if pointer.startswith("/labels/"):
        key = pointer.removeprefix("/labels/").replace("~1", "/").replace("~0", "~")
        return f"labels[{key}]"
    return _INDEX.sub(r"[\1]", pointer.removeprefix("/").replace("/", "."))
