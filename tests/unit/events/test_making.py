"""What becomes an event: one row for each kind of change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from hyperfleet.events.cloud_events import MalformedEvent, decode_event, encode_event
from hyperfleet.events.making import Origin, gap_message, messages_of, position_before
from hyperfleet.messaging import Message
from hyperfleet.model.event import EventType, Transition
from hyperfleet.ports import FacetChange, LogGap, LoggedChange, RecordedTransition, StatusCause

_TIME: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_ORIGIN: Final = Origin(
    "s1", lambda kind, id_, parent: f"/v1/{kind}/{parent or '-'}/{id_}", {"NodePool": "Cluster"}.get
)


def change(
    type_: EventType = "StatusChanged", kind: str = "Cluster", facets: FacetChange | None = None, **more: Any
) -> LoggedChange:
    """Make a change of the log."""
    parent = "cls-1" if kind == "NodePool" else None
    return LoggedChange(7, type_, kind, "r-1", parent, "acme", "name", 3, _TIME, facets, **more)


def data_of(message: Message) -> dict[str, Any]:
    """Return the data of a message."""
    found: dict[str, Any] = msgspec.json.decode(message.data)
    return found


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("Created", "Created"),
        ("SpecChanged", "SpecChanged"),
        ("DeletionRequested", "DeletionRequested"),
        ("Removed", "Removed"),
        ("ReconcileRequested", "Requested"),
    ],
)
def test_changes_of_a_resource_make_an_event_with_its_identity(type_: EventType, reason: str) -> None:
    (message,) = messages_of(change(type_), _ORIGIN)
    assert data_of(message) == {
        "id": "r-1",
        "kind": "Cluster",
        "href": "/v1/Cluster/-/r-1",
        "generation": 3,
        "reason": reason,
    }
    assert (message.topic, message.id, message.type) == ("clusterEvents", "7", "io.hyperfleet.cluster.reconcile")
    assert (message.source, message.subject, message.time) == ("/hyperfleet/s1/relay", "Cluster/r-1", _TIME)
    assert (message.tenant, message.partition_key) == ("acme", "r-1")


def test_a_child_names_its_owner() -> None:
    (message,) = messages_of(change("Created", "NodePool"), _ORIGIN)
    assert data_of(message)["owner_references"] == {"id": "cls-1", "kind": "Cluster", "href": "/v1/Cluster/-/cls-1"}
    assert message.type == "io.hyperfleet.nodepool.reconcile"


@pytest.mark.parametrize(
    ("gained", "lost", "adapter", "because"),
    [
        (["a:dns=Completed"], ["a:dns=Running"], "dns", "it completed, so its dependants are woken"),
        (["a:dns=Failed"], ["a:dns=Completed"], "dns", "it is no longer completed"),
        (["a:dns=Completed", "a:net=Completed"], [], None, "of several none is named: each must look"),
    ],
)
def test_an_adapter_that_completes_or_stops_being_so_wakes_the_others(
    gained: list[str], lost: list[str], adapter: str | None, because: str
) -> None:
    facets = FacetChange(("p:Ready",), tuple(gained), tuple(lost))
    (message,) = messages_of(change(facets=facets), _ORIGIN)
    found = data_of(message)
    assert (found["reason"], found.get("adapter")) == ("AdapterChanged", adapter), because


@pytest.mark.parametrize(
    "facets",
    [
        None,
        FacetChange(("a:dns=Completed",), ("c:Ready=True",), ("c:Ready=False",)),
        FacetChange((), ("a:dns=Running",), ("a:dns=Pending",)),
        FacetChange((), ("l:a:x=Completed", "w:a:dns=Completed"), ()),
    ],
)
def test_other_changes_of_a_status_wake_nobody(facets: FacetChange | None) -> None:
    assert list(messages_of(change(facets=facets), _ORIGIN)) == []


def test_transitions_make_one_message_about_the_status() -> None:
    moved = (
        Transition("phase", "Ready", "Failed", _TIME, "", ""),
        Transition("Ready", "True", "False", _TIME, "AdaptersFailed", "dns: no zone"),
    )
    recorded = tuple(RecordedTransition(7, each, StatusCause("report", "rep-1"), "1", 0, _TIME) for each in moved)
    facets = FacetChange(("c:Available=True",), ("p:Failed",), ("p:Ready",))
    (message,) = messages_of(change(facets=facets, transitions=recorded), _ORIGIN)
    assert (message.topic, message.id, message.type) == ("statusUpdates", "7-s", "io.hyperfleet.cluster.status.changed")
    found = data_of(message)
    assert (found["phase"], found["cause"]) == ("Failed", {"kind": "report", "ref": "rep-1"})
    assert [(each["subject"], each["from"], each["to"]) for each in found["transitions"]] == [
        ("phase", "Ready", "Failed"),
        ("Ready", "True", "False"),
    ]
    assert found["transitions"][1]["message"] == "dns: no zone"


def test_a_removed_resource_has_no_phase() -> None:
    gone = RecordedTransition(7, Transition("phase", "Deleting", None, _TIME), StatusCause("report"), "1")
    _, status = messages_of(change("Removed", transitions=(gone,)), _ORIGIN)
    assert data_of(status)["phase"] is None


def test_a_gap_is_for_every_subscription() -> None:
    message = gap_message(LogGap(3, 9), _ORIGIN)
    assert message.is_for_all
    assert data_of(message) == {"reason": "Gap", "after": 3, "upto": 9}


def test_an_event_reads_back_as_it_was_written() -> None:
    (message,) = messages_of(change("Created"), _ORIGIN)
    text = encode_event(message)
    assert decode_event(text, "clusterEvents") == message
    assert msgspec.json.decode(text)["specversion"] == "1.0"


def test_an_event_of_the_go_sentinel_is_read() -> None:
    text = (
        b'{"specversion":"1.0","type":"com.redhat.hyperfleet.cluster.reconcile","source":"hyperfleet-sentinel",'
        b'"id":"0190","datacontenttype":"application/json","data":{"id":"c-1","kind":"Cluster","generation":2}}'
    )
    message = decode_event(text, "clusterEvents")
    assert (message.partition_key, message.tenant, message.time) == ("c-1", "", None)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"rubbish",
        b"[]",
        b'{"specversion":"1.0"}',
        b'{"specversion":"0.3","id":"1","source":"s","type":"t"}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":[1]}',
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":"text"}',
        b'{"specversion":"1.0","id":"\xff","source":"s","type":"t"}',
    ],
)
def test_what_is_no_event_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedEvent):
        decode_event(text, "clusterEvents")


@pytest.mark.parametrize(
    ("id_", "before"),
    [("17", 16), ("17-s", 16), ("gap-3-9", 3), ("gap-3-9-s", 3), ("0199f9b2-7c1e-7000-8000-000000000000", 0), ("", 0)],
)
def test_an_id_names_the_position_of_its_change(id_: str, before: int) -> None:
    assert position_before(id_) == before
