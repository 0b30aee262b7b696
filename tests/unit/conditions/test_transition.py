"""Writing a condition: transition times, generations, order."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import default_order, delete_condition, keep_transition_time, set_condition, sort_conditions
from hyperfleet.model.condition import Condition, ConditionStatus

BEFORE = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
WHOLE_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
READY = Condition("Ready", "True", "AllGood", "fine", 3, BEFORE)


def test_a_new_condition_is_appended_with_the_time_in_whole_seconds() -> None:
    assert set_condition((), Condition("Ready", "True", "Ok"), now=NOW) == (
        Condition("Ready", "True", "Ok", "", 0, WHOLE_NOW),
    )


def test_a_given_time_is_kept_but_cut_to_whole_seconds() -> None:
    given = BEFORE + timedelta(microseconds=5)
    written = set_condition((), replace(READY, last_transition_time=given), now=NOW)
    assert written == (READY,)


def test_times_are_stored_in_utc() -> None:
    local = BEFORE.astimezone(timezone(timedelta(hours=2)))
    (written,) = set_condition((), replace(READY, last_transition_time=local), now=NOW)
    assert written.last_transition_time is not None
    assert written.last_transition_time.tzinfo is UTC


def test_a_status_change_moves_the_time() -> None:
    new = Condition("Ready", "False", "Broken", "no", 4)
    assert set_condition((READY,), new, now=NOW) == (replace(new, last_transition_time=WHOLE_NOW),)


def test_another_reason_or_message_does_not_move_the_time() -> None:
    new = Condition("Ready", "True", "Other", "other", 4, NOW)
    assert set_condition((READY,), new, now=NOW) == (replace(new, last_transition_time=BEFORE),)


@pytest.mark.parametrize(("given", "stored"), [(None, 3), (7, 7), (0, 0)])
def test_the_generation_of_the_target_wins(given: int | None, stored: int) -> None:
    (written,) = set_condition((), READY, now=NOW, generation=given)
    assert written.observed_generation == stored


def test_nothing_changed_gives_the_very_same_list_unsorted() -> None:
    unsorted = (Condition("Z", "True", last_transition_time=BEFORE), READY)
    assert set_condition(unsorted, replace(READY, last_transition_time=NOW), now=NOW) is unsorted


def test_a_change_sorts_the_list_unless_told_not_to() -> None:
    unsorted = (Condition("Z", "True", last_transition_time=BEFORE), READY)
    changed = replace(READY, reason="Other")
    assert [c.type for c in set_condition(unsorted, changed, now=NOW)] == ["Ready", "Z"]
    assert [c.type for c in set_condition(unsorted, changed, now=NOW, order=None)] == ["Z", "Ready"]


def test_another_order_can_be_given() -> None:
    longest_first = set_condition((READY,), Condition("LongName", "True"), now=NOW, order=lambda c: (-len(c.type), ""))
    assert [c.type for c in longest_first] == ["LongName", "Ready"]


def test_only_the_first_of_a_duplicate_type_is_updated() -> None:
    second = Condition("Ready", "Unknown", last_transition_time=BEFORE)
    written = set_condition((READY, second), replace(READY, reason="Other"), now=NOW)
    assert written == (replace(READY, reason="Other"), second)


def test_delete_removes_all_of_a_type() -> None:
    other = Condition("Other", "True")
    assert delete_condition((READY, other, READY), "Ready") == (other,)
    assert delete_condition((other,), "Ready") == (other,)


@pytest.mark.parametrize(("status", "time"), [("True", BEFORE), ("False", NOW), ("Unknown", NOW)])
def test_keep_transition_time(status: ConditionStatus, time: datetime) -> None:
    new = Condition("Ready", status, "New", last_transition_time=NOW)
    assert keep_transition_time(READY, new) == replace(new, last_transition_time=time)


def test_default_order() -> None:
    expected = [
        "Available",
        "Ready",
        "UpToDate",
        "RemoteConnectionProbe",
        "BootstrapConfigReady",
        "InfrastructureReady",
        "ControlPlaneInitialized",
        "ControlPlaneAvailable",
        "WorkersAvailable",
        "CertificatesAvailable",
        "Initialized",
        "EtcdClusterHealthy",
        "ControlPlaneComponentsHealthy",
        "NodeHealthy",
        "NodeReady",
        "NodeKubeadmLabelsAndTaintsSet",
        "EtcdPodHealthy",
        "EtcdMemberHealthy",
        "APIServerPodHealthy",
        "ControllerManagerPodHealthy",
        "SchedulerPodHealthy",
        "HealthCheckSucceeded",
        "OwnerRemediated",
        "TopologyReconciled",
        "Updating",
        "RollingOut",
        "Remediating",
        "ScalingDown",
        "ScalingUp",
        "MachinesReady",
        "ControlPlaneMachinesReady",
        "WorkerMachinesReady",
        "MachinesUpToDate",
        "ControlPlaneMachinesUpToDate",
        "WorkerMachinesUpToDate",
        "!C",
        "Abc",
        "Zoo",
        "Paused",
        "Deleting",
    ]
    backwards = [Condition(type_, "True") for type_ in reversed(expected)]
    assert [c.type for c in sort_conditions(backwards)] == expected
    assert [c.type for c in sort_conditions(backwards, None)] == expected[::-1]
    assert default_order(Condition("Abc", "True")) < default_order(Condition("Zoo", "True"))
