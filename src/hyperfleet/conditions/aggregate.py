"""Aggregate: one condition of many objects becomes one condition of their owner.

Sources are put in order by kind, namespace and name first, so the result does not depend on the order of the
list. (A summary, in contrast, looks at many conditions of one object.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from hyperfleet.conditions.grouping import describe
from hyperfleet.conditions.lookup import get
from hyperfleet.conditions.merge import SourcedCondition, Strategy, merge
from hyperfleet.conditions.message import fit
from hyperfleet.conditions.priority import by_polarity
from hyperfleet.conditions.source import Source, not_yet_reported
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable


class Aggregation(Struct, frozen=True, kw_only=True):
    """What to aggregate. A strategy of your own decides polarity too."""

    source_type: str
    target: str = ""  # the source type, when not given
    negative: tuple[str, ...] = ()  # nothing, or just the source type
    strategy: Strategy | None = None


def aggregate(sources: Iterable[Source], aggregation: Aggregation) -> Condition:
    """Compute the aggregate condition of some sources."""
    ordered = sorted(sources, key=_identity)
    _check(ordered, aggregation)
    type_ = aggregation.source_type
    statements = [SourcedCondition(source, _stated(source, type_)) for source in ordered]
    merged = merge(statements, (type_,), aggregation.strategy or _default_strategy(aggregation))
    return Condition(aggregation.target or type_, merged.status, merged.reason, fit(describe(merged.ranked)))


def _identity(source: Source) -> tuple[str, str, str]:
    return source.kind, source.namespace, source.name


def _check(sources: list[Source], aggregation: Aggregation) -> None:
    if not sources:
        raise MergeError("sourceObjs can't be empty")
    if aggregation.negative not in ((), (aggregation.source_type,)):
        raise MergeError(f'negativePolarityConditionTypes can only be set to ["{aggregation.source_type}"]')


def _default_strategy(aggregation: Aggregation) -> Strategy:
    """Merge with the polarity of the source; the target inherits it."""
    return Strategy(
        priority_of=by_polarity(aggregation.negative),
        target_is_negative=aggregation.source_type in aggregation.negative,
    )


def _stated(source: Source, type_: str) -> Condition:
    return get(source.conditions, type_) or not_yet_reported(type_, f"Condition {type_} not yet reported")
