"""Writing conditions, and the status of a Cluster, as Kubernetes JSON."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import Condition, MergeError, lint, read_conditions, set_condition, write_conditions
from hyperfleet.conditions.cluster import (
    ClusterScope,
    ClusterStatus,
    Replicas,
    VersionCount,
    compute_status,
    read_status,
    write_status,
)

NOW = datetime(2026, 8, 21, 12, 0, tzinfo=UTC)
READY = Condition("Ready", "False", "Broken", "no disk", 3, NOW)


def test_every_field_has_its_place() -> None:
    assert write_conditions((READY,)) == [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Broken",
            "message": "no disk",
            "lastTransitionTime": "2026-08-21T12:00:00Z",
            "observedGeneration": 3,
        }
    ]


def test_what_is_written_is_read_again() -> None:
    conditions = (READY, Condition("Available", "True", "Ok", "", 0, NOW))
    written = write_conditions(conditions)
    assert "observedGeneration" not in written[1]
    assert read_conditions({"kind": "Site", "status": {"conditions": written}}).all() == conditions


@pytest.mark.parametrize(
    "moment",
    [
        NOW + timedelta(milliseconds=999),
        NOW.astimezone(timezone(timedelta(hours=2))),
    ],
)
def test_times_are_written_in_utc_and_whole_seconds(moment: datetime) -> None:
    (written,) = write_conditions((replace(READY, last_transition_time=moment),))
    assert written["lastTransitionTime"] == "2026-08-21T12:00:00Z"


def test_a_year_has_four_digits() -> None:
    (written,) = write_conditions((replace(READY, last_transition_time=datetime(1, 1, 1, tzinfo=UTC)),))
    assert written["lastTransitionTime"] == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (replace(READY, reason=""), "reason must be set for the Ready condition"),
        (replace(READY, last_transition_time=None), "lastTransitionTime must be set for the Ready condition"),
        (replace(READY, last_transition_time=NOW.replace(tzinfo=None)), "with a time zone"),
    ],
)
def test_what_kubernetes_requires_is_required(condition: Condition, message: str) -> None:
    with pytest.raises(MergeError, match=message):
        write_conditions((condition,))


def test_what_set_condition_made_can_be_written() -> None:
    conditions = set_condition((), Condition("Ready", "True", "Ok"), now=NOW, generation=1)
    assert not lint(conditions, now=NOW, generation=1)
    assert len(write_conditions(conditions)) == 1


def test_a_status_is_read_as_it_was_written() -> None:
    status = replace(
        compute_status(ClusterScope(), ClusterStatus(), NOW),
        control_plane=Replicas(desired=3, current=3, ready=0, versions=(VersionCount("v1.33.0", 3),)),
        workers=Replicas(available=1, up_to_date=2),
    )
    written = write_status(status)
    assert read_status({"kind": "Cluster", "status": written}) == status
    assert written["phase"] == "Pending"
    assert written["controlPlane"] == {
        "desiredReplicas": 3,
        "replicas": 3,
        "readyReplicas": 0,
        "availableReplicas": None,
        "upToDateReplicas": None,
        "versions": [{"version": "v1.33.0", "replicas": 3}],
    }


def test_an_unset_counter_is_null_so_that_a_patch_removes_it() -> None:
    written = write_status(ClusterStatus())
    assert written["phase"] is None
    assert set(dict.fromkeys(written["workers"].values())) == {None}  # type: ignore[attr-defined]
    assert read_status({"status": written}) == ClusterStatus()
    assert read_status({}) == ClusterStatus()
    assert read_status({"status": {"phase": 3, "workers": {"replicas": "3"}}}) == ClusterStatus()


def test_a_status_with_an_unreadable_condition_is_not_read() -> None:
    """A patch replaces the whole list, so what cannot be read would be lost."""
    with pytest.raises(MergeError, match="must be one of True, False, Unknown"):
        read_status({"kind": "Cluster", "status": {"conditions": [{"type": "A", "status": "Maybe"}]}})
