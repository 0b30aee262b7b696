"""Reading conditions from provider objects of any quality."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from hyperfleet.conditions import Source, read_conditions, read_source
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import Condition

READY = {"type": "Ready", "status": "True", "reason": "Good"}


def infra(*entries: object) -> dict[str, Any]:
    return {"kind": "Infra", "status": {"conditions": list(entries)}}


def test_every_field_is_read_and_others_are_dropped() -> None:
    entry = {
        "type": "Ready",
        "status": "False",
        "reason": "Bad",
        "message": "no",
        "observedGeneration": 4,
        "lastTransitionTime": "2026-01-01T02:00:00.5+02:00",
        "severity": "Error",
    }
    moment = datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)
    assert read_conditions(infra(entry)).all() == (Condition("Ready", "False", "Bad", "no", 4, moment),)


@pytest.mark.parametrize(
    ("status", "types", "because"),
    [
        (
            {"v1beta2": {"conditions": [READY]}, "conditions": [{**READY, "type": "Old"}]},
            ["Ready"],
            "newest place first",
        ),
        ({"v1beta2": {"conditions": []}, "conditions": [READY]}, [], "an empty list is a list"),
        ({"v1beta2": {"conditions": "oops"}, "conditions": [READY]}, ["Ready"], "a wrong shape counts as absent"),
        ({"v1beta2": [], "conditions": [READY]}, ["Ready"], "on the way too"),
        ({"conditions": {}}, [], "a map is no list"),
        ({}, [], "no conditions is no error"),
        (None, [], "no status is no error"),
        ({"conditions": ["text", 1, None, READY]}, ["Ready"], "what is no map is skipped"),
    ],
)
def test_where_conditions_are_looked_for(status: object, types: list[str], because: str) -> None:
    reading = read_conditions({"kind": "Infra", "status": status})
    assert [condition.type for condition in reading.all()] == types, because


def test_no_object() -> None:
    with pytest.raises(MergeError, match=r"\AsourceObj is nil\Z"):
        read_conditions(None)


@pytest.mark.parametrize("moment", [None, ""])
def test_what_may_be_missing(moment: object) -> None:
    entry = {"type": "Ready", "status": "True", "lastTransitionTime": moment, "message": None, "reason": ""}
    assert read_conditions(infra(entry)).all() == (Condition("Ready", "True", "NoReasonReported"),)


def test_an_instant_that_a_yaml_loader_already_parsed() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert read_conditions(infra({**READY, "lastTransitionTime": moment})).all()[0].last_transition_time == moment


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ({"status": "True"}, "type must be set for all conditions"),
        ({"type": "", "status": "True"}, "type must be set for all conditions"),
        ({"type": "Ready"}, "status must be set for the Ready condition"),
        ({"type": "Ready", "status": ""}, "status must be set for the Ready condition"),
        (
            {"type": "Ready", "status": "true"},
            "status for the Ready condition must be one of True, False, Unknown",
        ),
        ({"type": 1, "status": "True"}, "type of a condition must be a string"),
        ({"type": "Ready", "status": True}, "status for the Ready condition must be a string"),
        ({**READY, "reason": 1}, "reason for the Ready condition must be a string"),
        ({**READY, "message": {}}, "message for the Ready condition must be a string"),
        ({**READY, "observedGeneration": "1"}, "observedGeneration for the Ready condition must be an integer"),
        ({**READY, "observedGeneration": True}, "observedGeneration for the Ready condition must be an integer"),
        ({**READY, "observedGeneration": 1.5}, "observedGeneration for the Ready condition must be an integer"),
        ({**READY, "lastTransitionTime": "yesterday"}, "failed to unmarshal lastTransitionTime value: yesterday"),
        ({**READY, "lastTransitionTime": "2026-01-01"}, "failed to unmarshal lastTransitionTime value: 2026-01-01"),
        (
            {**READY, "lastTransitionTime": "2026-02-30T00:00:00Z"},
            "failed to unmarshal lastTransitionTime value: 2026-02-30T00:00:00Z",
        ),
        (
            {**READY, "lastTransitionTime": "2026-01-01T00:00:00"},
            "failed to unmarshal lastTransitionTime value: 2026-01-01T00:00:00",
        ),
        ({**READY, "lastTransitionTime": 5}, "failed to unmarshal lastTransitionTime value: 5"),
    ],
)
def test_what_is_malformed(entry: dict[str, object], cause: str) -> None:
    with pytest.raises(MergeError) as caught:
        read_conditions(infra(entry)).all()
    assert str(caught.value) == f"failed to convert status.conditions from Infra to []metav1.Condition: {cause}"


def test_the_error_names_the_list() -> None:
    obj = {"kind": "Infra", "status": {"v1beta2": {"conditions": [{}]}}}
    with pytest.raises(MergeError, match=r"failed to convert status\.v1beta2\.conditions from Infra"):
        read_conditions(obj).all()


def test_a_malformed_condition_is_in_the_way_of_itself() -> None:
    reading = read_conditions(infra({"type": "Ready"}, {"type": "Other", "status": "True", "reason": "Ok"}))
    with pytest.raises(MergeError, match="status must be set for the Ready condition"):
        reading.get("Ready")
    with pytest.raises(MergeError):
        reading.mirror("Ready", fallback=Condition("Ready", "True"))
    assert reading.get("Other") == Condition("Other", "True", "Ok")
    assert reading.get("Missing") is None


def test_a_nameless_condition_is_in_the_way_of_those_that_are_not_found() -> None:
    reading = read_conditions(infra({"status": "True"}, READY))
    assert reading.get("Ready") == Condition("Ready", "True", "Good")
    with pytest.raises(MergeError, match="type must be set for all conditions"):
        reading.get("Available")


def test_mirroring_from_a_reading() -> None:
    reading = read_conditions(infra(READY))
    assert reading.mirror("Ready", target="InfraReady") == Condition("InfraReady", "True", "Good")
    fallback = Condition("Other", "False", "Assumed")
    assert reading.mirror("Other", fallback=fallback) == fallback


@pytest.mark.parametrize(
    ("kind", "labels", "expected"),
    [
        ("Machine", {"cluster.x-k8s.io/control-plane": ""}, True),
        ("Machine", {"cluster.x-k8s.io/control-plane": "false"}, True),
        ("Machine", {}, False),
        ("Machine", None, False),
        ("DockerMachine", {"cluster.x-k8s.io/control-plane": ""}, False),
    ],
)
def test_control_plane_machines(kind: str, labels: object, expected: bool) -> None:
    obj = {"kind": kind, "metadata": {"name": "m", "labels": labels}}
    assert read_source(obj).is_control_plane_machine is expected


def test_reading_a_source() -> None:
    obj = {**infra(READY, {"type": "Broken"}), "metadata": {"name": "n", "namespace": "ns"}}
    assert read_source(obj) == Source(
        kind="Infra", name="n", namespace="ns", conditions=(Condition("Ready", "True", "Good"),)
    )
    assert read_source({"kind": 5}) == Source()


def test_the_time_zone_of_the_machine_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        (condition,) = read_conditions(infra({**READY, "lastTransitionTime": "2026-01-01T01:00:00+01:00"})).all()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert condition.last_transition_time is not None
    assert condition.last_transition_time.isoformat() == "2026-01-01T00:00:00+00:00"
