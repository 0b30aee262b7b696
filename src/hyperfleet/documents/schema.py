"""JSON Schema of a struct, so that editors complete and check documents while they are written.

`make docs` writes the files. msgspec describes the types (title and text from `Meta` and docstrings); here it
is adapted to YAML and to our durations. Binder and schema accept the same documents; a test checks that.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hyperfleet.documents.durations import EXAMPLES, PATTERN, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
BOOLEAN_KEYS: Final = ("true", "false")
BOOLEAN_KEY_NOTE: Final = "In YAML this key may be written with or without quotes."

Schema = dict[str, Any]


def describe_schema(type_: type[msgspec.Struct], *, id_: str, title: str = "") -> Schema:
    """Return the JSON Schema of the documents that bind to a struct; `id_` is the schema's own address."""
    (root,), definitions = msgspec.json.schema_components([type_], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        for part in _walk(definition):
            _adapt_default(part)
            _note_boolean_keys(part)
        for part in _walk(definition):
            _adapt_duration(part)
    head = {"$schema": DIALECT, "$id": id_, "title": title or type_.__name__}
    return {**head, **root, "$defs": dict(sorted(definitions.items()))}


def _walk(schema: object) -> Iterator[Schema]:
    """Yield a schema and every schema within it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for child in schema.get("properties", {}).values():
        yield from _walk(child)
    for child in (*schema.get("anyOf", ()), *schema.get("prefixItems", ())):
        yield from _walk(child)
    yield from _walk(schema.get("items"))
    yield from _walk(schema.get("additionalProperties"))


def _adapt_duration(schema: Schema) -> None:
    """Replace the duration of JSON Schema (PT10M) by ours (10m)."""
    if _is_iso_duration(schema):
        del schema["format"]
        schema.setdefault("pattern", PATTERN)
        schema.setdefault("examples", list(EXAMPLES))


def _adapt_default(schema: Schema) -> None:
    """Write a default as a person would; leave out those of objects, whose fields have their own."""
    default = schema.get("default")
    if isinstance(default, str) and any(map(_is_iso_duration, (schema, *schema.get("anyOf", ())))):
        schema["default"] = format_duration(msgspec.convert(default, timedelta))
    elif default == ():
        schema["default"] = []
    elif isinstance(default, dict | list | tuple) and default:
        del schema["default"]


def _is_iso_duration(schema: Schema) -> bool:
    return schema.get("format") == "duration"


def _note_boolean_keys(schema: Schema) -> None:
    properties = schema.get("properties", {})
    for name in BOOLEAN_KEYS:
        if name in properties:
            properties[name]["$comment"] = BOOLEAN_KEY_NOTE
