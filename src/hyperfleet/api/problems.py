"""What went wrong, as problem documents (RFC 9457). The only place that knows which HTTP code an error has.

Services answer with refusals and raise the errors of `hyperfleet.errors`; handlers raise `Refused` with what they
find wrong themselves. All of it ends here. Nothing internal is ever told: what a caller cannot act on is an
`InternalError` with a request id, and the log has the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.request_metrics import note_problem
from hyperfleet.errors import HyperFleetError
from hyperfleet.services.results import Refusal

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = "1"  # seconds; queues drain and databases fail over within a few of them

FaultLocation = Literal["pointer", "parameter", "header"]


class ProblemType(Struct, frozen=True):
    """What a code means: its HTTP status, a title that never varies, and what to do about it."""

    status: int
    title: str
    remedy: str


CATALOGUE: Final[Mapping[str, ProblemType]] = {
    "InvalidBody": ProblemType(
        400, "The body is not what it should be", "Correct what `errors` lists; it lists everything."
    ),
    "InvalidQuery": ProblemType(400, "A query parameter is wrong", "Correct the parameters that `errors` names."),
    "InvalidHeader": ProblemType(400, "A header is wrong", "Correct the header that `errors` names."),
    "InvalidRequest": ProblemType(400, "The request is not understood", "Compare it with /openapi.json."),
    "Unauthenticated": ProblemType(401, "Nobody knows who you are", "Send a token in the header `Authorization`."),
    "InvalidToken": ProblemType(401, "The token is not accepted", "Get a new token from whoever gave you this one."),
    "Forbidden": ProblemType(
        403, "You may not do this", "Ask an administrator for the role or tenant that `detail` names."
    ),
    "NotYourAdapter": ProblemType(
        403, "You may not report as this adapter", "Report under the names that your token is bound to."
    ),
    "NotFound": ProblemType(404, "There is no such thing", "Check the path and the id; it may have been removed."),
    "MethodNotAllowed": ProblemType(405, "This path has no such method", "Use one of those in the `Allow` header."),
    "RequestTimeout": ProblemType(408, "The body did not come in time", "Send the request again; nothing was done."),
    "GenerationAhead": ProblemType(
        409, "The report is about a generation that does not exist yet", "Read the resource again, then report."
    ),
    "GenerationConflict": ProblemType(
        409, "The resource has changed since", "Read it again, make the change anew and send it with that generation."
    ),
    "NameTaken": ProblemType(409, "The name is taken", "Choose another name, or use the resource that has it."),
    "BeingDeleted": ProblemType(
        409, "The resource is being deleted", "It can no longer change. Its name is free again: create another one."
    ),
    "ParentBeingDeleted": ProblemType(409, "The parent is being deleted", "Nothing can be added to it any more."),
    "NotBeingDeleted": ProblemType(
        409, "The resource is not being deleted", "DELETE it first; force it only if that hangs."
    ),
    "TooManyAdapters": ProblemType(
        409, "Too many adapters report on the resource", "Retire those that report no more, or use fewer names."
    ),
    "WaitFailed": ProblemType(
        409,
        "What was waited for will not be",
        "What `failOn` names has happened; `errors` says why. Mend it, wait again.",
    ),
    "Gone": ProblemType(
        410, "The resource was removed meanwhile", "Stop waiting; to wait for that, ask for `deleted`."
    ),
    "Forgotten": ProblemType(
        410, "The past that was asked for is no longer kept", "Ask for a later time or position, or list anew."
    ),
    "PreconditionFailed": ProblemType(
        412, "The resource is not the one you know", "Read it again and retry with the ETag of that answer."
    ),
    "BodyTooLarge": ProblemType(413, "The body is too large", "Send less, or several requests."),
    "UriTooLong": ProblemType(414, "The address is too long", "Use fewer or shorter query parameters."),
    "UnsupportedMediaType": ProblemType(415, "The body is in a form we do not read", "Send JSON: `application/json`."),
    "InvalidLabels": ProblemType(422, "The labels are not allowed", "Correct what `errors` lists."),
    "InvalidSpec": ProblemType(422, "The spec does not fit the schema of its kind", "Correct what `errors` lists."),
    "IdempotencyKeyReused": ProblemType(
        422, "The idempotency key belongs to another request", "Use a new key for every new request."
    ),
    "InvalidPolicy": ProblemType(
        422, "The policy has problems", "Correct what `errors` lists; the old one stays in force."
    ),
    "PreconditionRequired": ProblemType(
        428, "The request must name the version it replaces", "Read it, and send the ETag of that answer as `If-Match`."
    ),
    "RateLimited": ProblemType(
        429, "You ask too fast", "Wait for the time in `Retry-After`; send many reports as a batch."
    ),
    "TooManyWatches": ProblemType(
        429, "You watch too much at once", "Close what you no longer need, or watch a list in place of each resource."
    ),
    "InternalError": ProblemType(500, "Something went wrong here", "Retry; if it stays, tell us the `requestId`."),
    "Overloaded": ProblemType(503, "More is asked than can be done now", "Retry after the time in `Retry-After`."),
    "IssuerUnavailable": ProblemType(
        503, "Whoever issued the token cannot be asked now", "Retry; the token may be good, nobody can tell yet."
    ),
    "StoreUnavailable": ProblemType(
        503, "The database cannot be reached", "Retry; a write may have happened, and repeating it does no harm."
    ),
    "WaitTimeout": ProblemType(
        504,
        "What was waited for did not come in time",
        "`errors` says what is missing and why. Wait again, or look there.",
    ),
    "Timeout": ProblemType(503, "It took too long", "Retry; a write may have happened, and repeating it does no harm."),
}

_STATUS_CODES: Final[Mapping[int, str]] = {  # what the framework raises
    400: "InvalidRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "BodyTooLarge",
    414: "UriTooLong",
    415: "UnsupportedMediaType",
}
_ERROR_CODES: Final[Mapping[str, str]] = {"Contended": "Overloaded"}  # ours whose code is not for callers


class FaultBody(Struct, frozen=True, rename="camel"):
    """One thing that is wrong, and where."""

    code: str
    message: str
    pointer: Annotated[str | UnsetType, Meta(description="Where in the body: a JSON pointer.")] = UNSET
    parameter: Annotated[str | UnsetType, Meta(description="Which query parameter.")] = UNSET
    header: Annotated[str | UnsetType, Meta(description="Which header.")] = UNSET


class ProblemDocumentBody(Struct, frozen=True, rename="camel"):
    """What went wrong."""

    type: Annotated[str, Meta(description="A reference to what `code` means and what to do about it.")]
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="Stable: programs may depend on it.")]
    instance: Annotated[str | UnsetType, Meta(description="The path of the request.")] = UNSET
    request_id: str | UnsetType = UNSET
    errors: tuple[FaultBody, ...] | UnsetType = UNSET


class Problem(Struct, frozen=True):
    """Something wrong, not yet told to anybody."""

    code: str
    detail: str
    errors: tuple[FaultBody, ...] = ()
    headers: Mapping[str, str] = {}

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return CATALOGUE[self.code].status

    def document(self, instance: str | UnsetType = UNSET, request_id: str | UnsetType = UNSET) -> ProblemDocumentBody:
        """Write it down."""
        entry = CATALOGUE[self.code]
        return ProblemDocumentBody(
            f"/problems/{self.code}",
            entry.title,
            entry.status,
            self.detail,
            self.code,
            instance,
            request_id,
            self.errors or UNSET,
        )


class Refused(Exception):  # noqa: N818  # never leaves this package: the application answers it
    """Ends a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        """Carry the problem to the edge."""
        self.problem = problem
        super().__init__(problem.detail)


