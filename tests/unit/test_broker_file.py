"""The broker.yaml of the Go programs loads, and says where we differ."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hyperfleet.errors import SettingsError
from hyperfleet.settings import parse_rabbit_url
from hyperfleet.settings.broker_file import BrokerFile, load_broker_file, parse_broker_file

_RABBIT = """\
log_config: true
broker:
  type: rabbitmq
  rabbitmq:
    url: amqp://guest:secret@rabbit:5672/
    exchange_type: topic
    prefetch_count: 10
    publisher_confirm: true
subscriber:
  parallelism: 4
"""
_GOOGLE = """\
broker:
  type: googlepubsub
  googlepubsub:
    project_id: fleet
    ack_deadline_seconds: 60
    message_retention_duration: 7d
    expiration_ttl: 0
    retry_min_backoff: 10s
    retry_max_backoff: 1m30s
    dead_letter_topic: mine
    dead_letter_max_attempts: 7
    max_outstanding_messages: 100
    create_topic_if_missing: true
"""
_NEVER_ROUTED = "Go consumers bind with an empty key: a topic exchange gives them no message that has a routing key"
_NO_URL = (
    "expected amqp://USER:PASSWORD@HOST/VHOST, or amqps:// for TLS; write / as %2F, : as %3A, @ as %40, ? as %3F "
    "and # as %23 where they are part of a name or password"
)


def parse(text: str, **environment: str) -> BrokerFile:
    """Read a text as broker.yaml."""
    return parse_broker_file(text, "broker.yaml", environment)


def problems_of(text: str, **environment: str) -> list[str]:
    """Return the problems of a text that is refused."""
    with pytest.raises(SettingsError) as refused:
        parse(text, **environment)
    return [str(each) for each in refused.value.problems]


def test_rabbitmq() -> None:
    found = parse(_RABBIT)
    assert (found.type, found.parallelism) == ("rabbitmq", 4)
    assert (found.rabbitmq.url, found.rabbitmq.exchange_type) == ("amqp://guest:secret@rabbit:5672/", "topic")
    assert found.rabbitmq.prefetch_count == 10
    assert [str(each) for each in found.differences] == [
        "broker.yaml:1:13: warning: ignored: the content of this file is never logged"
    ]
    assert "secret" not in repr(found)


def test_the_exchange_is_a_fanout_as_in_the_go_programs() -> None:
    assert parse("broker: {type: rabbitmq, rabbitmq: {url: 'amqp://h'}}").rabbitmq.exchange_type == "fanout"


def test_google_pubsub() -> None:
    found = parse(_GOOGLE)
    google = found.google
    assert (found.type, google.project_id, google.ack_deadline_seconds) == ("googlepubsub", "fleet", 60)
    assert (google.message_retention_duration, google.expiration_ttl) == (timedelta(days=7), timedelta())
    assert (google.retry_min_backoff, google.retry_max_backoff) == (timedelta(seconds=10), timedelta(seconds=90))
    assert (google.dead_letter_max_attempts, google.max_outstanding_messages) == (7, 100)
    assert google.create_topic_if_missing
    assert not google.create_subscription_if_missing
    assert [each.place.path for each in found.differences] == ["/broker/googlepubsub/dead_letter_topic"]


def test_variables_override_the_file() -> None:
    found = parse(
        _RABBIT, BROKER_RABBITMQ_URL="amqps://other", BROKER_RABBITMQ_PREFETCH_COUNT="3", SUBSCRIBER_PARALLELISM="9"
    )
    assert (found.rabbitmq.url, found.rabbitmq.prefetch_count, found.parallelism) == ("amqps://other", 3, 9)
    assert found.rabbitmq.exchange_type == "topic", "other keys stay"
    empty = parse("", BROKER_TYPE="googlepubsub", BROKER_GOOGLEPUBSUB_PROJECT_ID="p")
    assert (empty.type, empty.google.project_id) == ("googlepubsub", "p")
    days = parse(_GOOGLE, BROKER_GOOGLEPUBSUB_MESSAGE_RETENTION_DURATION="2d")
    assert days.google.message_retention_duration == timedelta(days=2)


def test_unknown_keys_and_differences_are_warnings() -> None:
    found = parse("""\
