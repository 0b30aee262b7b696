"""Laws of the conditions toolkit, tried on generated conditions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.conditions import (
    Aggregation,
    Priority,
    Source,
    Strategy,
    SummaryOptions,
    aggregate,
    apply_patch,
    by_polarity,
    delete_condition,
    diff,
    get,
    has,
    lint,
    mirror,
    read_conditions,
    set_condition,
    sort_conditions,
    summarize,
    write_conditions,
)
from hyperfleet.conditions.cluster import (
    Absence,
    ClusterObject,
    ClusterScope,
    ClusterStatus,
    Descendants,
    Machine,
    MachineGroup,
    Probe,
    Provider,
    Reference,
    compute_status,
)
from hyperfleet.conditions.message import fit, nest
from hyperfleet.model.condition import FALSE, MAX_MESSAGE, STATUSES, TRUE, UNKNOWN, Condition

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = ("Available", "Ready", "Paused", "Deleting", "Abc", "Zoo")

moments = st.integers(0, 10**6).map(lambda second: EPOCH + timedelta(seconds=second))
reasons = st.sampled_from(["Good", "Bad", "Lost"])
messages = st.one_of(st.just(""), st.text("ab* \n", max_size=12), st.sampled_from(["* one\n* two", "head\n* one"]))


def conditions_with(times: st.SearchStrategy[datetime | None]) -> st.SearchStrategy[Condition]:
    return st.builds(
        Condition,
        type=st.sampled_from(TYPES),
        status=st.sampled_from(STATUSES),
        reason=reasons,
        message=messages,
        observed_generation=st.integers(0, 3),
        last_transition_time=times,
    )


conditions = conditions_with(st.none() | moments)
stored = conditions_with(moments)
lists = st.lists(stored, max_size=6, unique_by=lambda c: c.type).map(sort_conditions)
names = st.sampled_from(["a", "b", "c", "d", "e", "f"])
sources = st.builds(
    Source,
    kind=st.sampled_from(["Machine", "MachineSet"]),
    name=names,
    is_control_plane_machine=st.booleans(),
    conditions=st.lists(conditions, max_size=2).map(tuple),
)
source_lists = st.lists(sources, min_size=1, max_size=6, unique_by=lambda source: (source.kind, source.name))


@given(lists, conditions, moments, moments)
def test_setting_the_same_twice_changes_nothing(
    before: tuple[Condition, ...], condition: Condition, now: datetime, later: datetime
) -> None:
    once = set_condition(before, condition, now=now)
    assert set_condition(once, condition, now=later) is once


@given(lists, conditions, moments)
def test_the_transition_time_moves_if_and_only_if_the_status_moves(
    before: tuple[Condition, ...], condition: Condition, now: datetime
) -> None:
    old, new = get(before, condition.type), get(set_condition(before, condition, now=now), condition.type)
    assert new
    if old is not None and old.status == condition.status:
        assert new.last_transition_time == old.last_transition_time
    else:
        assert new.last_transition_time == (condition.last_transition_time or now)


@given(lists, stored, moments, reasons, st.text(max_size=50), st.integers(0, 9))
def test_words_never_move_the_transition_time(
    before: tuple[Condition, ...], old: Condition, now: datetime, reason: str, message: str, generation: int
) -> None:
    before = set_condition(before, old, now=now)
    reworded = replace(old, reason=reason, message=old.message + message, last_transition_time=None)
    after = set_condition(before, reworded, now=now, generation=generation)
    kept, was = get(after, old.type), get(before, old.type)
    assert kept
    assert was
    assert kept.last_transition_time == was.last_transition_time
    assert (kept.reason, kept.observed_generation) == (reason, generation)


@given(lists)
def test_what_is_written_is_read_again(before: tuple[Condition, ...]) -> None:
    assert read_conditions({"status": {"conditions": write_conditions(before)}}).all() == before


@given(lists, conditions, moments)
def test_setting_touches_no_other_type_and_keeps_the_order(
    before: tuple[Condition, ...], condition: Condition, now: datetime
) -> None:
    after = set_condition(before, condition, now=now)
    assert delete_condition(after, condition.type) == delete_condition(before, condition.type)
    assert after == sort_conditions(after)
    assert not has(delete_condition(after, condition.type), condition.type)


@given(
    lists,
    # Each type once: a status that flipped there and back within one patch was never seen, and is not told.
    st.lists(conditions, max_size=4, unique_by=lambda c: c.type),
    st.lists(st.sampled_from(TYPES), max_size=2),
    moments,
)
def test_a_patch_applied_to_an_unchanged_list_gives_what_was_wanted(
    before: tuple[Condition, ...], written: list[Condition], removed: list[str], now: datetime
) -> None:
    after = before
    for condition in written:
        after = set_condition(after, condition, now=now)
    for type_ in removed:
        after = delete_condition(after, type_)
    patch = diff(before, after)
    assert apply_patch(before, patch, now=now) == after
    assert apply_patch(after, patch, now=now) == after  # and again: somebody did the same
    assert diff(after, after) == ()


@given(lists, lists, lists, moments)
def test_an_owner_always_wins_and_touches_nothing_else(
    before: tuple[Condition, ...], after: tuple[Condition, ...], latest: tuple[Condition, ...], now: datetime
) -> None:
    patch = diff(before, after)
    patched = apply_patch(latest, patch, now=now, owned=TYPES)
    changed = {change.type for change in patch}
    for type_ in TYPES:
        if type_ not in changed:
            assert get(patched, type_) == get(latest, type_)
        else:
            wanted, got = get(after, type_), get(patched, type_)
            assert (wanted and wanted.status) == (got and got.status)


@given(source_lists.flatmap(lambda group: st.tuples(st.just(group), st.permutations(group))))
def test_an_aggregate_does_not_depend_on_the_order_of_its_sources(pair: tuple[list[Source], list[Source]]) -> None:
    listed, shuffled = pair
    aggregation = Aggregation(source_type="Ready")
    assert aggregate(listed, aggregation) == aggregate(shuffled, aggregation)


@given(source_lists, st.booleans())
def test_the_worst_source_decides_an_aggregate(group: list[Source], is_negative: bool) -> None:
    negative = ("Ready",) if is_negative else ()
    result = aggregate(group, Aggregation(source_type="Ready", negative=negative))
    found = [get(source.conditions, "Ready") for source in group]
    worst = min(by_polarity(negative)(c) if c else Priority.UNKNOWN for c in found)
    bad, good = (TRUE, FALSE) if is_negative else (FALSE, TRUE)
    assert result.status == {Priority.ISSUE: bad, Priority.UNKNOWN: UNKNOWN, Priority.INFO: good}[worst]
    assert sum(line.startswith("* ") for line in result.message.split("\n")) <= 3


@given(st.lists(conditions, min_size=1, max_size=6))
def test_a_summary_of_infos_is_true_and_says_nothing_of_silent_ones(found: list[Condition]) -> None:
    source = Source(conditions=tuple(found))
    everything_is_fine = Strategy(priority_of=lambda _: Priority.INFO)
    summary = SummaryOptions(target="Sum", types=TYPES, ignore_if_missing=TYPES, strategy=everything_is_fine)
    result = summarize(source, summary)
    assert (result.status, result.reason) == (TRUE, "InfoReported")
    if all(condition.message == "" for condition in found):
        assert result.message == ""


@given(lists, st.sets(st.sampled_from(TYPES)))
def test_a_summary_is_true_exactly_when_all_is_present_and_well(
    found: tuple[Condition, ...], negative: set[str]
) -> None:
    result = summarize(Source(conditions=found), SummaryOptions(target="Sum", types=TYPES, negative=tuple(negative)))
    is_well = all((c := get(found, t)) and c.status == (FALSE if t in negative else TRUE) for t in TYPES)
    assert (result.status == TRUE) == is_well


@given(st.text("ab*\n \t", max_size=30))
def test_a_nested_message_has_no_blank_lines_and_stays_below_its_bullet(message: str) -> None:
    first, *rest = nest(message).split("\n")
    assert all(line.startswith("  ") and line.strip() for line in rest)
    assert not (first and rest), "either on the line or below it"


@given(st.text(max_size=20), st.integers(0, MAX_MESSAGE * 2))
def test_a_message_always_fits(message: str, length: int) -> None:
    fitted = fit(message + "x" * length)
    assert len(fitted) <= MAX_MESSAGE
    assert fit(fitted) == fitted


@given(lists, st.sampled_from(TYPES), moments)
def test_a_mirror_says_what_its_source_says(found: tuple[Condition, ...], type_: str, now: datetime) -> None:
    shown = mirror(found, type_, target="Copy")
    source = get(found, type_)
    assert shown.type == "Copy"
    assert shown.status == (source.status if source else UNKNOWN)
    assert get(set_condition((), shown, now=now, generation=5), "Copy")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["True", "Ready", EPOCH]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "status", "reason", "message", "lastTransitionTime", "v1beta2", "conditions"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_object_can_be_read(status: object) -> None:
    reading = read_conditions({"kind": "Infra", "status": status})
    assert all(condition.status in STATUSES and condition.type and condition.reason for condition in reading.conditions)
    assert all(problem.message.startswith("failed to convert status.") for problem in reading.problems)


machines = st.builds(Machine, name=names, is_control_plane_machine=st.booleans(), conditions=lists)
groups = st.builds(MachineGroup, kind=st.just("MachineDeployment"), name=names, conditions=lists)
references = st.builds(Reference, kind=st.sampled_from(["", "Infra"]))
providers = st.sampled_from([*Absence, Provider(kind="Infra"), Provider(kind="Infra", initialized=None)])
scopes = st.builds(
    ClusterScope,
    cluster=st.builds(
        ClusterObject,
        generation=st.integers(1, 3),
        is_deleting=st.booleans(),
        is_paused=st.booleans(),
        has_topology=st.booleans(),
        infrastructure_ref=references,
        control_plane_ref=references,
    ),
    infrastructure=providers,
    control_plane=providers,
    descendants=st.none()
    | st.builds(
        Descendants,
        machines=st.lists(machines, max_size=3).map(tuple),
        machine_deployments=st.lists(groups, max_size=3).map(tuple),
    ),
    probe=st.builds(Probe, last_success=st.none() | moments, consecutive_failures=st.integers(0, 6)),
)


@given(scopes, moments)
def test_a_status_is_stable_and_fit_for_kubernetes(scope: ClusterScope, now: datetime) -> None:
    status = compute_status(scope, ClusterStatus(), now)
    assert compute_status(scope, status, now) == status
    flaws = {flaw.rule for flaw in lint(status.conditions, now=now, generation=scope.cluster.generation)}
    assert flaws <= {"TransitionTimeInFuture"}  # mirrored times are the provider's


@given(scopes, scopes, moments)
def test_a_status_moves_no_time_without_a_status(one: ClusterScope, other: ClusterScope, now: datetime) -> None:
    before = compute_status(one, ClusterStatus(), now)
    after = compute_status(other, before, now + timedelta(hours=1))
    for condition in after.conditions:
        old = get(before.conditions, condition.type)
        if old is not None and old.status == condition.status:
            assert condition.last_transition_time == old.last_transition_time
