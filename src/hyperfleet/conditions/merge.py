"""Merging many conditions into the status and reason of one.

Summary (many conditions of one object) and aggregate (one condition of many objects) both come here, and then
each writes its own message from the ranked findings. Types are not validated: any name may be merged.
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
    """One condition, and the source that makes it."""

    source: Source
    condition: Condition


class RankedCondition(Struct, frozen=True):
    """A statement whose priority has been decided."""

    source: Source
    condition: Condition
    priority: Priority


ReasonOf = Callable[[Sequence[RankedCondition]], str]


def choose_reason(issue: str, unknown: str, info: str) -> ReasonOf:
    """Make the usual reason function: one reason for each priority, the worst one found decides."""
    reasons = {Priority.ISSUE: issue, Priority.UNKNOWN: unknown, Priority.INFO: info}
    return lambda findings: reasons[worst(findings)]


class Strategy(Struct, frozen=True, kw_only=True):
    """How to merge; the defaults suit conditions of positive polarity."""

    priority_of: PriorityOf = by_polarity()
    reason_of: ReasonOf = choose_reason("IssuesReported", "UnknownReported", "InfoReported")
    target_is_negative: bool = False
    edit_entries: Callable[[list[str]], list[str]] = list  # the last word on a summary's entries


class Merged(Struct, frozen=True):
    """The outcome of a merge: everything but the message."""

    status: ConditionStatus
    reason: str
    findings: tuple[RankedCondition, ...]


def merge(statements: Iterable[SourcedCondition], types: Iterable[str], strategy: Strategy) -> Merged:
    """Rank the statements and let the worst one decide; `types` gives the order."""
    findings = rank(statements, types, strategy.priority_of)
    if not findings:
        raise MergeError("can't merge an empty list of conditions")
    table = _STATUS_OF_NEGATIVE_TARGET if strategy.target_is_negative else _STATUS
    return Merged(table[worst(findings)], strategy.reason_of(findings), findings)


def rank(
    statements: Iterable[SourcedCondition], types: Iterable[str], priority_of: PriorityOf
) -> tuple[RankedCondition, ...]:
    """Order statements by type, then the longest unchanged first, and decide the priority of each."""
    position = {type_: index for index, type_ in enumerate(types)}  # of a type given twice the last one counts

    def place(statement: SourcedCondition) -> tuple[int, datetime]:
        condition = statement.condition
        return position.get(condition.type, 0), condition.last_transition_time or _ZERO_TIME

    return tuple(
        RankedCondition(s.source, s.condition, priority_of(s.condition)) for s in sorted(statements, key=place)
    )


def worst(findings: Iterable[RankedCondition]) -> Priority:
    """Return the priority that decides."""
    return min(finding.priority for finding in findings)
