"""The types in which the tables beside this module describe the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from hyperfleet.services.callers import Role

Schema = dict[str, Any]
# A type that handlers encode, one of several such types, or a schema if no type can express it.
Shape = type[Struct] | tuple[type[Struct], ...] | Schema

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"


class Parameter(Struct, frozen=True):
    """A parameter in the path, the query or the headers of a request."""

    name: str
    location: Literal["path", "query", "header"]
    description: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    example: str | int | None = None  # a working value
    is_required: bool = False  # path parameters always are


class RequestBody(Struct, frozen=True):
    """The body of a request: its schema, a working example, and the accepted content types."""

    shape: Shape
    example: Any
    content_types: tuple[str, ...] = (JSON,)
    is_required: bool = True


class Success(Struct, frozen=True):
    """One successful response of an operation."""

    status: int
    description: str
    shape: Shape | None = None
    headers: tuple[str, ...] = ()  # names in `headers.HEADERS`; a trailing `?`: optional
    content_type: str = JSON
    other_types: tuple[str, ...] = ()  # other content types that a client may prefer (`Accept`)
    links: Mapping[str, Any] = field(default_factory=dict)


class Operation(Struct, frozen=True):
    """One method of one path. `refusals` are its problem codes, besides those of every operation."""

    method: Literal["get", "post", "put", "patch", "delete"]
    path: str
    id: str
    tag: str
    summary: str
    successes: tuple[Success, ...]
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: RequestBody | None = None
    refusals: tuple[str, ...] = ()
    role: Role | None = "reader"  # required of the caller; None: public
