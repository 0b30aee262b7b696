"""Look up conditions in a list, and compare two conditions.

A missing condition is Unknown: `is_unknown` is true for it, `is_true` and `is_false` are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus, find

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


def get(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the first condition of a type."""
    return find(conditions, type_)


def has(conditions: Iterable[Condition], type_: str) -> bool:
    """Tell whether a type is present at all."""
    return find(conditions, type_) is not None


def get_status(conditions: Iterable[Condition], type_: str) -> ConditionStatus:
    """Return the status of a type; a missing condition is Unknown."""
    condition = find(conditions, type_)
    return UNKNOWN if condition is None else condition.status


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Tell whether a type is present and True."""
    return get_status(conditions, type_) == TRUE


def is_false(conditions: Iterable[Condition], type_: str) -> bool:
    """Tell whether a type is present and False."""
    return get_status(conditions, type_) == FALSE


def is_unknown(conditions: Iterable[Condition], type_: str) -> bool:
    """Tell whether a type is Unknown or missing."""
    return get_status(conditions, type_) == UNKNOWN


def get_reason(conditions: Iterable[Condition], type_: str) -> str:
    """Return the reason of a type, or nothing when it is missing."""
    condition = find(conditions, type_)
    return "" if condition is None else condition.reason


def get_message(conditions: Iterable[Condition], type_: str) -> str:
    """Return the message of a type, or nothing when it is missing."""
    condition = find(conditions, type_)
    return "" if condition is None else condition.message


def get_last_transition_time(conditions: Iterable[Condition], type_: str) -> datetime | None:
    """Return when the status of a type last changed, if that is known."""
    condition = find(conditions, type_)
    return None if condition is None else condition.last_transition_time


def has_same_state(one: Condition, other: Condition, *, ignore_generation: bool = False) -> bool:
    """Tell whether two conditions are equal apart from their transition times."""
    other = replace(other, last_transition_time=one.last_transition_time)
    if ignore_generation:
        other = replace(other, observed_generation=one.observed_generation)
    return one == other
