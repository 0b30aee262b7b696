"""Mirror: show a condition of one object on another.

The copy keeps the transition time, and `set_condition` takes it over when the status flips: it tells when the
thing happened, not when we noticed. The generation is dropped; it belongs to the other object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hyperfleet.conditions.lookup import get
from hyperfleet.conditions.source import not_yet_reported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hyperfleet.model.condition import Condition


def mirror(
    conditions: Iterable[Condition], source_type: str, *, target: str = "", fallback: Condition | None = None
) -> Condition:
    """Copy a condition, under the name `target` if given; `fallback` is shown while it is missing."""
    target = target or source_type
    source = get(conditions, source_type)
    if source is not None:
        return replace(source, type=target, observed_generation=0)
    if fallback is not None:
        return replace(fallback, type=target, observed_generation=0, last_transition_time=None)
    return not_yet_reported(target, f"Condition {source_type} not yet reported")
