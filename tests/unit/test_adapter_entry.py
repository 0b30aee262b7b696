"""An adapter's entry in a status (`status.adapters[]`) has the same fields wherever it goes.

The model computes it, the API answers it, stored answers are decoded for replays, and the client reads it. A field that
is added in one of these places and not carried through the others fails here.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, fields, replace

from hyperfleet.aggregation import load_policies
from hyperfleet.api.answer_decoding import answer_decoder
from hyperfleet.api.wire import AdapterAnswer, present
from hyperfleet.client.answers.resource import AdapterState
from hyperfleet.client.answers.resource import Resource as ClientResource
from hyperfleet.model.kind import Kinds
from hyperfleet.model.status import AdapterSummary
from hyperfleet.ports import LoggedEvent, Record
from hyperfleet.services.simulation import candidate_rules
from tests.world import START, World

POLICIES = load_policies("requiredAdapters: [dns]")
# No field has its default, so that one that is dropped on the way shows.
SUMMARY = AdapterSummary("dns", "True", 7, "Outdated", START + timedelta(minutes=3), stale=True)


def test_every_place_declares_the_same_fields() -> None:
    assert _names(AdapterAnswer) == _names(AdapterSummary)
    assert _names(AdapterState) == _names(AdapterSummary)
    assert _wire_names(AdapterState) == _wire_names(AdapterAnswer)


def test_the_example_has_no_defaults() -> None:
    defaults = {each.name: each.default for each in (*fields(AdapterSummary), *fields(AdapterState))}
    assert [name for name, value in asdict(SUMMARY).items() if value == defaults[name]] == []


def test_every_field_reaches_the_answer_the_client_and_a_replay() -> None:
    world = World(POLICIES.policies[0])
    answer = present(Record(world.resource, replace(world.status, adapters=(SUMMARY,))))
    (sent,) = msgspec.json.decode(answer)["status"]["adapters"]
    assert set(sent) == _wire_names(AdapterAnswer)
    (read,) = msgspec.json.decode(answer, type=ClientResource).status.adapters
    assert asdict(read) == asdict(SUMMARY)
    decode = answer_decoder(candidate_rules(POLICIES, Kinds()))
    event = LoggedEvent(1, "StatusChanged", "Cluster", world.resource.id, None, "", 1, START, answer, None)
    assert decode(event).status.adapters == (SUMMARY,)


def _names(shape: type[Struct]) -> set[str]:
    return {each.name for each in fields(shape)}


def _wire_names(shape: type[Struct]) -> set[str]:
    return {each.encode_name for each in fields(shape)}
