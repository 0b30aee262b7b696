"""JSON as `toJSON` writes and `fromJSON` reads it: sorted keys, two blanks, `<>&` escaped, numbers as floats.

`write_line` is not of the language: it is how a person is shown a result.
"""

from __future__ import annotations

import base64
import json
import math
import re
from typing import TYPE_CHECKING, NoReturn

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.budget import grow, spend
from hyperfleet.expr.runtime.text import show, show_float
from hyperfleet.expr.runtime.values import AnyMap, StructValue, adopt, is_nil, type_name
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.layouts import RFC3339_NANO, format_time
from hyperfleet.expr.temporal.times import Month, Time, Weekday
from hyperfleet.expr.temporal.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value

_NO_TEXT = dict.fromkeys(range(0xD800, 0xE000), "\\ufffd")  # bytes that are no text, halves of characters
_ESCAPES = _NO_TEXT | str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def write_json(value: Value, budget: Budget) -> str:
    """Write a value as JSON, as `toJSON` does; fail where JSON has no word for it."""
    return _Writer(budget).write(value, "\n")


def write_line(value: Value, budget: Budget) -> str:
    """Write any value in one line of JSON, for people: what JSON has no word for is written as text."""
    return _LineWriter(budget).write(value, "")


class _Writer:
    """Writes values, paying for each part before it is made: shared parts are written every time they are met."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def write(self, value: Value, newline: str) -> str:
        """Write a value that starts within a line; `newline` starts the next one at its depth."""
        value = adopt(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, (dict, list)):
            spend(self.budget, 2 * len(value) + 8)
            return "null" if is_nil(value) else self.container(value, newline)
        writer = _SCALARS.get(type(value))
        return writer(value) if writer is not None else self.unknown(value)

    def container(self, value: Value, newline: str) -> str:
        """Write a list or a map, a part on each line."""
        inner = f"{newline}  "
        if isinstance(value, list):
            return self.enclosed("[]", (self.write(item, inner) for item in value), newline)
        entries = (f"{self.text(name)}: {self.write(value[key], inner)}" for name, key in self.names(value))
        return self.enclosed("{}", entries, newline)

    def enclosed(self, brackets: str, parts: Iterable[str], newline: str) -> str:
        """Write parts between brackets."""
        body = f",{newline}  ".join(parts)
        return f"{brackets[0]}{newline}  {body}{newline}{brackets[1]}" if body else brackets

    def names(self, mapping: dict[Value, Value]) -> list[tuple[str, Value]]:
        """Return the keys, each with its name, as they are written: a struct's as declared, a map's sorted."""
        if isinstance(mapping, AnyMap):
            raise self.unsupported(mapping)
        found = [(str(key), key) for key in mapping]
        return found if isinstance(mapping, StructValue) else sorted(found)

    def text(self, text: str) -> str:
        """Write a string."""
        grow(self.budget, len(text))
        return json.dumps(text, ensure_ascii=False).translate(_ESCAPES)

    def number(self, number: float) -> str:
        """Write a float."""
        if not math.isfinite(number):
            raise EvaluationFault(f"json: unsupported value: {show_float(number)}")
        return re.sub(r"e([+-])0(\d)$", r"e\1\2", show_float(number, largest=21, smallest=-7))

    def unknown(self, value: Value) -> str:
        """Write a value of another class."""
        raise self.unsupported(value)

    def unsupported(self, value: Value) -> EvaluationFault:
        """Say that JSON has no such values."""
        return EvaluationFault(f"json: unsupported type: {type_name(value)}")


class _LineWriter(_Writer):
    """Writes in one line, in the order of the values, and never refuses one."""

    def enclosed(self, brackets: str, parts: Iterable[str], _newline: str) -> str:
        return f"{brackets[0]}{', '.join(parts)}{brackets[1]}"

    def names(self, mapping: dict[Value, Value]) -> list[tuple[str, Value]]:
        return [(show(key, self.budget), key) for key in mapping]

    def text(self, text: str) -> str:
        grow(self.budget, len(text))
        return json.dumps(text, ensure_ascii=False).translate(_NO_TEXT)

    def number(self, number: float) -> str:
        return super().number(number) if math.isfinite(number) else self.unknown(number)

    def unknown(self, value: Value) -> str:
        return self.text(show(value, self.budget))


_SCALARS: dict[type, Callable[[Value], str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    bytes: lambda value: f'"{base64.b64encode(value).decode("ascii")}"',
    Time: lambda value: f'"{format_time(value, RFC3339_NANO)}"',
    Duration: lambda value: str(int(value)),
    Month: lambda value: str(int(value)),
    Weekday: lambda value: str(int(value)),
    Zone: lambda _: "{}",
}


def read_json(text: str) -> Value:
    """Read a JSON text."""
    try:
        value = json.loads(text, parse_int=_float, parse_float=_float, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise EvaluationFault(_explain(text, error)) from None
    return _mend(value) if "\\ud" in text.lower() else value


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise EvaluationFault(f"json: cannot unmarshal number {digits} into Go value of type float64")
    return number


def _refuse(name: str) -> NoReturn:
    raise EvaluationFault(f"invalid character '{name.lstrip('-')[0]}' looking for beginning of value")


def _mend(value: Value) -> Value:
    """Replace halves of characters that escapes may have left."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mend(item) for item in value]
    return {_mend(key): _mend(item) for key, item in value.items()} if isinstance(value, dict) else value


