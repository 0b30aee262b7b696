"""`printf`: Go's verbs for the values that templates have.

Where Go writes its complaint into the text (`%!d(string=x)`), this is a fault with a place: no object should ever hold
such a text. Whole numbers fit the verbs of floats and the other way round, as an API answer does not tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from hyperfleet.adapter.templates.budget import RenderBudget, RenderingFault
from hyperfleet.adapter.templates.texts import quote
from hyperfleet.adapter.templates.values import Value, encode, name_kind, show, show_integer
from hyperfleet.expr.runtime.text import show_float

_VERB: Final = re.compile(r"%([-+# 0]*)(\d+|\*)?(?:\.(\d+|\*)?)?(.?)", re.DOTALL)
_MAX_WIDTH: Final = 1_000  # no column is wider, and a text must not be blown up


class _Verb(NamedTuple):
    """One verb with its flags; -1 is no precision."""

    flags: str
    width: int
    precision: int
    letter: str


def format_text(budget: RenderBudget, layout: str, *values: Value) -> str:
    """Write values as a layout says."""
    remaining = list(reversed(values))
    texts: list[str] = []
    size = last = 0
    for found in _VERB.finditer(layout):
        piece = _format_verb(budget, found, remaining)
        texts += [layout[last : found.start()], piece]
        size += found.start() - last + len(piece)
        budget.check_size(size)
        last = found.end()
    if remaining:
        raise RenderingFault(f"printf gets {len(values)} values, and the layout uses {len(values) - len(remaining)}")
    return budget.hold("".join([*texts, layout[last:]]))


def _format_verb(budget: RenderBudget, found: re.Match[str], remaining: list[Value]) -> str:
    flags, width, precision, letter = found.groups()
    if letter == "%":
        return "%"
    has_precision = "." in found[0][: -len(letter) or None]
    verb = _Verb(
        flags,
        _number(width, remaining) if width else 0,
        _number(precision or "0", remaining) if has_precision else -1,
        letter,
    )
    if letter not in _WRITERS:
        raise RenderingFault(
            f"printf knows no %{letter}" if letter.isprintable() and letter else "the layout ends with %"
        )
    if not remaining:
        raise RenderingFault(f"printf has no value for {found[0]}")
    return _pad(verb, _WRITERS[letter](budget, verb, remaining.pop()))


def _number(text: str, remaining: list[Value]) -> int:
    value = (remaining.pop() if remaining else None) if text == "*" else int(text[:9])
    if type(value) is not int or not 0 <= value <= _MAX_WIDTH:
        raise RenderingFault(f"a width or precision of printf is an integer from 0 to {_MAX_WIDTH}")
    return value


def _pad(verb: _Verb, text: str) -> str:
    if "-" in verb.flags:
        return text.ljust(verb.width)
    if "0" not in verb.flags or verb.letter not in "dfFeEgGxXob" or (verb.letter == "d" and verb.precision >= 0):
        return text.rjust(verb.width)
    sign = text[:1] if text[:1] in ("+", "-", " ") else ""
    return sign + text[len(sign) :].rjust(verb.width - len(sign), "0")


def _refuse(verb: _Verb, value: Value) -> RenderingFault:
    return RenderingFault(f"%{verb.letter} of printf cannot write {name_kind(value)}")


def _integer(verb: _Verb, value: Value) -> int:
    if type(value) is float and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if type(value) is not int:
        raise _refuse(verb, value)
    show_integer(value)  # refuses one that is too large
    return value


def _float(verb: _Verb, value: Value) -> float:
    if type(value) not in (int, float):
        raise _refuse(verb, value)
    return value if type(value) is float else float(_integer(verb, value))


def _signed(verb: _Verb, text: str) -> str:
    if text.startswith(("-", "+")):
        return text
    return "+" + text if "+" in verb.flags else " " + text if " " in verb.flags else text


def _write_any(budget: RenderBudget, verb: _Verb, value: Value) -> str:
    text = show(value, budget)
    return text[: verb.precision] if verb.precision >= 0 and isinstance(value, str) else text


def _write_string(budget: RenderBudget, verb: _Verb, value: Value) -> str:
    if not _has_only_texts(value, 0):
        raise _refuse(verb, value)
    return _write_any(budget, verb, value)


def _has_only_texts(value: Value, depth: int) -> bool:
    if isinstance(value, list | dict) and depth < 32:
        inner = value.values() if isinstance(value, dict) else value
        return all(_has_only_texts(each, depth + 1) for each in inner)
    return isinstance(value, str)


def _write_quoted(_: RenderBudget, verb: _Verb, value: Value) -> str:
    if not isinstance(value, str):
        raise _refuse(verb, value)
    return quote(value[: verb.precision] if verb.precision >= 0 else value)


def _write_boolean(_: RenderBudget, verb: _Verb, value: Value) -> str:
    if not isinstance(value, bool):
        raise _refuse(verb, value)
    return "true" if value else "false"


def _write_integer(_: RenderBudget, verb: _Verb, value: Value) -> str:
    number = _integer(verb, value)
    digits = str(abs(number)).rjust(max(verb.precision, 0), "0")
    return _signed(verb, f"-{digits}" if number < 0 else digits)


def _write_in_base(_: RenderBudget, verb: _Verb, value: Value) -> str:
    if isinstance(value, str) and verb.letter in "xX":
        digits = encode(value).hex()
        return digits.upper() if verb.letter == "X" else digits
    return _signed(verb, format(_integer(verb, value), verb.letter))


def _write_character(_: RenderBudget, verb: _Verb, value: Value) -> str:
    number = _integer(verb, value)
    return chr(number) if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "\ufffd"


def _write_float(_: RenderBudget, verb: _Verb, value: Value) -> str:
    number = _float(verb, value)
    if number - number != 0:  # infinite, or not a number
        return show_float(number)
    if verb.letter in "gG" and verb.precision < 0:
        text = show_float(number)
    else:
        text = format(number, f".{verb.precision if verb.precision >= 0 else 6}{verb.letter}")
    return _signed(verb, text.upper() if verb.letter in "EG" else text)


_WRITERS: Final[Mapping[str, Callable[[RenderBudget, _Verb, Value], str]]] = {
    "v": _write_any,
    "s": _write_string,
    "q": _write_quoted,
    "t": _write_boolean,
    "d": _write_integer,
    "x": _write_in_base,
    "X": _write_in_base,
    "o": _write_in_base,
    "b": _write_in_base,
    "c": _write_character,
    **dict.fromkeys("fFeEgG", _write_float),
}
