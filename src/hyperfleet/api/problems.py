"""Problem documents (RFC 9457). The only module that knows which HTTP status an error has.

Services return refusals and raise the errors of `hyperfleet.errors`; handlers raise `Refused`. All of them end here.
Internal details are never shown: what a caller cannot act on is an `InternalError` with a request id, and the log has
the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.request_metrics import note_problem
from hyperfleet.errors import HyperFleetError, PolicyTooExpensive, RestartRequired
from hyperfleet.services.results import Refusal

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = "1"  # second; queues drain and databases fail over within a few
MAX_ERRORS: Final = 100  # listed in one problem: more than a person corrects at once

# Together they keep every problem document below 64 kB, whatever is quoted in it.
MAX_MESSAGE: Final = 1_000  # characters
MAX_POINTER: Final = 300
_MAX_ERROR_BYTES: Final = 48 * 1024

FaultLocation = Literal["pointer", "parameter", "header"]


class ProblemType(Struct, frozen=True):
    """What a code means: its HTTP status, a fixed title, and what to do about it."""

    status: int
    title: str
    remedy: str


CATALOGUE: Final[Mapping[str, ProblemType]] = {
    "InvalidBody": ProblemType(400, "The body is invalid", "Correct what `errors` lists: all of them, or the first."),
    "InvalidQuery": ProblemType(400, "A query parameter is invalid", "Correct the parameters that `errors` names."),
    "InvalidHeader": ProblemType(400, "A header is invalid", "Correct the header that `errors` names."),
    "InvalidRequest": ProblemType(400, "The request is invalid", "Compare it with /openapi.json."),
    "Unauthenticated": ProblemType(
        401, "The request is not authenticated", "Send a token in the header `Authorization`."
    ),
    "InvalidToken": ProblemType(401, "The token is not accepted", "Get a new token from its issuer."),
    "Forbidden": ProblemType(
        403, "You are not allowed to do this", "Ask an administrator for the role or tenant that `detail` names."
    ),
    "CrossSite": ProblemType(
        403, "A web page of another site sent the request", "Use a page of this server, or a program."
    ),
    "NotYourAdapter": ProblemType(
        403, "You are not allowed to report as this adapter", "Report under the names that your token is bound to."
    ),
    "NotFound": ProblemType(404, "Not found", "Check the path and the id; it may have been removed."),
    "MethodNotAllowed": ProblemType(
        405, "The path does not support this method", "Use a method of the `Allow` header."
    ),
    "RequestTimeout": ProblemType(408, "The body did not arrive in time", "Send the request again; nothing was done."),
    "GenerationAhead": ProblemType(
        409, "The report is about a generation that does not exist yet", "Read the resource again, then report."
    ),
    "GenerationConflict": ProblemType(
        409, "The resource has changed meanwhile", "Read it again, repeat the change and send it with that generation."
    ),
    "NameTaken": ProblemType(409, "The name is taken", "Choose another name, or use the resource that has it."),
    "BeingDeleted": ProblemType(
        409, "The resource is being deleted", "It can no longer change. Its name is free again: create another one."
    ),
    "ParentBeingDeleted": ProblemType(409, "The parent is being deleted", "Nothing can be added to it."),
    "NotBeingDeleted": ProblemType(
        409, "The resource is not being deleted", "DELETE it first; force the removal only if the deletion hangs."
    ),
    "TooManyAdapters": ProblemType(
        409, "Too many adapters report on the resource", "Retire adapters that no longer report, or use fewer names."
    ),
    "SubscriptionExists": ProblemType(
        409, "The subscription exists with another topic", "Use another name, or delete the subscription first."
    ),
    "BrokerElsewhere": ProblemType(
        409,
        "Events go to another broker",
        "Subscribe at the broker that `GET /pubsub` names; reading one subscription and its dead letters works here.",
    ),
    "UnknownMember": ProblemType(
        409, "The caller is not a member of the sentinel", "PUT the membership again; it lasts 15 seconds."
    ),
    "TooManyMembers": ProblemType(
        409, "The sentinel has too many members", "Use fewer, or a sentinel of another name."
    ),
    "WaitFailed": ProblemType(
        409,
        "The wait failed",
        "A condition of `failOn` is met; see `errors`. Fix the cause, then wait again.",
    ),
    "Gone": ProblemType(
        410, "The resource was removed meanwhile", "Stop waiting. To wait for the removal, use `for=deleted`."
    ),
    "Forgotten": ProblemType(
        410, "That part of the history is no longer kept", "Use a later time or position, or list again."
    ),
    "PreconditionFailed": ProblemType(
        412, "The resource has another version", "Read it again and retry with the ETag of that answer."
    ),
    "BodyTooLarge": ProblemType(413, "The body is too large", "Send less, or several requests."),
    "UriTooLong": ProblemType(414, "The URL is too long", "Use fewer or shorter query parameters."),
    "UnsupportedMediaType": ProblemType(
        415, "The content type or encoding is not supported", "Send JSON: `application/json`."
    ),
    "UnknownHost": ProblemType(
        421, "The request uses an unknown name of this server", "Use localhost, or add the name to `allowedHosts`."
    ),
    "InvalidLabels": ProblemType(422, "The labels are not allowed", "Correct what `errors` lists."),
    "InvalidSpec": ProblemType(422, "The spec does not fit the schema of its kind", "Correct what `errors` lists."),
    "IdempotencyKeyReused": ProblemType(
        422, "The idempotency key belongs to another request", "Use a new key for every new request."
    ),
    "RestartRequired": ProblemType(
        422,
        "The block pubsub cannot change while the server runs",
        "Leave `pubsub` as it is; or change it in the policy file and restart the server.",
    ),
    "InvalidPolicy": ProblemType(
        422, "The policy has problems", "Correct what `errors` lists; the old one stays in force."
    ),
    "PolicyTooExpensive": ProblemType(
        422,
        "The rules of the policy take too much work",
        "Simplify its rules: nested loops and large ranges cost most.",
    ),
    "PreconditionRequired": ProblemType(
        428,
        "The request must name the version that it replaces",
        "Read it, and send the ETag of that answer as `If-Match`.",
    ),
    "RateLimited": ProblemType(
        429, "Too many requests", "Wait for the time in `Retry-After`; send many reports as a batch."
    ),
    "TooManyWatches": ProblemType(
        429, "Too many watches", "Close watches that you no longer need, or watch a list instead of single resources."
    ),
    "InternalError": ProblemType(500, "Internal error", "Retry; if it persists, report the `requestId`."),
    "Overloaded": ProblemType(503, "The server is overloaded", "Retry after the time in `Retry-After`."),
    "IssuerUnavailable": ProblemType(
        503, "The issuer of the token cannot be reached", "Retry; the token could not be checked."
    ),
    "BrokerUnavailable": ProblemType(503, "The broker cannot be reached", "Retry; nothing is lost."),
    "StoreUnavailable": ProblemType(
        503, "The database cannot be reached", "Retry; a write may have happened, and repeating it is safe."
    ),
    "WaitTimeout": ProblemType(
        504,
        "The wait timed out",
        "`errors` says what is missing and why. Wait again, or fix the cause.",
    ),
    "Timeout": ProblemType(503, "The request timed out", "Retry; a write may have happened, and repeating it is safe."),
}

_STATUS_CODES: Final[Mapping[int, str]] = {  # what the framework raises
    400: "InvalidRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "BodyTooLarge",
    414: "UriTooLong",
    415: "UnsupportedMediaType",
}
_ERROR_CODES: Final[Mapping[str, str]] = {"Contended": "Overloaded"}  # our own codes that callers do not see


class FaultBody(Struct, frozen=True, rename="camel"):
    """One error and where it is."""

    code: str
    message: str
    pointer: Annotated[str | UnsetType, Meta(description="A JSON pointer into the body.")] = UNSET
    parameter: Annotated[str | UnsetType, Meta(description="The query parameter.")] = UNSET
    header: Annotated[str | UnsetType, Meta(description="The header.")] = UNSET


class ProblemDocumentBody(Struct, frozen=True, rename="camel"):
    """Why a request failed (RFC 9457)."""

    type: Annotated[str, Meta(description="A path that explains `code` and what to do about it.")]
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="Stable: programs may depend on it.")]
    instance: Annotated[str | UnsetType, Meta(description="The path of the request.")] = UNSET
    request_id: str | UnsetType = UNSET
    errors: tuple[FaultBody, ...] | UnsetType = UNSET


F = TypeVar("F", bound=FaultBody)


class Problem(Struct, frozen=True):
    """A problem before it is written as a document."""

    code: str
    detail: str
    errors: tuple[FaultBody, ...] = ()
    headers: Mapping[str, str] = {}

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return CATALOGUE[self.code].status

    def document(self, instance: str | UnsetType = UNSET, request_id: str | UnsetType = UNSET) -> ProblemDocumentBody:
        """Write the document."""
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
        """Keep the problem for the application."""
        self.problem = problem
        super().__init__(problem.detail)


def from_refusal(refusal: Refusal) -> Problem:
    """Translate the refusal of a service."""
    return Problem(refusal.code, refusal.message, faults(refusal.errors))


def from_body(errors: Sequence[BodyProblem]) -> Problem:
    """Describe the errors of a body."""
    found = faults(errors)
    return Problem("InvalidBody", _count(errors, "error", "errors") + " in the body" + _cut(errors, found), found)


def from_query(errors: Sequence[BodyProblem]) -> Problem:
    """Describe the errors of query parameters; the pointer of each error is the name of the parameter."""
    found = faults(errors, "parameter")
    text = _count(errors, "query parameter is", "query parameters are") + " invalid" + _cut(errors, found)
    return Problem("InvalidQuery", text, found)


def from_header(name: str, message: str) -> Problem:
    """Describe an invalid header."""
    return Problem("InvalidHeader", f"the header {name} is invalid", (FaultBody("BadFormat", message, header=name),))


def from_http_error(error: HTTPException) -> Problem:
    """Translate an error of the framework."""
    code = _STATUS_CODES.get(error.status_code, "InvalidRequest" if error.status_code < 500 else "InternalError")
    return Problem(code, CATALOGUE[code].title, headers=dict(error.headers or {}))


def from_error(error: Exception) -> Problem:
    """Translate an error, without internal details."""
    if isinstance(error, (PolicyTooExpensive, RestartRequired)):
        return Problem(error.code, str(error))
    code = _ERROR_CODES.get(error.code, error.code) if isinstance(error, HyperFleetError) else "InternalError"
    return from_code(code if code in CATALOGUE else "InternalError")


def from_code(code: str) -> Problem:
    """Return the problem of a code that needs no further detail."""
    entry = CATALOGUE[code]
    headers = {"Retry-After": RETRY_AFTER} if entry.status in (429, 503) else {}
    return Problem(code, entry.title, headers=headers)


def faults(errors: Iterable[BodyProblem], location: FaultLocation = "pointer") -> tuple[FaultBody, ...]:
    """Convert errors, each with its location; the first ones, if there are very many."""
    return limit_faults(
        FaultBody(error.code, shorten(error.message, MAX_MESSAGE), **{location: shorten(error.pointer, MAX_POINTER)})
        for error in errors
    )


def limit_faults(faults_: Iterable[F]) -> tuple[F, ...]:
    """Take as many as one answer lists."""
    found, room = [], _MAX_ERROR_BYTES
    for fault in islice(faults_, MAX_ERRORS):
        room -= len(msgspec.json.encode(fault))
        if room < 0:
            break
        found.append(fault)
    return tuple(found)


def shorten(text: str, most: int) -> str:
    """Cut a text to a number of characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def answer_problem(problem: Problem, request: Request) -> Response:
    """Answer a request with a problem."""
    note_problem(request.scope, problem.code)
    state = request.scope.get("state", {})
    document = problem.document(state.get("path", request.scope["path"]), state.get("request_id", UNSET))
    headers = {**problem.headers, "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(document), problem.status, headers, MEDIA_TYPE)


def _count(errors: Sequence[BodyProblem], one: str, many: str) -> str:
    number = f"more than {MAX_ERRORS}" if len(errors) > MAX_ERRORS else f"{len(errors)}"
    return f"{number} {one if len(errors) == 1 else many}"


def _cut(errors: Sequence[BodyProblem], found: Sequence[FaultBody]) -> str:
    """Say how many errors are listed, if that is not all of them."""
    return f"; the first {len(found)} are listed" if len(found) < len(errors) else ""
