"""What went wrong, in the dialect's words and codes. The only place that knows which of ours has which of theirs.

Handlers raise `CompatRefused` for what only the dialect refuses; shared code refuses with `api.problems.Problem`,
and is translated. As everywhere, nothing internal is told.
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
TYPES: Final = "https://api.hyperfleet.io/errors/"  # a name, not an address: clients compare it


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
    TOO_LATE: CompatProblemType(401, "authentication-error", "Expired Token"),
    "AUZ-001": CompatProblemType(403, "permission-denied", "Permission Denied"),
    NO_ENDPOINT: CompatProblemType(404, "not-found", "Endpoint Not Found"),
    NO_RESOURCE: CompatProblemType(404, "not-found", "Resource Not Found"),
    EXISTS: CompatProblemType(409, "conflict", "Resource Already Exists"),
    CONFLICT: CompatProblemType(409, "conflict", "Resource Conflict"),
    "LMT-001": CompatProblemType(429, "rate-limit", "Rate Limit Exceeded"),
    INTERNAL: CompatProblemType(500, "internal-error", "Internal Server Error"),
    UNAVAILABLE: CompatProblemType(503, "service-unavailable", "Service Unavailable"),
}

# Ours that are not told by their status alone.
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
# Of the statuses that the original never has, these are kept: they say more than a 400 or a 500 would.
_KEPT: Final = frozenset({408, 413, 414, 415})
_MALFORMED: Final = frozenset({"MalformedJson", "BadEncoding"})
_CONSTRAINTS: Final[Mapping[str, str]] = {
    "MissingField": "required",
    "MissingCondition": "required",
    "BadFormat": "pattern",
    "TooLong": "max",
    "TooMany": "max",
    "WrongType": "type",
    "NotAllowed": "enum",
    "DuplicateType": "unique",
}
_INDEX: Final = re.compile(r"\.(\d+)(?=\.|$)")


class FieldError(Struct, frozen=True):
    """One thing that is wrong, and with which field."""

    field: str
    message: str
    constraint: str | UnsetType = UNSET
    value: str | UnsetType = UNSET


class CompatErrorBody(Struct, frozen=True):
    """A problem document of the dialect."""

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
    """Ends a request with a problem of the dialect."""

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
        """Carry the problem to the edge; `status`: another one than its code has; `counts_as`: our code for it."""
        self.code = code
        self.counts_as = counts_as or PREFIX + code
        self.detail = detail
        self.errors = errors
        self.status = status or CATALOGUE[code].status
        self.headers = headers or {}
        super().__init__(detail)


def not_found(kind: str, id_: str) -> CompatRefused:
    """Say that there is no such resource, or none that the caller may see."""
    return CompatRefused(NO_RESOURCE, f"{kind} with id='{id_}' not found")


def from_problem(problem: Problem) -> CompatRefused:
    """Say in the dialect what the shared code refused."""
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
    """Say that something failed here, without telling what is inside."""
    return from_problem(problems.from_error(error))


def answer_refused(declined: CompatRefused, request: Request, now: datetime) -> Response:
    """Answer a request with a problem."""
    note_problem(request.scope, declined.counts_as)
    entry, state, here = CATALOGUE[declined.code], request.scope.get("state", {}), CURRENT_SPAN.get()
    body = CompatErrorBody(
        f"{TYPES}{entry.slug}",
        entry.title,
        declined.status,
        declined.detail,
        state.get("path", request.scope["path"]),
        f"{PREFIX}{declined.code}",
        now,
        here.trace_id if here is not None else state.get("request_id", ""),
        declined.errors or UNSET,
    )
    headers = {**declined.headers, "Vary": "Authorization"}
    return Response(msgspec.json.encode(body), declined.status, headers, problems.MEDIA_TYPE)


def _field_error(fault: FaultBody) -> FieldError:
    place = fault.pointer or fault.parameter or fault.header or ""
    return FieldError(spell_field(place), fault.message, _CONSTRAINTS.get(fault.code, UNSET))


def spell_field(pointer: str) -> str:
    """Spell a JSON pointer as the dialect does: `spec.a.b`, `conditions[0].type`, `labels[env]`."""
    if pointer.startswith("/labels/"):
        key = pointer.removeprefix("/labels/").replace("~1", "/").replace("~0", "~")
        return f"labels[{key}]"
    return _INDEX.sub(r"[\1]", pointer.removeprefix("/").replace("/", "."))