_COMPLAINTS = (
    ("Expecting property name", "looking for beginning of object key string"),
    ("Illegal trailing comma before end of object", "looking for beginning of object key string"),
    ("Expecting ':'", "after object key"),
    ("Extra data", "after top-level value"),
    ("Invalid control character", "in string literal"),
    ("Expecting value", "looking for beginning of value"),
)
_END = "unexpected end of JSON input"


def _explain(text: str, error: json.JSONDecodeError) -> str:
    """Say what is wrong with a JSON text in the original's words."""
    rest = text[error.pos :]
    if error.msg.startswith("Expecting value") and rest[:1] in (".", "e", "E"):  # no number comes before it
        return f"invalid character {_quoted(rest)} looking for beginning of value"
    if number := _NUMBER_PART.match(rest):
        broken = _quoted(rest[number.end() :] or " ")  # the end of the text counts as a blank
        return f"invalid character {broken} {_NUMBER_PARTS[rest[0]]} numeric literal"
    if literal := re.match(r"(?:t|f|n)", rest):
        return _explain_literal(rest, {"t": "true", "f": "false", "n": "null"}[literal.group()])
    if error.msg.startswith("Invalid \\u"):
        found = re.search(r"[^0-9a-fA-F]", text[error.pos + 1 :].lstrip("u"))
        return f"invalid character {_quoted(found.group())} in \\u hexadecimal character escape" if found else _END
    if error.msg.startswith("Invalid \\escape"):
        return f"invalid character {_quoted(rest[1:2])} in string escape code" if len(rest) > 1 else _END
    if error.msg.startswith("Unterminated") or not rest:
        return _END
    if error.msg.startswith("Expecting ','"):
        return f"invalid character {_quoted(rest[0])} after {_container(text[: error.pos])}"
    for complaint, words in _COMPLAINTS:
        if error.msg.startswith(complaint):
            return f"invalid character {_quoted(rest[0])} {words}"
    return f"invalid character {_quoted(rest[0])}"


# Where a number may break off: Python's reader stops before this, the original's after it.
_NUMBER_PART = re.compile(r"-(?![0-9])|\.(?![0-9])|[eE][+-]?(?![0-9])")
_NUMBER_PARTS = {"-": "in", ".": "after decimal point in", "e": "in exponent of", "E": "in exponent of"}


def _explain_literal(rest: str, literal: str) -> str:
    """Say where `true`, `false` or `null` goes wrong; the end of the text counts as a blank."""
    for place, wanted in enumerate(literal):
        found = rest[place] if place < len(rest) else " "
        if found != wanted:
            return f"invalid character {_quoted(found)} in literal {literal} (expecting '{wanted}')"
    return f"invalid character {_quoted(rest[0])} looking for beginning of value"


def _container(before: str) -> str:
    """Tell what is open at the end of a good piece of JSON."""
    brackets = re.sub(r'"(?:[^"\\]|\\.)*"', "", before)
    depth = 0
    for char in reversed(brackets):
        if char in "]}":
            depth += 1
        elif char in "[{":
            if depth == 0:
                return "array element" if char == "[" else "object key:value pair"
            depth -= 1
    return "top-level value"


def _quoted(text: str) -> str:
    """Quote the first byte of a text, as the original does: a character beyond ASCII shows only a part of itself."""
    char = chr(text.encode("utf-8", "surrogatepass")[0])
    if char in _NAMED:
        return _NAMED[char]
    return f"'{char}'" if char.isprintable() else f"'\\x{ord(char):02x}'"


_NAMED = {
    "'": "'\\''",
    "\\": "'\\\\'",
    "\a": "'\\a'",
    "\b": "'\\b'",
    "\f": "'\\f'",
    "\n": "'\\n'",
    "\r": "'\\r'",
    "\t": "'\\t'",
    "\v": "'\\v'",
}
