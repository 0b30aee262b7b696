"""Bind lists and mappings to lists, tuples, sets and dictionaries. Only the binder uses this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from hyperfleet.documents.binding import INVALID, Binding, Slot
from hyperfleet.documents.constraints import check_length
from hyperfleet.documents.nodes import ListNode, MappingNode, to_plain
from hyperfleet.documents.pointer import join
from hyperfleet.documents.wording import describe_found

if TYPE_CHECKING:
    from collections.abc import Collection


def bind_any(run: Binding, info: inspect.AnyType, slot: Slot) -> Any:
    """Accept any value."""
    return to_plain(slot.node)


def bind_list(run: Binding, info: Any, slot: Slot) -> Any:
    """Accept a list whose items have one type."""
    if not isinstance(slot.node, ListNode):
        return run.reject(slot)
    values = [run.bind(info.item_type, item, join(slot.path, index)) for index, item in enumerate(slot.node.items)]
    checked = run.pass_checked(values, slot, check_length(info, len(values), "item"))
    if run.is_salvaging:
        return [None if value is INVALID else value for value in values]
    return INVALID if _is_any_invalid(values) else checked


def bind_tuple(run: Binding, info: inspect.VarTupleType, slot: Slot) -> Any:
    """Accept a list whose items have one type, as a tuple."""
    values = bind_list(run, info, slot)
    return values if values is INVALID else tuple(values)


def bind_row(run: Binding, info: inspect.TupleType, slot: Slot) -> Any:
    """Accept a list with a type for each position."""
    if not isinstance(slot.node, ListNode) or len(slot.node.items) != len(info.item_types):
        return run.reject(Slot(slot.node, slot.path, f"a list of {len(info.item_types)} items"))
    pairs = enumerate(zip(info.item_types, slot.node.items, strict=True))
    values = [run.bind(item_type, item, join(slot.path, index)) for index, (item_type, item) in pairs]
    return INVALID if _is_any_invalid(values) else tuple(values)


def bind_set(run: Binding, info: inspect.SetType | inspect.FrozenSetType, slot: Slot) -> Any:
    """Accept a list without duplicates."""
    values = bind_list(run, info, slot)
    if values is INVALID or not isinstance(slot.node, ListNode):
        return INVALID
    seen = set()
    for index, (value, item) in enumerate(zip(values, slot.node.items, strict=True)):
        if value in seen:
            message = f"{describe_found(item)} is in this list twice"
            run.report(item, join(slot.path, index), "DuplicateItem", message)
        seen.add(value)
    return frozenset(seen) if isinstance(info, inspect.FrozenSetType) else seen


def bind_dict(run: Binding, info: inspect.DictType, slot: Slot) -> Any:
    """Accept a mapping with any keys, whose values have one type."""
    if not isinstance(slot.node, MappingNode):
        return run.reject(slot)
    values = {}
    for entry in slot.node.entries:
        path = join(slot.path, entry.key.name)
        key = run.bind(info.key_type, entry.key, path)
        values[key] = run.bind(info.value_type, entry.value, path)
    checked = run.pass_checked(values, slot, check_length(info, len(slot.node.entries), "key"))
    return INVALID if _is_any_invalid(values) or _is_any_invalid(values.values()) else checked


def _is_any_invalid(values: Collection[object]) -> bool:
    return any(value is INVALID for value in values)
