"""Convert the value of a param to the type that its file asks for, by the rules of the Go adapter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from hyperfleet.adapter.config import Conversion

_TRUE: Final = frozenset(("true", "yes", "y", "on", "1"))
_FALSE: Final = frozenset(("false", "no", "n", "off", "0", ""))
_MAX_DIGITS: Final = 40  # of a number in a text; a longer one is none that fits


class Converted(NamedTuple):
    """A value of the right type, or why there is none. The text never has the value: that may be secret."""

    value: Any
    fault: str = ""


def convert(value: Any, conversion: Conversion | None) -> Converted:
    """Return a value as another type; None stays None."""
    if conversion is None or value is None:
        return Converted(value)
    try:
        return Converted(_CONVERSIONS[conversion](value))
    except (ValueError, OverflowError):
        return Converted(None, f"a value of the type {_name(value)} cannot be converted to {conversion}")


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # numbers of JSON have no type
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else str(value)


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        text = _short(value)
        number = int(text) if text.lstrip("+-").isdigit() else math.trunc(float(text))
        return _fit(number)
    if isinstance(value, bool | int | float):
        return _fit(math.trunc(value))
    raise ValueError("no number")


def _to_float(value: Any) -> float:
    if isinstance(value, str):
        return _finite(float(_short(value)))
    if isinstance(value, bool | int | float):
        return _finite(float(value))
    raise ValueError("no number")


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value != 0
    text = value.strip().lower() if isinstance(value, str) else None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError("no boolean")


def _short(text: str) -> str:
    text = text.strip()
    if not text.isascii() or "_" in text or len(text) > _MAX_DIGITS:
        raise ValueError("no number")
    return text


def _fit(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ValueError("too large")
    return number


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("not finite")
    return number


def _name(value: Any) -> str:
    return {str: "string", dict: "map", list: "list", bool: "bool", float: "float"}.get(type(value), "number")


_CONVERSIONS: Final[Mapping[Conversion, Callable[[Any], Any]]] = {
    "string": _to_text,
    "int": _to_int,
    "float": _to_float,
    "bool": _to_bool,
}
