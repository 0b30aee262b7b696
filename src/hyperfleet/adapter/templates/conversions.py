"""`int`, `float` and their kin. As in the Go adapter, what is not a number gives 0, not a fault."""

from __future__ import annotations

import re
from typing import Final

from hyperfleet.adapter.templates.literals import LARGEST, SMALLEST
from hyperfleet.adapter.templates.values import Value

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_LONGEST: Final = 400  # characters; no number needs more, and Python refuses very long integers


def to_int(value: Value) -> int:
    """Return a value as an integer of 64 bits, cut towards zero."""
    if isinstance(value, str):
        return _parse_int(value)
    if type(value) is float:
        # Out of range Go gives what the processor gives: the smallest integer.
        return int(value) if SMALLEST <= value < LARGEST else SMALLEST
    return value if type(value) is int else 0


def _parse_int(text: str) -> int:
    if len(text) > _LONGEST or not _INTEGER.fullmatch(text):
        return 0
    return min(max(int(text), SMALLEST), LARGEST)


def to_float(value: Value) -> float:
    """Return a value as a float."""
    if isinstance(value, str):
        return float(value) if len(value) <= _LONGEST and _FLOAT.fullmatch(value) else 0.0
    if type(value) is int:
        return float(min(max(value, SMALLEST), LARGEST))
    return value if type(value) is float else 0.0
