"""Merging many conditions into the status and reason of one.

Summary (many conditions of one object) and aggregate (one condition of many objects) both come here, and then
each writes its own message from the ranked conditions. Types are not validated: any name may be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hyperfleet.conditions.priority import Priority, PriorityOf, by_polarity
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus

if TYPE_CHECKING:
    from hyperfleet.conditions.source import Source

_ZERO_TIME: Final = datetime.min.replace(tzinfo=UTC)  # an unknown transition time sorts first

_STATUS: Final[dict[Priority, ConditionStatus]] = {
    Priority.ISSUE: FALSE,
    Priority.UNKNOWN: UNKNOWN,
    Priority.INFO: TRUE,
}
_STATUS_OF_NEGATIVE_TARGET: Final[dict[Priority, ConditionStatus]] = {
    Priority.ISSUE: TRUE,
    Priority.UNKNOWN: UNKNOWN,
    Priority.INFO: FALSE,
}


class SourcedCondition(Struct, frozen=True):
    """A condition with its source."""

    source: Source
    condition: Condition


class RankedCondition(Struct, frozen=True):
    """A condition with its source and priority."""

    source: Source
    condition: Condition
    priority: Priority


ReasonOf = Callable[[Sequence[RankedCondition]], str]


def choose_reason(issue: str, unknown: str, info: str) -> ReasonOf:
    """Make the usual reason function: one reason for each priority; the worst priority decides."""
    reasons = {Priority.ISSUE: issue, Priority.UNKNOWN: unknown, Priority.INFO: info}
    return lambda ranked: reasons[worst(ranked)]


class Strategy(Struct, frozen=True, kw_only=True):
    """How to merge; the defaults suit conditions of positive polarity."""

    priority_of: PriorityOf = by_polarity()
    reason_of: ReasonOf = choose_reason("IssuesReported", "UnknownReported", "InfoReported")
    target_is_negative: bool = False
    edit_entries: Callable[[list[str]], list[str]] = list  # may change the entries of a summary


class Merged(Struct, frozen=True):
    """The outcome of a merge: everything but the message."""

    status: ConditionStatus
    reason: str
    ranked: tuple[RankedCondition, ...]


def merge(sourced: Iterable[SourcedCondition], types: Iterable[str], strategy: Strategy) -> Merged:
    """Rank the conditions and let the worst one decide; `types` gives the order."""
    ranked = rank(sourced, types, strategy.priority_of)
    if not ranked:
        raise MergeError("can't merge an empty list of conditions")
    table = _STATUS_OF_NEGATIVE_TARGET if strategy.target_is_negative else _STATUS
    return Merged(table[worst(ranked)], strategy.reason_of(ranked), ranked)


def rank(
    sourced: Iterable[SourcedCondition], types: Iterable[str], priority_of: PriorityOf
) -> tuple[RankedCondition, ...]:
    """Order conditions by type, then the longest unchanged first, and decide the priority of each."""
    position = {type_: index for index, type_ in enumerate(types)}  # of a type given twice the last one counts

    def place(each: SourcedCondition) -> tuple[int, datetime]:
        condition = each.condition
        return position.get(condition.type, 0), condition.last_transition_time or _ZERO_TIME

    return tuple(RankedCondition(s.source, s.condition, priority_of(s.condition)) for s in sorted(sourced, key=place))


def worst(ranked: Iterable[RankedCondition]) -> Priority:
    """Return the priority that decides."""
    return min(each.priority for each in ranked)
