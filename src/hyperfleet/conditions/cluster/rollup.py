"""The same condition of many machines or machine groups, rolled up to the Cluster.

Called by the sibling modules, which choose the sources and the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.conditions.aggregate import Aggregation, aggregate
from hyperfleet.conditions.cluster.vocabulary import (
    AWAITING_TOPOLOGY,
    OBJECT_DOES_NOT_EXIST,
    internal_error,
)
from hyperfleet.conditions.lookup import has
from hyperfleet.conditions.merge import Strategy, choose_reason
from hyperfleet.conditions.priority import by_polarity
from hyperfleet.model.condition import UNKNOWN, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hyperfleet.conditions.cluster.scope import ClusterView, MachineGroup
    from hyperfleet.conditions.source import Source


def not_listed(view: ClusterView, target: str) -> Condition:
    """Explain why descendants are unknown: it is too early, or listing them failed."""
    if view.cluster.awaits_topology and not view.cluster.is_deleting:
        return Condition(target, UNKNOWN, OBJECT_DOES_NOT_EXIST, AWAITING_TOPOLOGY)
    return internal_error(target)


def roll_up(target: str, source_type: str, sources: Iterable[Source]) -> Condition:
    """Aggregate a condition that is good when True: `NotReady`, `ReadyUnknown`, `Ready`."""
    reason_of = choose_reason(f"Not{source_type}", f"{source_type}Unknown", source_type)
    return aggregate(
        sources, Aggregation(source_type=source_type, target=target, strategy=Strategy(reason_of=reason_of))
    )


def roll_up_negative(type_: str, sources: Iterable[Source]) -> Condition:
    """Aggregate a condition that is good when False: `ScalingUp`, `ScalingUpUnknown`, `NotScalingUp`."""
    strategy = Strategy(
        priority_of=by_polarity((type_,)),
        reason_of=choose_reason(type_, f"{type_}Unknown", f"Not{type_}"),
        target_is_negative=True,
    )
    return aggregate(sources, Aggregation(source_type=type_, strategy=strategy))


def reporting(pools: Iterable[MachineGroup], type_: str) -> list[MachineGroup]:
    """Return the pools that report a type: many providers' pools never do, and must not hold up a cluster."""
    return [pool for pool in pools if has(pool.conditions, type_)]
