"""What an operation is: the words in which the tables beside this module describe the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from hyperfleet.services.callers import Role

Schema = dict[str, Any]
# A type that handlers encode, one of several such types, or a schema where no type can say it.
Shape = type[Struct] | tuple[type[Struct], ...] | Schema

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"


class Parameter(Struct, frozen=True):
    """Something in the path, the query or the headers of a request."""

    name: str
    place: Literal["path", "query", "header"]
    description: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    example: str | int | None = None  # one that works, unless the schema has it
    is_required: bool = False  # of a header or in the query; in a path all are


class RequestBody(Struct, frozen=True):
    """The body of a request: what fits it, one that works, and under which content types it may come."""

    shape: Shape
    example: Any
    content_types: tuple[str, ...] = (JSON,)
    is_required: bool = True


class Success(Struct, frozen=True):
    """One way in which an operation can succeed."""

    status: int
    description: str
    shape: Shape | None = None
    headers: tuple[str, ...] = ()  # names in `headers.HEADERS`; with `?` behind it: not always there
    content_type: str = JSON
    other_types: tuple[str, ...] = ()  # of text that says the same, for those who prefer it (`Accept`)
    links: Mapping[str, Any] = field(default_factory=dict)


class Operation(Struct, frozen=True):
    """One method of one path. `refusals` are the codes of problems it can answer beside those that all can."""

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
    role: Role | None = "reader"  # that a caller needs; None: everybody may
