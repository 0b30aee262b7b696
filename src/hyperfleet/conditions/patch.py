"""Patch: apply changes of a list of conditions to a list that others may have changed in the meantime.

A three-way merge: `diff` the list as read with the wanted one, `apply_patch` to the latest. Owned types are
overwritten; for all others a concurrent change is a conflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from hyperfleet.conditions.lookup import get, has, has_same_state
from hyperfleet.conditions.order import default_order
from hyperfleet.conditions.transition import delete_condition, set_condition, sort_conditions
from hyperfleet.errors import MergeError

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from hyperfleet.conditions.transition import Order
    from hyperfleet.model.condition import Condition


class ConditionChange(Struct, frozen=True):
    """One changed type: added if there is no `before`, removed if there is no `after`."""

    type: str
    before: Condition | None
    after: Condition | None


Patch = tuple[ConditionChange, ...]


def diff(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> Patch:
    """List what changed: additions and changes in the order of `after`, then removals."""
    written = [ConditionChange(c.type, get(before, c.type), c) for c in after]
    removed = [ConditionChange(c.type, c, None) for c in before if not has(after, c.type)]
    return tuple(change for change in written + removed if change.before != change.after)


def apply_patch(
    latest: tuple[Condition, ...],
    patch: Patch,
    *,
    now: datetime,
    owned: Collection[str] = (),
    force: bool = False,
    order: Order | None = default_order,
) -> tuple[Condition, ...]:
    """Apply a patch; raise on a conflict over a type that is neither owned nor forced."""
    if not patch:
        return latest
    for change in patch:
        if force or change.type in owned or _is_due(change, get(latest, change.type)):
            latest = _write(latest, change, now)
    return sort_conditions(latest, order)


def _write(latest: tuple[Condition, ...], change: ConditionChange, now: datetime) -> tuple[Condition, ...]:
    if change.after is None:
        return delete_condition(latest, change.type)
    return set_condition(latest, change.after, now=now, order=None)


def _is_due(change: ConditionChange, latest: Condition | None) -> bool:
    """Tell whether a change still has to be made; raise if another writer changed the same condition."""
    if change.after is None:
        return _is_removal_due(change, latest)
    if latest is not None and has_same_state(latest, change.after):
        # Another writer made the same change: keep theirs, with its transition time.
        return False
    if latest == change.before:
        return True
    raise _conflict(change, latest)


def _is_removal_due(change: ConditionChange, latest: Condition | None) -> bool:
    if latest is None or change.before is None:
        return False
    if has_same_state(latest, change.before):
        return True
    raise _conflict(change, latest)


def _conflict(change: ConditionChange, latest: Condition | None) -> MergeError:
    found = "it is gone" if latest is None else f"it is {latest.status} ({latest.reason}) now"
    return MergeError(f"condition {change.type} was changed by someone else meanwhile: {found}")
