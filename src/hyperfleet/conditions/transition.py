"""Writing one condition into a list: the only place where a transition time is decided.

`last_transition_time` moves if and only if the status moves; a new reason, message or generation never does.
Lists are values: the result is a new tuple, or the very same one when nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hyperfleet.conditions.message import fit
from hyperfleet.conditions.order import default_order
from hyperfleet.model.condition import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

Order = Callable[[Condition], tuple[int, str]]


def set_condition(
    conditions: tuple[Condition, ...],
    condition: Condition,
    *,
    now: datetime,
    generation: int | None = None,
    order: Order | None = default_order,
) -> tuple[Condition, ...]:
    """Add a condition or update the one of its type; `order=None` keeps the order of the list.

    `generation`, the target's, replaces that of the condition; without it the condition's own is kept.
    """
    updated = _upsert(conditions, _prepare(condition, now, generation))
    return updated if updated is conditions else sort_conditions(updated, order)


def delete_condition(conditions: Iterable[Condition], type_: str) -> tuple[Condition, ...]:
    """Remove every condition of a type."""
    return tuple(condition for condition in conditions if condition.type != type_)


def sort_conditions(conditions: Iterable[Condition], order: Order | None = default_order) -> tuple[Condition, ...]:
    """Return the conditions in an order; equal ones keep their places."""
    return tuple(conditions) if order is None else tuple(sorted(conditions, key=order))


def _prepare(condition: Condition, now: datetime, generation: int | None) -> Condition:
    """Bring a condition into the form in which it is stored."""
    return replace(
        condition,
        message=fit(condition.message),
        observed_generation=condition.observed_generation if generation is None else generation,
        last_transition_time=_whole_second(condition.last_transition_time or now),
    )


def _whole_second(moment: datetime) -> datetime:
    """Convert to UTC without fractions, as Kubernetes stores times."""
    return moment.astimezone(UTC).replace(microsecond=0)


def _upsert(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Put `new` in the place of the first condition of its type, or at the end."""
    for place, old in enumerate(conditions):
        if old.type == new.type:
            kept = keep_transition_time(old, new)
            return conditions if kept == old else (*conditions[:place], kept, *conditions[place + 1 :])
    return (*conditions, new)


def keep_transition_time(old: Condition, new: Condition) -> Condition:
    """Return `new`, with the old transition time unless the status moved."""
    if old.status != new.status:
        return new
    return replace(new, last_transition_time=old.last_transition_time)
