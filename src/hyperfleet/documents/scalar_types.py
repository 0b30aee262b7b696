"""Bind scalars to booleans, numbers, text, durations and choices. Only the binder uses this."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import inspect

from hyperfleet.documents.binding import Binding, Slot, scalar_of
from hyperfleet.documents.constraints import check_number, check_text
from hyperfleet.documents.durations import parse_duration
from hyperfleet.documents.nodes import ScalarNode
from hyperfleet.documents.wording import choices_of, quote, suggest

if TYPE_CHECKING:
    from hyperfleet.documents.nodes import Node


def bind_none(run: Binding, info: inspect.NoneType, slot: Slot) -> Any:
    """Accept an empty value."""
    return None if scalar_of(slot.node) is None else run.reject(slot)


def bind_bool(run: Binding, info: inspect.BoolType, slot: Slot) -> Any:
    """Accept true or false."""
    value = scalar_of(slot.node)
    if isinstance(value, bool):
        return value
    is_quoted = isinstance(value, str) and value.lower() in ("true", "false")
    return run.reject(slot, ": leave out the quotes" if is_quoted else "")


def bind_int(run: Binding, info: inspect.IntType, slot: Slot) -> Any:
    """Accept a whole number, also written 3.0 as JSON Schema allows."""
    value = _number_of(slot.node)
    if value is None or value != int(value):
        return run.reject(slot)
    return run.pass_checked(int(value), slot, check_number(info, int(value)))


def bind_float(run: Binding, info: inspect.FloatType, slot: Slot) -> Any:
    """Accept a finite number."""
    value = _number_of(slot.node)
    if value is None:
        return run.reject(slot)
    return run.pass_checked(float(value), slot, check_number(info, value))


def bind_text(run: Binding, info: inspect.StrType, slot: Slot) -> Any:
    """Accept text; what YAML reads as another type must be quoted, so that nothing is guessed."""
    value = scalar_of(slot.node)
    if not isinstance(value, str):
        return run.reject(slot, _advise_quotes(slot.node))
    return run.pass_checked(value, slot, check_text(info, value, slot.expected))


def bind_duration(run: Binding, info: inspect.TimeDeltaType, slot: Slot) -> Any:
    """Accept a duration such as 10m."""
    value = scalar_of(slot.node)
    if not isinstance(value, str):
        number = _number_of(slot.node)
        return run.reject(slot, "" if number is None else f": add a unit, such as {number}s")
    try:
        return parse_duration(value)
    except ValueError as error:
        return run.report(slot.node, slot.path, "NotAllowed", str(error))


def bind_choice(run: Binding, info: inspect.LiteralType | inspect.EnumType, slot: Slot) -> Any:
    """Accept one of a closed set of values."""
    node, choices = slot.node, choices_of(info)
    if not isinstance(node, ScalarNode):
        return run.reject(slot)
    # Compare the type as well: in Python, 1 == True.
    if any(type(node.value) is type(choice) and node.value == choice for choice in choices):
        return info.cls(node.value) if isinstance(info, inspect.EnumType) else node.value
    if not isinstance(node.value, str) and node.text in choices:
        return run.reject(slot, _advise_quotes(node))
    texts = tuple(choice for choice in choices if isinstance(choice, str))
    return run.reject(slot, suggest(node.text, texts), code="NotAllowed")


def _number_of(node: Node) -> int | float | None:
    """Return the finite number a node holds; a boolean is not one."""
    value = scalar_of(node)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _advise_quotes(node: Node) -> str:
    """Suggest quotes for a number or a boolean that should be text."""
    if isinstance(node, ScalarNode) and isinstance(node.value, bool | int | float):
        return f": put it in quotes, {quote(node.text)}"
    return ""
