"""Which broker the policy and the settings lead to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hyperfleet.aggregation import load_policies
from hyperfleet.errors import PolicyError
from hyperfleet.events.broker_choice import BrokerChoice, choose_broker
from hyperfleet.messaging import Provider, PubSubBlock, RetryPolicy, TopicNames

NONE: frozenset[Provider] = frozenset()
RABBIT: frozenset[Provider] = frozenset({"rabbitmq"})
GOOGLE: frozenset[Provider] = frozenset({"gcp-pubsub"})

GUIDE = """
requiredAdapters: [dns]
pubsub:
  provider: "rabbitmq"  # or "gcp-pubsub"
  topics:
    clusterEvents: "hyperfleet.cluster.events"
    statusUpdates: "hyperfleet.status.updates"
  retryPolicy:
    maxRetries: 3
    retryInterval: "30s"
"""


@pytest.mark.parametrize(
    ("provider", "addressed", "chosen", "is_warned", "because"),
    [
        (None, NONE, "in-process", False, "the embedded default needs no settings"),
        (None, RABBIT, "rabbitmq", False, "an address alone says where events go"),
        (None, GOOGLE, "gcp-pubsub", False, "so does a project"),
        ("rabbitmq", RABBIT, "rabbitmq", False, "policy and settings agree"),
        ("rabbitmq", NONE, "in-process", True, "the guide's policy starts without a broker, and says so"),
        ("gcp-pubsub", RABBIT, "in-process", True, "the address of another broker does not help"),
        (None, RABBIT | GOOGLE, "in-process", True, "two addresses do not say which"),
        ("gcp-pubsub", RABBIT | GOOGLE, "gcp-pubsub", False, "the policy says which"),
        ("in-process", RABBIT, "in-process", False, "the policy wins where it says something"),
    ],
)
def test_choice(
    provider: Provider | None, addressed: frozenset[Provider], chosen: Provider, is_warned: bool, because: str
) -> None:
    choice = choose_broker(PubSubBlock(provider), addressed)
    assert choice.provider == chosen, because
    assert bool(choice.warning) == is_warned, because


def test_no_block_is_the_default() -> None:
    assert choose_broker(None, NONE) == BrokerChoice()


def test_the_guides_block_works_as_printed() -> None:
    block = load_policies(GUIDE).pubsub
    assert block == PubSubBlock("rabbitmq", TopicNames(), RetryPolicy(3, timedelta(seconds=30)))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("pubsub: {provider: kafka}", "1:20", "kafka"),
        ("pubsub: {topics: {clusterEvent: a.topic}}", "1:19", "clusterEvent"),
        ("pubsub: {topics: {clusterEvents: 'not a topic'}}", "1:34", "the name of a topic"),
        ("pubsub: {retryPolicy: {maxRetries: -1}}", "1:36", "-1"),
        (
            "pubsub: {provider: rabbitmq}\n---\nappliesTo: {kind: NodePool}\npubsub: {provider: gcp-pubsub}",
            "4:9",
            "another",
        ),
    ],
)
def test_what_is_unknown_stops_the_start(text: str, place: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policies(text)
    assert f":{place}:" in str(caught.value)
    assert message in str(caught.value)
