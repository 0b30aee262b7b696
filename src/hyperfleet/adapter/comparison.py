"""Compare JSON values as adapter files mean it: 3 is 3.0, and true is not 1.

The Go adapter compares by Go type, so that a 3 of YAML never equals the 3 of an API answer.
"""

from __future__ import annotations

from typing import Any


def is_number(value: object) -> bool:
    """Tell whether a value is a number; to Python, booleans are."""
    return type(value) in (int, float)


def is_same_value(one: object, other: object) -> bool:
    """Compare two values with everything in them; without recursion, as values of an API may be deep."""
    pairs: list[tuple[Any, Any]] = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pairs += [(value, right[key]) for key, value in left.items()]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif not _is_same_scalar(left, right):
            return False
    return True


def _is_same_scalar(left: object, right: object) -> bool:
    if is_number(left) and is_number(right):
        return left == right
    return type(left) is type(right) and left == right


def is_less(one: Any, other: Any) -> bool | None:
    """Tell whether a number or string comes before another; None if the two have no order."""
    has_order = (is_number(one) and is_number(other)) or (isinstance(one, str) and isinstance(other, str))
    return bool(one < other) if has_order else None
