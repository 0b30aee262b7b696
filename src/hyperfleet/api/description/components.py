"""The schemas of the types that handlers encode, under the names that OpenAPI documents show.

Class names are unique in the project: a type ends in `Body` where the client has one of the same name, and begins with
`Compat` where the native API has one. The documents leave that out: a component keeps its short name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

Schema = dict[str, Any]

_PREFIX: Final = "#/components/schemas/"


def component_name(type_: type[Struct]) -> str:
    """Return the name of the component that describes a type."""
    return _shorten(type_.__name__)


def refer(name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": _PREFIX + name}


def describe_types(types: Iterable[type[Struct]]) -> dict[str, Schema]:
    """Return the components of some types and of every type that these refer to."""
    _, schemas = msgspec.json.schema_components(types, ref_template=_PREFIX + "{name}")
    return {_shorten(name): _shorten_names(schema) for name, schema in schemas.items()}


def _shorten(name: str) -> str:
    return name.removeprefix("Compat") if name.startswith("Compat") else name.removesuffix("Body")


def _shorten_names(value: Any) -> Any:
    """Shorten the titles and references in a schema."""
    if isinstance(value, list):
        return [_shorten_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    shortened = {key: _shorten_names(item) for key, item in value.items()}
    for key in ("title", "$ref"):
        if isinstance(name := value.get(key), str):  # not a string: a property of that name
            prefix = _PREFIX if key == "$ref" else ""
            shortened[key] = prefix + _shorten(name.removeprefix(prefix))
    return shortened
