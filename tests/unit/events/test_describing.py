"""The schemas of events: real messages fit them, wrong ones do not, and the shipped files are current."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

import jsonschema
import msgspec
import pytest

from docs import generate
from hyperfleet.events import cloud_events
from hyperfleet.events.cloud_events import encode_event
from hyperfleet.events.describing import CloudEvent, describe_events, event_schemas
from hyperfleet.events.making import Origin, gap_message, messages_of
from hyperfleet.messaging import Message, TopicNames
from hyperfleet.model.event import Transition
from hyperfleet.ports import FacetChange, LogGap, LoggedChange, RecordedTransition, StatusCause

TIME: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORIGIN: Final = Origin("s1", lambda kind, id_, parent: f"/v1/{kind}/{id_}", {"NodePool": "Cluster"}.get)
SCHEMAS: Final = event_schemas()
DOCUMENT: Final = describe_events("1.2.3")
FACETS: Final = FacetChange(("p:Failed",), ("a:dns=Completed",), ())


def messages() -> list[Message]:
    """Make a message of every type, with every field that it can have."""
    cause = StatusCause("report", "rep-1")
    moves = (
        RecordedTransition(
            2, Transition("phase", "Pending", "Failed", TIME, "Broken", "it broke"), cause, "1", 0, TIME
        ),
        RecordedTransition(2, Transition("Ready", None, "False", TIME), cause, "1", 1),
    )
    changes = [
        LoggedChange(1, "Created", "Cluster", "r-1", None, "acme", "name", 1, TIME, None),
        LoggedChange(2, "Removed", "NodePool", "r-2", "r-1", "", "name", 3, TIME, None, moves),
        LoggedChange(3, "StatusChanged", "NodePool", "r-2", "r-1", "", "name", 3, TIME, FACETS, moves),
    ]
    return [
        *(message for change in changes for message in messages_of(change, ORIGIN)),
        gap_message(LogGap(3, 9), ORIGIN),
    ]


def payload_validator(name: str) -> jsonschema.Draft202012Validator:
    """Return what checks the payload of a message as the AsyncAPI document describes it."""
    payload = DOCUMENT["components"]["messages"][name]["payload"]
    return jsonschema.Draft202012Validator({**payload, "components": DOCUMENT["components"]})


def name_of(message: Message) -> str:
    """Return the name of the message in the document."""
    if message.type.endswith(".gap"):
        return "GapEvent"
    return "ClusterEvent" if message.topic == "clusterEvents" else "StatusEvent"


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.id)
def test_real_messages_fit(message: Message) -> None:
    event = msgspec.json.decode(encode_event(message))
    name = name_of(message)
    file = re.sub("(?<!^)([A-Z])", r"-\1", name).lower() + ".schema.json"
    jsonschema.Draft202012Validator(SCHEMAS["cloud-event.schema.json"]).validate(event)
    jsonschema.Draft202012Validator(SCHEMAS[file]).validate(event["data"])
    payload_validator(name).validate(event)
    others = [other for other in ("ClusterEvent", "StatusEvent", "GapEvent") if other != name]
    assert not any(payload_validator(other).is_valid(event) for other in others)


def test_there_is_a_message_of_every_type() -> None:
    assert {name_of(message) for message in messages()} == set(DOCUMENT["components"]["messages"])


def test_messages_that_lack_something_do_not_fit() -> None:
    event = msgspec.json.decode(encode_event(messages()[0]))
    validator = payload_validator("ClusterEvent")
    for wrong in (
        {**event, "specversion": "0.3"},
        {key: value for key, value in event.items() if key != "id"},
        {**event, "data": {key: value for key, value in event["data"].items() if key != "reason"}},
        {**event, "data": {**event["data"], "generation": "1"}},
    ):
        assert not validator.is_valid(wrong), wrong


def test_the_envelope_has_the_fields_that_are_sent() -> None:
    sent = [each.encode_name for each in msgspec.structs.fields(cloud_events._CloudEvent)]
    assert [each.encode_name for each in msgspec.structs.fields(CloudEvent)] == sent


def test_every_reference_of_the_document_leads_somewhere() -> None:
    for reference in re.findall(r'"\$ref":"#/([^"]+)"', msgspec.json.encode(DOCUMENT).decode()):
        found: Any = DOCUMENT
        for part in reference.split("/"):
            found = found[part]
        assert found


def test_the_document_has_the_names_of_the_topics() -> None:
    document = describe_events("1", TopicNames(cluster_events="look", status_updates="moves"), has_exchanges=True)
    assert [each["address"] for each in document["channels"].values()] == ["look", "moves"]
    exchange = document["channels"]["clusterEvents"]["bindings"]["amqp"]["exchange"]
    assert (exchange["name"], exchange["type"], exchange["durable"]) == ("look", "topic", True)
    assert "bindings" not in DOCUMENT["channels"]["clusterEvents"]


def test_the_shipped_files_are_current() -> None:
    texts = generate.event_schema_texts()
    shipped = files("hyperfleet.events") / "schemas"
    assert {each.name for each in shipped.iterdir()} == {file.name for file in texts}
    for file, text in texts.items():
        assert file.read_text() == text, "run `make docs`"
        jsonschema.Draft202012Validator.check_schema(msgspec.json.decode(text))


def test_the_guide_is_current() -> None:
    assert generate.EVENT_GUIDE.read_text() == generate.event_guide_text(), "run `make docs`"
