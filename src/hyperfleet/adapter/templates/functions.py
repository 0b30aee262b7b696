"""What the functions of templates do. `and` and `or` are in the evaluator, as they do not evaluate all arguments."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Final

from hyperfleet.adapter.templates import conversions
from hyperfleet.adapter.templates.budget import RenderBudget, RenderingFault
from hyperfleet.adapter.templates.formatting import format_text
from hyperfleet.adapter.templates.texts import lower, quote, title, upper
from hyperfleet.adapter.templates.values import NO_VALUE, Value, encode, equal, is_true, less, name_kind, show
from hyperfleet.expr.temporal.layouts import format_time
from hyperfleet.expr.temporal.times import Time

_SAFE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_QUERY: Final = ["+" if byte == 0x20 else chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in range(256)]
_HTML: Final = {"&quot;": "&#34;", "&#x27;": "&#39;"}  # Go writes these shorter


def _equal_any(_: RenderBudget, first: Value, *others: Value) -> bool:
    return any(equal(first, other) for other in others)


def _less_or_equal(one: Value, other: Value) -> bool:
    return less(one, other) or equal(one, other)


def _index(_: RenderBudget, item: Value, *keys: Value) -> Value:
    """Follow keys and positions; a missing key is nil, a missing position a fault."""
    if item is None:
        raise RenderingFault("nil has no items")
    for key in keys:
        item = _step(item, key)
    return item


def _step(item: Value, key: Value) -> Value:
    if isinstance(item, dict):
        if not isinstance(key, str):
            raise RenderingFault(f"the key of a map is a string, not {name_kind(key)}")
        return item.get(key)
    if isinstance(item, list):
        return item[_position(key, len(item) - 1)]
    if isinstance(item, str):
        content = encode(item)
        return content[_position(key, len(content) - 1)]
    raise RenderingFault(f"{name_kind(item)} has no items")


def _position(index: Value, last: int) -> int:
    if type(index) is not int:
        raise RenderingFault(f"a position is an integer, not {name_kind(index)}")
    if not 0 <= index <= last:
        raise RenderingFault(
            f"the position {index} is out of range" if abs(index) < 2**63 else "the position is out of range"
        )
    return index


def _slice(_: RenderBudget, item: Value, *bounds: Value) -> Value:
    """Cut a part out of a list or a string; strings count in bytes, and no character may be cut in two."""
    if not isinstance(item, str | list):
        raise RenderingFault(f"{name_kind(item)} has no parts")
    whole = encode(item) if isinstance(item, str) else item
    if len(bounds) > 2:
        raise RenderingFault("slice takes at most two positions")
    start = _position(bounds[0], len(whole)) if bounds else 0
    end = _position(bounds[1], len(whole)) if len(bounds) > 1 else len(whole)
    if start > end:
        raise RenderingFault(f"the part would end at {end}, before it starts at {start}")
    part = whole[start:end]
    if isinstance(part, list):
        return part
    try:
        return part.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise RenderingFault("the part would begin or end inside a character: positions count bytes") from None


def _length(_: RenderBudget, item: Value) -> int:
    if isinstance(item, str):
        return len(encode(item))
    if isinstance(item, list | dict):
        return len(item)
    raise RenderingFault(f"{name_kind(item)} has no length")


def _print(budget: RenderBudget, *values: Value) -> str:
    """Join values, with a blank between two of which neither is a string."""
    texts: list[str] = []
    for index, value in enumerate(values):
        if index and not isinstance(value, str) and not isinstance(values[index - 1], str):
            texts.append(" ")
        texts.append(show(value, budget))
        budget.check_size(sum(map(len, texts[-2:])))
    budget.check_size(sum(map(len, texts)))
    return "".join(texts)


def _print_line(budget: RenderBudget, *values: Value) -> str:
    texts = [show(value, budget) for value in values]
    budget.check_size(sum(map(len, texts)))
    return " ".join(texts) + "\n"


def _print_plainly(budget: RenderBudget, *values: Value) -> str:
    """Join values as they print in an action, where nil is `<no value>`."""
    return _print(budget, *(NO_VALUE if value is None else value for value in values))


def _escape_html(budget: RenderBudget, *values: Value) -> str:
    text = html.escape(_print_plainly(budget, *values)).replace("\0", "\ufffd")
    for long, short in _HTML.items():
        text = text.replace(long, short)
    return text


def _escape_query(budget: RenderBudget, *values: Value) -> str:
    content = encode(_print_plainly(budget, *values))
    return "".join(_QUERY[byte] for byte in content)


def _replace(budget: RenderBudget, text: str, old: str, new: str) -> str:
    budget.check_size(len(text) + text.count(old) * max(0, len(new) - len(old)))
    return text.replace(old, new)


def _format_date(_: RenderBudget, layout: str, moment: Time) -> str:
    return format_time(moment, layout)


def _default(_: RenderBudget, fallback: Value, value: Value) -> Value:
    return fallback if value is None or value == "" else value


FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "not": lambda _, value: not is_true(value),
    "eq": _equal_any,
    "ne": lambda _, one, other: not equal(one, other),
    "lt": lambda _, one, other: less(one, other),
    "le": lambda _, one, other: _less_or_equal(one, other),
    "gt": lambda _, one, other: not _less_or_equal(one, other),
    "ge": lambda _, one, other: not less(one, other),
    "index": _index,
    "slice": _slice,
    "len": _length,
    "print": _print,
    "println": _print_line,
    "printf": format_text,
    "html": _escape_html,
    "urlquery": _escape_query,
    "date": _format_date,
    "dateFormat": _format_date,
    "lower": lambda _, text: lower(text),
    "upper": lambda _, text: upper(text),
    "title": lambda _, text: title(text),
    "trim": lambda _, text: text.strip(),
    "trimPrefix": lambda _, text, prefix: text.removeprefix(prefix),
    "trimSuffix": lambda _, text, suffix: text.removesuffix(suffix),
    "replace": _replace,
    "contains": lambda _, text, part: part in text,
    "hasPrefix": lambda _, text, prefix: text.startswith(prefix),
    "hasSuffix": lambda _, text, suffix: text.endswith(suffix),
    "quote": lambda _, text: quote(text),
    "default": _default,
    "int": lambda _, value: conversions.to_int(value),
    "int64": lambda _, value: conversions.to_int(value),
    "float": lambda _, value: conversions.to_float(value),
    "float64": lambda _, value: conversions.to_float(value),
    "string": lambda budget, value: show(value, budget),
}
