"""Values that stand for JSON, as specs and the data of reports do."""

from __future__ import annotations

import msgspec


def is_same(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON. To Python, 1, 1.0 and true are equal; to JSON they are not."""
    if one != other:
        return False
    if not one:  # nothing in it that could be mistaken
        return type(one) is type(other)
    encode = msgspec.json.Encoder(order="deterministic").encode
    return encode(one) == encode(other)
