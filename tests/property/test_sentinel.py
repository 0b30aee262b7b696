"""Laws of the sentinel: nothing is forgotten, looks thin out up to a limit, and each resource has one owner."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.aggregation.policy import Policy
from hyperfleet.sentinel.membership import rendezvous
from hyperfleet.sentinel.rules import SHORTEST_PAUSE, STATES, Backoff, Rule, RuleSet
from hyperfleet.sentinel.schedule import LookedAt, LookHistory, after_look, due_rules, next_look, pause
from tests.world import START, World, make_report

seconds = st.integers(0, 7200).map(lambda number: timedelta(seconds=number))
jitters = st.floats(0, 1)
backoffs = st.builds(Backoff, st.floats(1, 10), seconds, st.floats(0, 0.9))
rules = st.builds(
    lambda state, after, backoff: Rule("rule", state, after, backoff), st.sampled_from(STATES), seconds, backoffs
)
histories = st.builds(
    LookHistory, st.none() | seconds.map(lambda age: START + age), st.integers(0, 10**6), st.integers(0, 9)
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Return a resource after some steps of its life."""
    policy = Policy("p", "d", required=("a", "b"), stale_after=draw(st.none() | st.just(timedelta(minutes=9))))
    world = World(policy)
    steps = st.sampled_from(["True", "False/Broken", "False/JobRunning", "edit", "delete", "wait"])
    for step in draw(st.lists(steps, max_size=6)):
        if step == "wait":
            world.pass_time(timedelta(minutes=4))
        elif step == "edit" and not world.resource.is_deleting:
            world.edit()
        elif step == "delete" and not world.resource.is_deleting:
            world.delete()
        elif step not in ("edit", "delete"):
            adapter = draw(st.sampled_from(["a", "b"]))
            world.report(make_report(adapter, step, generation=world.resource.generation))
    return world


def look_at(world: World, history: LookHistory) -> LookedAt:
    return LookedAt(world.resource, world.status, world.policy, world.reports, history)


# ── pauses ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(rules, st.integers(0, 10**9), jitters)
def test_pauses_grow_up_to_their_maximum(rule: Rule, attempts: int, jitter: float) -> None:
    policy = Policy("p", "d")
    now, later = (pause(rule, policy, LookHistory(START, count), jitter) for count in (attempts, attempts + 1))
    assert now <= later <= max(rule.after or timedelta(), SHORTEST_PAUSE, rule.backoff.max)


@given(rules, st.integers(0, 100), jitters)
def test_jitter_cuts_off_its_part_at_most(rule: Rule, attempts: int, jitter: float) -> None:
    policy, history = Policy("p", "d"), LookHistory(START, attempts)
    whole, cut = pause(rule, policy, history, 0.0), pause(rule, policy, history, jitter)
    assert whole * (1 - rule.backoff.jitter) - timedelta(microseconds=1) <= cut <= whole


# ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(worlds(), histories)
def test_nothing_is_forgotten(world: World, history: LookHistory) -> None:
    planned = next_look(look_at(world, history), RuleSet(), world.now)
    assert planned.at is not None
    assert planned.rule is not None
    assert planned.at >= world.now
    assert planned.at <= max(world.now, history.last or world.now) + timedelta(minutes=30), "the longest pause of all"


@given(worlds(), histories)
def test_without_required_adapters_there_is_no_look(world: World, history: LookHistory) -> None:
    world.use_policy(replace(world.policy, required=()))
    assert next_look(look_at(world, history), RuleSet(), world.now).at is None


@given(worlds(), histories, st.lists(rules, max_size=4))
def test_what_is_planned_is_due_then_and_not_before(world: World, history: LookHistory, own: list[Rule]) -> None:
    named = RuleSet([replace(rule, name=f"rule-{index}") for index, rule in enumerate(own)])
    looked_at = look_at(world, history)
    at, rule, _ = next_look(looked_at, named, world.now)
    if at is None:
        assert not due_rules(looked_at, named, world.now + timedelta(days=9))
        return
    assert rule in [each.rule for each in due_rules(looked_at, named, at)]
    assert at == world.now or not due_rules(looked_at, named, at - timedelta(microseconds=1))


@given(worlds(), histories, st.lists(rules, min_size=1, max_size=4))
def test_looks_are_at_least_ten_seconds_apart(world: World, history: LookHistory, own: list[Rule]) -> None:
    named = RuleSet([replace(rule, name=f"rule-{index}") for index, rule in enumerate(own)])
    looked_at = look_at(world, history)
    for each in due_rules(looked_at, named, world.now):
        looked = after_look(looked_at, each.rule, world.now)
        at = next_look(looked, named, world.now).at
        assert at is not None
        assert at >= world.now + SHORTEST_PAUSE


# ── members ──────────────────────────────────────────────────────────────────────────────────────────────────────────

members = st.lists(st.text(max_size=8), min_size=1, max_size=8, unique=True)


@given(st.text(max_size=20), members, st.randoms())
def test_every_id_has_one_owner(id_: str, names: list[str], random: object) -> None:
    owner = rendezvous(id_, names)
    assert owner in names
    assert rendezvous(id_, reversed(names)) == owner, "the order does not matter"


@given(st.lists(st.text(max_size=8), max_size=20), members, st.data())
def test_a_member_that_leaves_moves_only_its_own(ids: list[str], names: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(names))
    left = [name for name in names if name != gone]
    if not left:
        return
    for id_ in ids:
        before = rendezvous(id_, names)
        assert before == gone or rendezvous(id_, left) == before


def test_members_share_evenly_and_for_ever_alike() -> None:
    ids = [f"cls-{number}" for number in range(3000)]
    owned = [rendezvous(id_, ["one", "two", "three"]) for id_ in ids]
    assert all(900 < owned.count(name) < 1100 for name in ("one", "two", "three"))
    assert [rendezvous(id_, ["one", "two", "three"]) for id_ in ids[:4]] == owned[:4]
