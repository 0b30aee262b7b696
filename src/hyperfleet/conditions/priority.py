"""The priority of a condition when several are merged: issue, then unknown, then info.

The default follows the status and the polarity of the type. A merge may bring its own function (the Cluster's
`Available` does); it returns one of these three.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from hyperfleet.model.condition import FALSE, TRUE, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable


class Priority(IntEnum):
    """The priorities; the most urgent has the lowest value."""

    ISSUE = 0
    UNKNOWN = 1
    INFO = 2


PriorityOf = Callable[[Condition], Priority]

_POSITIVE = {TRUE: Priority.INFO, FALSE: Priority.ISSUE}
_NEGATIVE = {TRUE: Priority.ISSUE, FALSE: Priority.INFO}


def by_polarity(negative: Iterable[str] = ()) -> PriorityOf:
    """Make the default priority function: True is bad for the `negative` types, False for all others."""
    negative_types = frozenset(negative)

    def priority_of(condition: Condition) -> Priority:
        table = _NEGATIVE if condition.type in negative_types else _POSITIVE
        return table.get(condition.status, Priority.UNKNOWN)

    return priority_of