def from_refusal(refusal: Refusal) -> Problem:
    """Tell why a service did nothing."""
    return Problem(refusal.code, refusal.message, faults(refusal.errors))


def from_body(errors: Iterable[BodyProblem]) -> Problem:
    """Tell what is wrong with a body."""
    found = faults(errors)
    return Problem("InvalidBody", _count(found, "thing is", "things are") + " wrong with the body", found)


def from_query(errors: Iterable[BodyProblem]) -> Problem:
    """Tell what is wrong with query parameters; the pointer of each error is the parameter's name."""
    found = faults(errors, "parameter")
    return Problem("InvalidQuery", _count(found, "query parameter is", "query parameters are") + " wrong", found)


def from_header(name: str, message: str) -> Problem:
    """Tell what is wrong with a header."""
    return Problem("InvalidHeader", f"the header {name} is wrong", (FaultBody("BadFormat", message, header=name),))


def from_http_error(error: HTTPException) -> Problem:
    """Tell what the framework did not like."""
    code = _STATUS_CODES.get(error.status_code, "InvalidRequest" if error.status_code < 500 else "InternalError")
    return Problem(code, CATALOGUE[code].title, headers=dict(error.headers or {}))


def from_error(error: Exception) -> Problem:
    """Tell of an error without telling what is inside."""
    code = _ERROR_CODES.get(error.code, error.code) if isinstance(error, HyperFleetError) else "InternalError"
    return from_code(code if code in CATALOGUE else "InternalError")


def from_code(code: str) -> Problem:
    """Tell what needs no more words than the catalogue has."""
    entry = CATALOGUE[code]
    headers = {"Retry-After": RETRY_AFTER} if entry.status in (429, 503) else {}
    return Problem(code, entry.title, headers=headers)


def faults(errors: Iterable[BodyProblem], place: FaultLocation = "pointer") -> tuple[FaultBody, ...]:
    """Say where each error is."""
    return tuple([FaultBody(error.code, error.message, **{place: error.pointer}) for error in errors])


def answer_problem(problem: Problem, request: Request) -> Response:
    """Answer a request with a problem."""
    note_problem(request.scope, problem.code)
    state = request.scope.get("state", {})
    document = problem.document(state.get("path", request.scope["path"]), state.get("request_id", UNSET))
    headers = {**problem.headers, "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(document), problem.status, headers, MEDIA_TYPE)


def _count(found: tuple[FaultBody, ...], one: str, many: str) -> str:
    return f"{len(found)} {one if len(found) == 1 else many}"
