"""The response headers, described once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hyperfleet.api.description.operations import Schema

_TEXT: Final[Schema] = {"type": "string"}


def _header(description: str, schema: Schema = _TEXT) -> Schema:
    return {"description": description, "schema": schema}


REQUEST_ID: Final = "X-Request-Id"

HEADERS: Final[Mapping[str, Schema]] = {
    REQUEST_ID: _header("The id of the request: the caller's own, if it sent a valid one."),
    "ETag": _header(
        "Identifies this state; send it as `If-Match` or `If-None-Match`. For a resource it is the revision; for the "
        "policy it begins with the version.",
        {"type": "string", "pattern": r'^"[0-9a-f]+(\.[0-9a-f]+)?(-gzip|-zstd)?"$'},
    ),
    "Location": _header("The path of the new resource.", {"type": "string", "format": "uri-reference"}),
    "Idempotency-Replayed": _header(
        "This is the answer to an earlier request with the same `Idempotency-Key`.",
        {"type": "string", "const": "true"},
    ),
    "Preference-Applied": _header("The applied preference."),
    "Retry-After": _header("Retry after this many seconds.", {"type": "string", "pattern": "^[0-9]+$"}),
    "WWW-Authenticate": _header("How to authenticate (RFC 6750)."),
    "Allow": _header("The methods of this path."),
}
EVERY_ANSWER: Final = (REQUEST_ID,)


def describe_headers(names: Iterable[str]) -> Schema:
    """Describe the headers of an answer; a `?` after the name marks an optional one."""
    described = {}
    for name in (*EVERY_ANSWER, *names):
        bare = name.removesuffix("?")
        described[bare] = {**HEADERS[bare], "required": bare == name}
    return described