broker:
  type: rabbitmq
  subscriber:
    parallelism: 3
  rabbitmq:
    url: amqp://h
    exchange: one
    exchange_type: topic
    routing_key: fleet
    publisher_confirm: false
    prefetch_size: 5
    prefetch_cuont: 5
    queue:
extra: {a: 1}
""")
    assert found.parallelism == 1
    assert [str(each) for each in found.differences] == [
        'broker.yaml:3:3: warning: the key "subscriber" belongs to the top of the file',
        "broker.yaml:7:15: warning: names the exchange of cluster events only; Go programs merge all topics into it",
        f"broker.yaml:9:18: warning: {_NEVER_ROUTED}",
        "broker.yaml:10:24: warning: false is ignored: every message is confirmed, so that none is lost",
        "broker.yaml:11:20: warning: ignored: RabbitMQ does not support it",
        'broker.yaml:12:5: warning: the key "prefetch_cuont" has no effect, did you mean "prefetch_count"?',
        'broker.yaml:14:1: warning: the key "extra" has no effect',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ['broker.yaml:1:1: the key "broker" is missing']),
        ("[]", ["broker.yaml:1:1: expected a mapping, found a list"]),
        (
            "broker:\n  type: kafka",
            ['broker.yaml:2:9: expected one of "googlepubsub", "rabbitmq", found the text "kafka"'],
        ),
        (
            "broker:\n  type: rabbitmq\n  rabbitmq:\n    url: http://u:secret@h",
            [f"broker.yaml:4:10: {_NO_URL}"],
        ),
        ("broker: {type: googlepubsub}", ['broker.yaml:1:9: the key "project_id" is missing']),
    ],
)
def test_every_error_has_its_place(text: str, expected: list[str]) -> None:
    assert problems_of(text) == expected


def test_all_values_that_google_refuses_are_named() -> None:
    found = problems_of("""\
broker:
  type: googlepubsub
  googlepubsub:
    project_id: p
    message_retention_duration: 32d
    expiration_ttl: 2h
    retry_min_backoff: 20m
    retry_max_backoff: 1s
""")
    assert [each.partition(": ")[2] for each in found] == [
        "expected 10m to 31d",
        "expected 0, or at least 1d and message_retention_duration",
        "expected 0s to 600s",
        "expected at least retry_min_backoff",
    ]


def test_a_bad_variable_is_named_and_a_password_never_shown() -> None:
    (problem,) = problems_of(_RABBIT, BROKER_RABBITMQ_PREFETCH_COUNT="amqp://u:secret@h")
    assert problem.startswith("BROKER_RABBITMQ_PREFETCH_COUNT: expected a whole number")
    assert "secret" not in problem


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_broker_file(tmp_path / "missing.yaml", {})
    (tmp_path / "broker.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_broker_file(tmp_path / "broker.yaml", {})
    (tmp_path / "broker.yaml").write_text(_GOOGLE)
    assert load_broker_file(tmp_path / "broker.yaml", {}).type == "googlepubsub"


@pytest.mark.parametrize(
    "url",
    ["amqp://h", "amqps://u:p@h:5671/fleet?cafile=ca.pem", "amqp://h//", "amqp://h/%2F", "amqp://u:a%2Fb@[::1]:5672"],
)
def test_urls_of_rabbitmq(url: str) -> None:
    assert parse_rabbit_url(url) == url
    assert parse("", BROKER_TYPE="rabbitmq", BROKER_RABBITMQ_URL=url).rabbitmq.url == url


@pytest.mark.parametrize(
    "url",
    ["", "h", "amqp://", "http://h", "amqp://u:se/cret@h/", "amqp://u:12/cret@h", "amqp://h/a/b", "amqp://h:99999/"],
)
def test_what_is_no_url_of_rabbitmq(url: str) -> None:
    with pytest.raises(ValueError, match="expected amqp://") as refused:
        parse_rabbit_url(url)
    assert "cret" not in str(refused.value)
