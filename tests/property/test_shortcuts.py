"""Shortcuts that every report takes, held to the long way: what they say is what could have been said at leisure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.aggregation import decide
from hyperfleet.aggregation.flapping import forget, is_recent
from hyperfleet.model.condition import STATUSES, Condition
from hyperfleet.model.json_value import is_same
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.resource import Resource
from tests.property.worlds import worlds
from tests.world import START, World

NOW = START + timedelta(minutes=5)
CLUSTER = Resource("cls-1", "Cluster", "one", 2, START, START)

# Few values, so that many are equal; 1, 1.0 and true are so to Python only.
SCALARS: st.SearchStrategy[Any] = st.sampled_from((None, True, False, 0, 1, 1.0, 0.5, "", "1", "a"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_values_are_the_same_if_their_canonical_texts_are(one: Any, other: Any) -> None:
    assert is_same(one, other) is (canonical(one) == canonical(other))
    assert is_same(one, deepcopy(one))


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES))
def test_the_order_of_keys_says_nothing(value: dict[str, Any]) -> None:
    assert is_same(value, dict(reversed(value.items())))


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


conditions = st.lists(
    st.builds(
        Condition,
        type=st.sampled_from(("Available", "Applied", "Health", "Other")),
        status=st.sampled_from(STATUSES),
        reason=st.sampled_from(("", "Because")),
        message=st.sampled_from(("", "said")),
        observed_generation=st.just(1),
    ),
    max_size=4,
    unique_by=lambda condition: condition.type,
).map(tuple)


@given(conditions, conditions, st.integers(1, 2), st.booleans())
def test_a_condition_keeps_its_time_while_its_status_stays(
    before: tuple[Condition, ...], after: tuple[Condition, ...], generation: int, is_heartbeat: bool
) -> None:
    stored = accepted(Report("dns", 1, before))
    said = Report("dns", generation, before if is_heartbeat else after)
    decision = decide(said, CLUSTER, stored, NOW)
    if decision.outcome == "discarded" or decision.stored is None:
        return
    earlier = {condition.type: condition for condition in stored.report.conditions}
    assert decision.stored.report.conditions == tuple(stamped(said.conditions, earlier))


@given(worlds(), st.integers(0, 900))
def test_of_moves_that_are_recent_none_is_forgotten(world: World, seconds: int) -> None:
    flips, now = world.status.memory.flips, world.now + timedelta(seconds=seconds)
    if is_recent(flips, world.policy, now):
        assert forget(flips, world.policy, now) == flips


def accepted(report: Report) -> StoredReport:
    stored = decide(report, CLUSTER, None, START).stored
    assert stored is not None
    return stored


def stamped(conditions: Sequence[Condition], earlier: dict[str, Condition]) -> list[Condition]:
    """Give each condition its time, one by one."""
    found = []
    for each in conditions:
        known = earlier.get(each.type)
        time = known.last_transition_time if known is not None and known.status == each.status else NOW
        found.append(Condition(each.type, each.status, each.reason, each.message, each.observed_generation, time))
    return found
