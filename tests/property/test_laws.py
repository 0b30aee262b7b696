"""The laws of the core: what must hold for every policy, every report and every order of events."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.aggregation import aggregate, decide, is_calm
from hyperfleet.model.condition import TRUE
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from tests.property.worlds import (
    DEFAULT,
    GUIDE,
    REPORTS,
    adapters,
    durations,
    kinds,
    required_adapters,
    send,
    shown,
    undamped_policies,
    worlds,
)
from tests.world import START, World, make_report, statuses

T = TypeVar("T")

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)

one_report_each = st.dictionaries(adapters, kinds, max_size=6)


@given(undamped_policies, one_report_each, st.randoms(use_true_random=False))
def test_order_between_adapters_does_not_matter(policy, reports, random):  # type: ignore[no-untyped-def]
    shuffled = list(reports.items())
    random.shuffle(shuffled)
    one, other = World(policy), World(policy)
    for adapter, kind in reports.items():
        send(one, adapter, kind)
    for adapter, kind in shuffled:
        send(other, adapter, kind)
    assert shown(one.status) == shown(other.status)


@given(
    undamped_policies.flatmap(worlds),
    st.lists(kinds, min_size=4, max_size=4),
    st.permutations(GUIDE.required),
    st.permutations(GUIDE.required),
)
def test_order_of_a_complete_round_does_not_matter(world, chosen, first, second):  # type: ignore[no-untyped-def]
    """Before the round is complete, sticky `Available` may remember the order; afterwards it may not."""
    world.edit()
    by_adapter = dict(zip(GUIDE.required, chosen, strict=True))
    other = _twin(world)
    for adapter in first:
        send(world, adapter, by_adapter[adapter])
    for adapter in second:
        send(other, adapter, by_adapter[adapter])
    assert shown(world.status) == shown(other.status)


@given(worlds(), adapters, kinds)
def test_the_same_report_twice_changes_nothing(world, adapter, kind):  # type: ignore[no-untyped-def]
    report = make_report(
        adapter, **REPORTS[kind], generation=world.resource.generation, observedTime=world.now.isoformat()
    )
    first = world.report(report)
    assume(first.outcome == "aggregated")
    before, stored = world.status, world.reports[adapter]
    again = world.report(report)
    assert (again.outcome, again.is_replay) == (first.outcome, True)
    assert world.status == before
    assert world.reports[adapter] == stored


@given(worlds(), adapters, kinds, durations)
def test_a_replay_later_moves_only_last_heard(world, adapter, kind, later):  # type: ignore[no-untyped-def]
    report = make_report(
        adapter, **REPORTS[kind], generation=world.resource.generation, observedTime=world.now.isoformat()
    )
    assume(world.report(report).outcome == "aggregated")
    stored, heard = world.reports[adapter], world.now + later
    world.run_until(heard)
    world.report(report)
    assert world.reports[adapter] == replace(stored, last_heard=heard)


@given(worlds(), required_adapters, st.sampled_from(["Running", "Pending", "Failed", "Unhealthy"]))
def test_a_worse_report_makes_nothing_better(world, adapter, kind):  # type: ignore[no-untyped-def]
    send(world, adapter, "Completed")
    before = statuses(world.status.conditions)
    send(world, adapter, kind)
    after = statuses(world.status.conditions)
    for type_ in _good_when_true(world):
        assert not (after[type_] == TRUE and before[type_] != TRUE), type_


@given(worlds(GUIDE), kinds)
def test_a_report_touches_only_what_depends_on_its_adapter(world, kind):  # type: ignore[no-untyped-def]
    before = {c.type: c for c in world.status.conditions}
    send(world, "dns", kind)
    after = {c.type: c for c in world.status.conditions}
    for type_ in ("ValidationPassed", "InfrastructureReady"):
        assert after[type_] == before[type_]


@given(st.integers(-7200, 7200), st.integers(-7200, 7200), st.lists(kinds, min_size=5, max_size=8))
def test_a_skewed_clock_never_freezes_a_status(skew, new_skew, reported):  # type: ignore[no-untyped-def]
    """A clock that is wrong, and then set to another wrong time, delays a status by three reports over 30 s at most."""
    world = World(DEFAULT)
    _send_skewed(world, "Completed", skew)
    for kind in reported:
        world.now += timedelta(seconds=15)
        _send_skewed(world, kind, new_skew)
    last = world.reports["dns"].report
    expected = make_report("dns", **REPORTS[reported[-1]])
    assert [(c.type, c.status) for c in last.conditions] == [(c.type, c.status) for c in expected.conditions]


@given(worlds(), durations)
def test_a_restart_changes_nothing(world, later):  # type: ignore[no-untyped-def]
    """What is stored, read back and computed again, is what was stored; and so it goes on from there."""
    twin = _twin(world)
    assert twin.status == world.status
    recomputed = aggregate(twin.resource, twin.reports, twin.policy, twin.status, world.status.memory.written_time)
    assert recomputed == world.status
    world.pass_time(later)
    twin.pass_time(later)
    assert twin.status == world.status


@given(worlds(), durations)
def test_time_changes_a_status_at_its_deadline_and_not_before(world, later):  # type: ignore[no-untyped-def]
    deadline: datetime | None = world.status.next_deadline
    instant = world.now + later
    assume(deadline is None or instant < deadline)
    looked = aggregate(world.resource, world.reports, world.policy, world.status, instant)
    assert shown(looked) == shown(world.status)
    assert looked.flapping == world.status.flapping
    assert looked.last_updated == world.status.last_updated
    assert looked.next_deadline == deadline


@given(worlds(), required_adapters, words, st.sampled_from(["JobRunning", "WorkFailed", "Waiting", ""]))
def test_words_never_move_a_transition_time(world, adapter, message, reason):  # type: ignore[no-untyped-def]
    send(world, adapter, "Failed")
    world.pass_time(timedelta(seconds=30))
    before = {c.type: c for c in world.status.conditions}
    own = {c.type: c for c in world.reports[adapter].report.conditions}
    world.report(make_report(adapter, f"False/{reason}/{message}", generation=world.resource.generation))
    for condition in world.status.conditions:
        if condition.status == before[condition.type].status:
            assert condition.last_transition_time == before[condition.type].last_transition_time
        else:
            assert condition.last_transition_time == world.status.memory.written_time
    for condition in world.reports[adapter].report.conditions:
        if condition.status == own[condition.type].status:
            assert condition.last_transition_time == own[condition.type].last_transition_time


@given(worlds(), st.integers(1, 3600))
def test_no_write_is_earlier_than_the_one_before(world, seconds):  # type: ignore[no-untyped-def]
    written = world.status.memory.written_time
    world.now = written - timedelta(seconds=seconds)
    assert world.write().memory.written_time == written


def _send_skewed(world: World, kind: str, skew: int) -> None:
    observed = (world.now + timedelta(seconds=skew)).isoformat()
    send(world, "dns", kind, observedTime=observed)


def _good_when_true(world: World) -> list[str]:
    """Leave out what damping may still move, and what says that somebody is at work, which is neither."""
    neither = {"ProvisioningInProgress", "Slow", "SlowTrouble", "Own"}
    negative = {rule.type for rule in world.policy.rules if rule.polarity == "Negative"}
    return [
        c.type
        for c in world.status.conditions
        if c.type not in negative | neither | {"AdaptersFailed", "AdaptersUnhealthy"}
    ]


def _twin(world: World) -> World:
    """Make a second world of what a store would have kept of the first."""
    twin = World(world.policy)
    twin.resource = _stored(world.resource, Resource)
    twin.reports = {name: _stored(report, StoredReport) for name, report in world.reports.items()}
    twin.status = _stored(world.status, Status)
    twin.now = world.now
    return twin


def _stored(value: object, type_: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(value), type=type_)


@given(worlds(), adapters, kinds, st.integers(0, 900), st.booleans())
def test_a_calm_report_that_is_heard_again_changes_nothing(world, adapter, kind, seconds, is_early):  # type: ignore[no-untyped-def]
    send(world, adapter, kind)
    before, previous = world.reports[adapter], world.status
    now = world.now + timedelta(seconds=seconds)
    if not is_calm(before, previous) or (previous.next_deadline is not None and previous.next_deadline <= now):
        return  # such a report, or the deadline, is an ordinary write
    observed = now - timedelta(seconds=seconds // 2) if is_early else None
    heard = decide(replace(before.report, observed_time=observed), world.resource, before, now).stored
    assert heard is not None
    reports = {**world.reports, adapter: heard}
    after = aggregate(world.resource, reports, world.policy, previous, now, children=world.children)
    assert _shown(after) == _shown(previous)
    if after.next_deadline is not None:
        assert previous.next_deadline is not None, "a deadline is never late"
        assert previous.next_deadline <= after.next_deadline


def _shown(status: Status) -> Status:
    memory = replace(status.memory, written_time=START, flips={})  # old ones are forgotten with the next write
    return replace(status, memory=memory, next_deadline=None, restless=())
