"""Describe expected types and found values, in terms of YAML.

A type may have its own description: `Meta(extra={"expected": "a name such as dns"})`.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import inspect

from hyperfleet.documents.nodes import ListNode, MappingNode, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# A longer quotation would hide the message around it.
MAX_QUOTE: Final = 40


def quote(text: str) -> str:
    """Put text in quotes, cut to a readable length."""
    shown = text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"
    return '"' + shown.replace("\n", "⏎") + '"'


def describe_found(node: Node) -> str:
    """Describe a node."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    match node.value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean {node.text}"
        case int() | float():
            return f"the number {node.text}"
        case _:
            return f"the text {quote(node.text)}"


def describe_expected(info: inspect.Type) -> str:
    """Describe what a type expects."""
    describe = _EXPECTED.get(type(info))
    return describe(info) if describe else "a value"


def list_choices(values: Iterable[object]) -> str:
    """List allowed values, quoted if they are text."""
    return ", ".join(map(_write, values))


@lru_cache(maxsize=256)  # aliases and repeated items repeat the lookup
def suggest(name: str, known: tuple[str, ...]) -> str:
    """Return a "did you mean" with the closest name, or nothing."""
    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), list(by_fold), n=1)
    return f', did you mean "{by_fold[close[0]]}"?' if close else ""


def count(number: int, noun: str) -> str:
    """Write `1 item`, `2 items`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def choices_of(info: inspect.LiteralType | inspect.EnumType) -> tuple[object, ...]:
    """Return the values that a closed set of choices allows, as they are written."""
    if isinstance(info, inspect.EnumType):
        return tuple(member.value for member in info.cls)
    return info.values


def _write(value: object) -> str:
    """Write a value as YAML does."""
    if isinstance(value, str):
        return f'"{value}"'
    return "nothing" if value is None else str(value).lower()


def _one_of(info: inspect.LiteralType | inspect.EnumType) -> str:
    choices = choices_of(info)
    return list_choices(choices) if len(choices) == 1 else f"one of {list_choices(choices)}"


def _annotated(info: inspect.Metadata) -> str:
    own = (info.extra or {}).get("expected")
    return str(own) if own else describe_expected(info.type)


def _any_of(info: inspect.UnionType) -> str:
    return " or ".join(dict.fromkeys(describe_expected(option) for option in info.types))


def _always(words: str) -> Callable[[Any], str]:
    return lambda info: words


_EXPECTED: Final[dict[type[inspect.Type], Callable[[Any], str]]] = {
    inspect.NoneType: _always("nothing"),
    inspect.BoolType: _always("true or false"),
    inspect.IntType: _always("a whole number"),
    inspect.FloatType: _always("a number"),
    inspect.StrType: _always("text"),
    inspect.TimeDeltaType: _always("a duration such as 10m"),
    inspect.LiteralType: _one_of,
    inspect.EnumType: _one_of,
    inspect.ListType: _always("a list"),
    inspect.VarTupleType: _always("a list"),
    inspect.TupleType: _always("a list"),
    inspect.SetType: _always("a list"),
    inspect.FrozenSetType: _always("a list"),
    inspect.DictType: _always("a mapping"),
    inspect.StructType: _always("a mapping"),
    inspect.UnionType: _any_of,
    inspect.Metadata: _annotated,
}
