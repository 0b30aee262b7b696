"""Values that stand for JSON, as specs and the data of reports do."""

from __future__ import annotations

from typing import Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode
_encode_in_order: Final = msgspec.json.Encoder(order="deterministic").encode
_TYPES: Final = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def name_type(value: object) -> str:
    """Name the type of a JSON value."""
    return _TYPES.get(type(value), "null")


def is_same(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON. To Python, 1, 1.0 and true are equal; to JSON they are not."""
    if _encode(one) == _encode(other):
        return True
    return one == other and _encode_in_order(one) == _encode_in_order(other)  # unequal in Python means unequal
