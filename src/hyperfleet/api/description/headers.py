"""The headers of answers, described once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hyperfleet.api.description.operations import Schema

_TEXT: Final[Schema] = {"type": "string"}


def _header(description: str, schema: Schema = _TEXT) -> Schema:
    return {"description": description, "schema": schema}


REQUEST_ID: Final = "X-Request-Id"

HEADERS: Final[Mapping[str, Schema]] = {
    REQUEST_ID: _header("The request's id: the caller's own if it sent a sane one."),
    "ETag": _header(
        "Names this very state; send it as `If-Match` or `If-None-Match`. That of a resource is its revision; that of "
        "the policy begins with its version.",
        {"type": "string", "pattern": r'^"[0-9a-f]+(\.[0-9a-f]+)?(-gzip|-zstd)?"$'},
    ),
    "Location": _header("Where what is new can be read.", {"type": "string", "format": "uri-reference"}),
    "Idempotency-Replayed": _header(
        "This is the answer to an earlier request with the same `Idempotency-Key`.",
        {"type": "string", "const": "true"},
    ),
    "Preference-Applied": _header("Which preference was honoured."),
    "Retry-After": _header("In how many seconds to try again.", {"type": "string", "pattern": "^[0-9]+$"}),
    "WWW-Authenticate": _header("How to be let in (RFC 6750)."),
    "Allow": _header("The methods of this path."),
}
EVERY_ANSWER: Final = (REQUEST_ID,)


def describe_headers(names: Iterable[str]) -> Schema:
    """Describe the headers of an answer; with `?` behind its name, one is not always there."""
    described = {}
    for name in (*EVERY_ANSWER, *names):
        bare = name.removesuffix("?")
        described[bare] = {**HEADERS[bare], "required": bare == name}
    return described
