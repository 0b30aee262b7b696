"""The functions on strings.

Positions count UTF-8 bytes, as in the original; lengths (`len`) count code points. A slice through the middle of
a character leaves bytes that are no text; they are kept as Python's surrogate escapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.faults import BudgetExhausted, EvaluationFault
from hyperfleet.expr.runtime.budget import allocate, grow, read, scan, spend, visit
from hyperfleet.expr.runtime.numbers import to_int
from hyperfleet.expr.runtime.values import LISTS, NilSlice, adopt, as_string, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value

# Unicode's White_Space; Python's own idea of blanks includes four separators more.
BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

_MANY = 64  # characters among which it pays to look for doubles
_COMPARED = 16_384  # pairs of characters that a step of work pays for

_MOST_REPEATS = 1_000_000  # the original refuses more before it looks at its memory budget


def _text(budget: Budget, value: Value) -> str:
    """Return an argument that must be a string, having paid for looking at it."""
    text = as_string(value)
    scan(budget, len(text))
    return text


def trim(budget: Budget, text: Value, characters: Value = BLANKS) -> str:
    """Return `text` without blanks, or the given characters, at both ends."""
    given = _text(budget, text)
    wanted = _text(budget, characters)
    if len(wanted) > _MANY:
        wanted = "".join(set(wanted))
    spend(budget, len(given) * len(wanted) // _COMPARED)
    return given.strip(wanted) if wanted else given


def trim_prefix(budget: Budget, text: Value, prefix: Value = " ") -> str:
    """Return `text` without one `prefix`."""
    wanted = as_string(prefix)  # looked at first, as in the original
    return _text(budget, text).removeprefix(wanted)


def trim_suffix(budget: Budget, text: Value, suffix: Value = " ") -> str:
    """Return `text` without one `suffix`."""
    wanted = as_string(suffix)
    return _text(budget, text).removesuffix(wanted)


def upper(budget: Budget, text: Value) -> str:
    """Return `text` in capitals."""
    given = _text(budget, text)
    return given.upper() if given.isascii() else _each(budget, _upper_one, given)


def lower(budget: Budget, text: Value) -> str:
    """Return `text` in small letters."""
    given = _text(budget, text)
    return given.lower() if given.isascii() else _each(budget, _lower_one, given)


def _each(budget: Budget, change: Callable[[str], str], text: str) -> str:
    """Change a text letter by letter."""
    read(budget, len(text))
    return "".join(map(change, text))


def _upper_one(char: str) -> str:
    changed = char.upper()
    if len(changed) > 1:
        changed = char.title()  # the capital that is one letter, if there is one: `ᾳ` becomes `ᾼ`
    return changed if len(changed) == 1 else char  # `ß` stays: case is changed letter by letter


def _lower_one(char: str) -> str:
    return char.lower()[0]  # only `İ` gives two


def split(budget: Budget, text: Value, separator: Value, most: Value = -1) -> list[Value]:
    """Cut `text` at every `separator`, into at most `most` parts."""
    parts = _split(_text(budget, text), as_string(separator), to_int(most))
    scan(budget, 8 * len(parts))
    return parts


def split_after(budget: Budget, text: Value, separator: Value, most: Value = -1) -> list[Value]:
    """Cut `text` behind every `separator`, into at most `most` parts."""
    given, glue = _text(budget, text), as_string(separator)
    parts = _split(given, glue, to_int(most))
    scan(budget, 8 * len(parts))
    return [part + glue for part in parts[:-1]] + parts[-1:] if parts else parts


def _split(text: str, separator: str, most: int) -> list[Value]:
    if most == 0:
        return NilSlice()
    if separator:
        return list(text.split(separator, most - 1 if most > 0 else -1))
    count = len(text) if most < 0 else min(most, len(text))
    return [*text[: count - 1], text[count - 1 :]] if count else []


def replace(budget: Budget, text: Value, old: Value, new: Value, most: Value = -1) -> str:
    """Return `text` with `old` replaced by `new`, at most `most` times."""
    given, was, becomes, times = _text(budget, text), as_string(old), as_string(new), to_int(most)
    found = len(given) + 1 if not was else given.count(was)
    found = found if times < 0 else min(found, times)
    grow(budget, len(given) + found * (len(becomes) - len(was)))
    return given.replace(was, becomes, times if times >= 0 else -1)


def repeat(budget: Budget, text: Value, times: Value) -> str:
    """Return `text` `times` times over."""
    given, count = _text(budget, text), to_int(times)
    if count < 0:
        raise EvaluationFault(f"invalid argument for repeat (expected positive integer, got {count})")
    if count > _MOST_REPEATS:
        raise BudgetExhausted("memory budget exceeded")
    size = len(given.encode("utf-8", "surrogateescape")) * count
    allocate(budget, size)
    scan(budget, size)
    return given * count


def join(budget: Budget, items: Value, glue: Value = "") -> str:
    """Return all strings of a list in one, with `glue` between."""
    between = as_string(glue)
    given = adopt(items)
    if not isinstance(given, LISTS):
        name = "%!s(<nil>)" if given is None else type_name(given)
        raise EvaluationFault(f"invalid argument for join (type {name})")
    visit(budget, len(given))
    parts = [as_string(item) for item in given]
    grow(budget, sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def index_of(budget: Budget, text: Value, wanted: Value) -> int:
    """Return where `wanted` starts in `text` first, or -1."""
    given = _text(budget, text)
    return _byte_offset(given, given.find(as_string(wanted)))


def last_index_of(budget: Budget, text: Value, wanted: Value) -> int:
    """Return where `wanted` starts in `text` last, or -1."""
    given, part = _text(budget, text), as_string(wanted)
    # Backwards by `find`: Python's `rfind` takes quadratic time at worst.
    found = given[::-1].find(part[::-1])
    return _byte_offset(given, len(given) - found - len(part) if found >= 0 else -1)


def _byte_offset(text: str, place: int) -> int:
    if place <= 0 or text.isascii():
        return place
    return len(text[:place].encode("utf-8", "surrogateescape"))


def has_prefix(budget: Budget, text: Value, prefix: Value) -> bool:
    """Tell whether `text` starts with `prefix`."""
    return _text(budget, text).startswith(as_string(prefix))


def has_suffix(budget: Budget, text: Value, suffix: Value) -> bool:
    """Tell whether `text` ends with `suffix`."""
    return _text(budget, text).endswith(as_string(suffix))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "trim": trim,
    "trimPrefix": trim_prefix,
    "trimSuffix": trim_suffix,
    "upper": upper,
    "lower": lower,
    "split": split,
    "splitAfter": split_after,
    "replace": replace,
    "repeat": repeat,
    "join": join,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "hasPrefix": has_prefix,
    "hasSuffix": has_suffix,
}
