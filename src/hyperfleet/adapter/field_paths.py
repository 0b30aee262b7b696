"""`field` paths: where a value is in an API answer. kubectl's JSONPath, or `a.b` for `{.a.b}`.

    path = parse_field("{.items[?(@.adapter=='dns')].data.zone}").path
    found = path.find(answer)

One hit is the value, several are a list, and none is `missing` with the reason: no error, as the caller may have a
default. Only a wrong path is a fault. `field_parsing` reads paths; here they are followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct

from hyperfleet.adapter.comparison import is_less, is_same_value
from hyperfleet.adapter.faults import FaultSignal, SourceFault, make_fault
from hyperfleet.adapter.field_parsing import (
    ChildStep,
    DescendStep,
    FieldFilter,
    FieldStep,
    FilterOperand,
    FilterStep,
    ItemStep,
    SliceStep,
    UnionStep,
    WildcardStep,
    read_path,
)

MAX_VISITS: Final = 200_000  # values that are looked at; about 0.1 s, and more than any answer of an API holds


class FoundField(NamedTuple):
    """The value at a path, or why there is none; a null that is there is not missing."""

    value: Any
    missing: str = ""


class FieldPath(Struct, frozen=True):
    """A path without faults."""

    source: str
    steps: tuple[FieldStep, ...]

    @property
    def first_name(self) -> str:
        """Return the first name of the path, which says which variable it reads; empty if it reads any."""
        first = self.steps[0] if self.steps else None
        return first.name if isinstance(first, ChildStep) else ""

    def find(self, data: object) -> FoundField:
        """Follow the path. A string of nothing but blanks counts as null, as in the Go adapter."""
        hits: list[Any] = [data]
        search = _Search(data)
        for step in self.steps:
            try:
                hits = search.follow(hits, step)
            except _TooMuch:
                return FoundField(None, f"the path looks at more than {MAX_VISITS} values")
            if not hits:
                return FoundField(None, f"nothing at {step}")
        value = hits[0] if len(hits) == 1 else hits
        return FoundField(None if isinstance(value, str) and not value.strip() else value)


class ParsedField(NamedTuple):
    """A path, or what is wrong with its text."""

    path: FieldPath | None
    faults: tuple[SourceFault, ...] = ()


def parse_field(source: str) -> ParsedField:
    """Parse a path."""
    try:
        return ParsedField(FieldPath(source, read_path(source)))
    except FaultSignal as fault:
        return ParsedField(None, (make_fault(source, fault.offset, fault.message),))


class _TooMuch(Exception):  # noqa: N818 - an internal signal
    pass


class _Search:
    """One search, with what is left of its bound."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._visits = MAX_VISITS

    def follow(self, values: list[Any], step: FieldStep) -> list[Any]:
        found: list[Any] = []
        for value in values:
            for hit in self._step(value, step):
                self._visit()
                found.append(hit)
        return found

    def _visit(self) -> None:
        self._visits -= 1
        if self._visits < 0:
            raise _TooMuch

    def _step(self, value: Any, step: FieldStep) -> Iterator[Any]:
        match step:
            case ChildStep():
                if isinstance(value, dict) and step.name in value:
                    yield value[step.name]
            case WildcardStep():
                yield from _children(value)
            case UnionStep():
                for each in step.steps:
                    yield from self._step(value, each)
            case DescendStep():
                yield from self._descend(value)
            case ItemStep() | SliceStep() | FilterStep() if isinstance(value, list):
                yield from self._select(value, step)

    def _select(self, items: list[Any], step: ItemStep | SliceStep | FilterStep) -> Iterator[Any]:
        """Yield the items of a list that a step means."""
        if isinstance(step, FilterStep):
            yield from (item for item in items if self._passes(item, step.condition))
        elif isinstance(step, SliceStep):
            yield from items[step.start : step.end : step.stride]
        elif -len(items) <= step.index < len(items):
            yield items[step.index]

    def _descend(self, value: Any) -> Iterator[Any]:
        """Yield a value and everything in it, parents first."""
        waiting = [value]
        while waiting:
            current = waiting.pop()
            yield current
            waiting += reversed(list(_children(current)))

    def _passes(self, item: Any, condition: FieldFilter) -> bool:
        """Tell whether an item passes; one that lacks the field, or has another type, does not."""
        self._visit()
        left = self._operand(item, condition.left)
        if condition.right is None:
            return bool(left)
        right = self._operand(item, condition.right)
        if len(left) != 1 or len(right) != 1:
            return False
        return _compare(left[0], condition.operator, right[0])

    def _operand(self, item: Any, operand: FilterOperand) -> list[Any]:
        if operand.origin == "literal":
            return [operand.value]
        values = [item if operand.origin == "@" else self._root]
        for step in operand.steps:
            values = self.follow(values, step)
        return values


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _compare(left: Any, operator: str, right: Any) -> bool:
    if operator in ("==", "!="):
        return is_same_value(left, right) == (operator == "==")
    if operator in (">", "<="):
        before = is_less(right, left)
        return before is not None and before == (operator == ">")
    before = is_less(left, right)
    return before is not None and before == (operator == "<")
