"""Summary: many conditions of one object become one condition of that object.

Declare a `SummaryOptions` once, then `summarize` sources with it. The result has no transition time and generation:
those come with `set_condition`. (An aggregate, in contrast, looks at one condition of many objects.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from hyperfleet.conditions.lookup import has
from hyperfleet.conditions.merge import Merged, RankedCondition, SourcedCondition, Strategy, merge
from hyperfleet.conditions.message import fit, is_blank, nest, text_of
from hyperfleet.conditions.priority import Priority, by_polarity
from hyperfleet.conditions.source import Source, not_yet_reported
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import TRUE, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator


class SummaryOptions(Struct, frozen=True, kw_only=True):
    """What to summarize. A strategy of your own decides polarity too, then `negative` has no effect."""

    target: str
    types: tuple[str, ...]
    negative: tuple[str, ...] = ()
    ignore_if_missing: tuple[str, ...] = ()
    overrides: tuple[Condition, ...] = ()
    strategy: Strategy | None = None


def summarize(source: Source, summary: SummaryOptions) -> Condition:
    """Compute the summary condition of one source."""
    _check(source, summary)
    strategy = summary.strategy or Strategy(priority_of=by_polarity(summary.negative))
    statements = [SourcedCondition(source, condition) for condition in _in_scope(source, summary)]
    if not statements:
        raise MergeError("summary can't be performed when the list of conditions to be summarized is empty")
    merged = merge(statements, summary.types, strategy)
    message = "\n".join(strategy.edit_entries(list(_entries(merged))))
    return Condition(summary.target, merged.status, merged.reason, fit(message))


def _check(source: Source, summary: SummaryOptions) -> None:
    """Reject an invalid summary, with the error texts of Cluster API."""
    if not summary.types:
        raise MergeError("option ForConditionTypes not provided or empty")
    if summary.target in summary.types:
        raise MergeError(f"option ForConditionTypes cannot include {summary.target} (target condition type)")
    overridden = [override.type for override in summary.overrides]
    for type_ in overridden:
        if overridden.count(type_) > 1:
            raise MergeError(f"override condition {type_} specified multiple times")
    for type_ in overridden:
        if not has(source.conditions, type_):
            raise MergeError(f"override condition {type_} must exist in source object")


def _in_scope(source: Source, summary: SummaryOptions) -> Iterator[Condition]:
    """Yield the listed conditions the source has, then a placeholder for each missing one."""
    overrides = {override.type: override for override in summary.overrides}
    for condition in source.conditions:
        if condition.type in summary.types:
            yield overrides.get(condition.type, condition)
    for type_ in dict.fromkeys(summary.types):
        if type_ not in summary.ignore_if_missing and not has(source.conditions, type_):
            # No type name in this text: the entry that shows it begins with the type.
            yield not_yet_reported(type_, "Condition not yet reported")


def _entries(merged: Merged) -> Iterator[str]:
    for finding in merged.ranked:
        if _is_shown(finding, merged):
            yield f"* {finding.condition.type}:{nest(text_of(finding.condition))}"


def _is_shown(finding: RankedCondition, merged: Merged) -> bool:
    """Show every issue and unknown; an info only if there are no others and it has a message."""
    if finding.priority is not Priority.INFO:
        return True
    return merged.status == TRUE and not is_blank(finding.condition.message)
