"""The functions that turn one kind of value into another: numbers, text, base64, and the name of a type."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.budget import grow, scan
from hyperfleet.expr.runtime.jsontext import read_json, write_json
from hyperfleet.expr.runtime.numbers import LARGEST, SMALLEST, to_int
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import StructValue, adopt, as_string, kind_name, type_name
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Month, Time, Weekday
from hyperfleet.expr.temporal.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
# Neither of the two can match a digit in two ways: that would take quadratic time on a long text that is no number.
_DIGITS = r"[0-9](?:_?[0-9])*"
_FLOAT = re.compile(
    rf"[+-]?(?:(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)
_HEX_FLOAT = re.compile(r"[+-]?0x[0-9a-f_]*(?:\.[0-9a-f_]*)?p[+-]?[0-9]+", re.ASCII | re.IGNORECASE)


def to_integer(_: Budget, value: Value) -> int:
    """Return a number, or the number that a string spells, as an integer."""
    given = adopt(value)
    if type(given) is str:
        number = int(given) if len(given) < 64 and _INTEGER.fullmatch(given) else LARGEST + 1
        if SMALLEST <= number <= LARGEST:
            return number
        raise EvaluationFault(f"invalid operation: int({given})")
    if type(given) in (Duration, Month, Weekday):
        return int(given)
    if given is None:
        raise EvaluationFault("reflect: call of reflect.Value.Type on zero Value")
    return to_int(given)


def to_number(budget: Budget, value: Value) -> float:
    """Return a number, or the number that a string spells, as a float."""
    given = adopt(value)
    if type(given) is str:
        scan(budget, 4 * len(given))
        number = _spelled(given)
        if number is not None:
            return number
        raise EvaluationFault(f"invalid operation: float({given})")
    if type(given) in (int, float):
        return float(given)
    raise EvaluationFault(f"invalid operation: float({type_name(given)})")


def _spelled(text: str) -> float | None:
    """Return the float that a text spells, if it is one and has a finite value or says otherwise itself."""
    if _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except (ValueError, OverflowError):
            return None
    if not _FLOAT.fullmatch(text):
        return None
    number = float(text.replace("_", ""))
    spelled_out = text.lstrip("+-")[:1].isalpha()
    return number if spelled_out or number - number == 0.0 else None


def to_text(budget: Budget, value: Value) -> str:
    """Return a value as text."""
    return show(value, budget)


_TYPES = {
    "invalid": "nil",
    "float64": "float",
    "slice": "array",
}


def type_of(_: Budget, value: Value) -> str:
    """Return the name of a value's kind; a struct and the types of time go by their own name."""
    if isinstance(value, StructValue) or type(adopt(value)) in (Time, Duration, Month, Weekday):
        return type_name(value)
    if isinstance(value, Zone):
        return "time.Location"
    kind = kind_name(value)
    return _TYPES.get(kind, kind)


def to_json(budget: Budget, value: Value) -> str:
    """Return a value as JSON, indented by two blanks."""
    text = write_json(value, budget)
    grow(budget, len(text))
    return text


def from_json(budget: Budget, text: Value) -> Value:
    """Return the value that a JSON text says; its numbers are floats."""
    given = as_string(text)
    scan(budget, 16 * len(given))
    return read_json(given)


def to_base64(budget: Budget, text: Value) -> str:
    """Return the bytes of a string in base64."""
    given = as_string(text)
    grow(budget, 2 * len(given))
    return base64.b64encode(given.encode("utf-8", "surrogateescape")).decode("ascii")


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)


def from_base64(budget: Budget, text: Value) -> str:
    """Return the string whose bytes a base64 text says."""
    given = as_string(text)
    scan(budget, 2 * len(given))
    packed = given.replace("\n", "").replace("\r", "")
    if not _BASE64.fullmatch(packed):
        raise EvaluationFault(f"illegal base64 data at input byte {_first_illegal(packed)}")
    try:
        return base64.b64decode(packed).decode("utf-8", "surrogateescape")
    except binascii.Error:
        raise EvaluationFault(f"illegal base64 data at input byte {len(packed)}") from None


def _first_illegal(packed: str) -> int:
    """Return where a base64 text goes wrong: at the end of its good part, or where a group is not complete."""
    good = _BASE64.match(packed)
    start = good.end() if good else 0
    rest = packed[start:]
    if start and packed[start - 1] == "=":
        return start  # nothing may follow the padding
    digits = re.match(r"[A-Za-z0-9+/]*", rest)
    count = digits.end() if digits else 0
    if count == len(rest):
        return start  # the text ends within a group: the group as a whole is wrong
    if rest[count] == "=" and count >= 2:
        return start + len(rest[:4]) if len(rest) < 4 else start + count + 1
    return start + count


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "int": to_integer,
    "float": to_number,
    "string": to_text,
    "type": type_of,
    "toJSON": to_json,
    "fromJSON": from_json,
    "toBase64": to_base64,
    "fromBase64": from_base64,
}
