"""What the service would refuse is found before, and messages have the form that it takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.pubsub_v1.types import PubsubMessage, ReceivedMessage

from hyperfleet.backends.google_pubsub import PubSubBroker
from hyperfleet.backends.google_pubsub_messages import (
    encode_message,
    make_dead_letter,
    make_replay,
    read_dead_letter,
    split_requests,
    write_filter,
)
from hyperfleet.backends.google_pubsub_options import PubSubOptions, find_limits, find_problems
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.messaging import Message, RetryPolicy, Subscription, TopicNames

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_MESSAGE = Message(
    "clusterEvents", "7", "/x", "io.hyperfleet.cluster.reconcile", "Cluster/c", _TIME, "acme", "c", b"{}"
)


def options(**more: Any) -> PubSubOptions:
    return PubSubOptions(**({"project": "my-project"} | more))


def test_the_defaults_are_fine() -> None:
    assert find_problems(options()) == ()
    assert find_limits(options()) == ()
    assert find_problems(options(project="example.com:my-project")) == ()


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"project": ""}, "project"),
        ({"project": "My Project"}, "project"),
        ({"topics": TopicNames(cluster_events="no spaces")}, "'no spaces'"),
        ({"topics": TopicNames(status_updates="google-topic")}, "'google-topic'"),
        ({"ack_deadline": 9 * _SECOND}, "ack deadline"),
        ({"ack_deadline": 601 * _SECOND}, "ack deadline"),
        ({"message_retention": 32 * _DAY}, "messages must be kept"),
        ({"dead_letter_retention": 9 * _SECOND}, "dead letters must be kept"),
        ({"expiration": 2 * _DAY}, "expiration"),
        ({"min_backoff": 20 * _SECOND, "max_backoff": 10 * _SECOND}, "back-offs"),
        ({"max_backoff": 601 * _SECOND}, "back-offs"),
        ({"max_attempts": 4}, "5 to 100"),
        ({"max_attempts": 101}, "5 to 100"),
        ({"max_outstanding_messages": 0}, "outstanding"),
    ],
)
def test_what_the_service_refuses_is_found(more: dict[str, Any], problem: str) -> None:
    (found,) = find_problems(options(**more))
    assert problem in found


def test_all_problems_are_found() -> None:
    assert len(find_problems(options(project="", ack_deadline=_SECOND, max_attempts=1))) == 3


@pytest.mark.parametrize(
    ("retries", "given", "ours", "the_services", "because"),
    [
        (3, None, 4, 5, "the guide's: the service would have given up after five deliveries, we do after four"),
        (0, None, 1, 5, "it allows no fewer than five"),
        (4, None, 5, 6, "the service waits for one more than ours, which knows the error"),
        (3, 10, 4, 10, "a broker.yaml may ask for more"),
        (9, 5, 10, 11, "but never for fewer than the policy"),
        (99, None, 100, 100, "it allows no more than 100"),
        (500, None, 100, 100, "it allows no more than 100"),
    ],
)
def test_retries_fit_into_the_limits_of_the_service(
    retries: int, given: int | None, ours: int, the_services: int, because: str
) -> None:
    found = options(retry=RetryPolicy(max_retries=retries), max_attempts=given)
    assert (found.last_attempt, found.service_attempts) == (ours, the_services), because
    assert len(find_limits(found)) == (retries > 99)


def test_the_interval_is_the_back_off() -> None:
    assert options(retry=RetryPolicy(interval=7 * _SECOND)).backoffs == (7 * _SECOND, 7 * _SECOND)
    assert options(min_backoff=_SECOND, max_backoff=9 * _SECOND).backoffs == (_SECOND, 9 * _SECOND)
    assert options(min_backoff=40 * _SECOND).backoffs == (40 * _SECOND, 40 * _SECOND), "the longest is never shorter"
    long = options(retry=RetryPolicy(interval=timedelta(hours=1)))
    assert long.backoffs == (600 * _SECOND, 600 * _SECOND)
    assert find_limits(long) == ("Google Pub/Sub delivers again after at most 600s, not 3600s",)


def test_a_message_has_an_ordering_key_and_attributes_that_are_texts() -> None:
    encoded = encode_message(_MESSAGE, is_ordered=True)
    assert encoded.ordering_key == "c"
    assert dict(encoded.attributes) == {
        "content-type": "application/cloudevents+json; charset=UTF-8",
        "tenant": "acme",
    }
    assert encode_message(_MESSAGE, is_ordered=False).ordering_key == ""


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([10] * 1000, [1000]),
        ([10] * 2001, [1000, 1000, 1]),
        ([5_000_000, 5_000_000, 1], [1, 2]),
        ([9_500_000, 1], [1, 1]),
    ],
)
def test_requests_have_sizes_that_the_service_takes(sizes: list[int], expected: list[int]) -> None:
    messages = [PubsubMessage(data=b"x" * size, message_id=str(number)) for number, size in enumerate(sizes)]
    requests = list(split_requests(messages))
    assert [len(request) for request in requests] == expected
    assert [message for request in requests for message in request] == messages


@pytest.mark.parametrize(
    ("tenants", "expected"),
    [
        (None, '(NOT attributes:replayed OR attributes.replayed = "t-a")'),
        (
            frozenset({"b", 'a"'}),
            (
                '(NOT attributes:replayed OR attributes.replayed = "t-a") '
                'AND (attributes:forall OR attributes.tenant = "a\\"" OR attributes.tenant = "b")'
            ),
        ),
        (frozenset({"x" * 200}), '(NOT attributes:replayed OR attributes.replayed = "t-a")'),
    ],
)
def test_a_filter_is_never_too_long(tenants: frozenset[str] | None, expected: str) -> None:
    assert write_filter(Subscription("a", tenants=tenants), "t-a") == expected
    assert write_filter(Subscription("a", tenants=tenants), "t" * 250) == ""


def test_a_dead_letter_keeps_its_message_and_gets_the_error() -> None:
    dead = make_dead_letter(encode_message(_MESSAGE, is_ordered=True), "ü" * 2_000, 4)
    letter = read_dead_letter(ReceivedMessage(message=dead), "clusterEvents")
    assert (letter.message, letter.attempts, letter.error) == (_MESSAGE, 4, "ü" * 512)
    replayed = make_replay(dead, "t-a", is_ordered=True)
    assert (replayed.data, replayed.ordering_key, replayed.attributes["replayed"]) == (dead.data, "c", "t-a")
    assert "error" not in replayed.attributes


def test_poison_and_letters_of_the_service_can_be_read() -> None:
    attributes = {"CloudPubSubDeadLetterSourceDeliveryCount": "5"}
    poison = PubsubMessage(data=b"\xff{", attributes=attributes, message_id="12", publish_time=_TIME)
    letter = read_dead_letter(ReceivedMessage(message=poison), "statusUpdates")
    assert (letter.key, letter.attempts, letter.time) == ("12", 5, _TIME)
    assert letter.message.data == '{"text":"\ufffd{"}'.encode()
    assert "no consumer answered" in letter.error
    assert make_replay(poison, "t-a", is_ordered=True).ordering_key == ""


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_without_credentials_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/secret-name.json")
    broker = PubSubBroker(options(retry=RetryPolicy(max_retries=500)))
    await broker.open()
    assert "at most 100 times" in caplog.text
    assert "nothing can be published yet" in caplog.text
    with pytest.raises(BrokerUnavailable, match="set GOOGLE_APPLICATION_CREDENTIALS") as caught:
        await broker.publish([_MESSAGE])
    assert "secret-name" not in f"{caught.value}{caplog.text}"
    await broker.close()
