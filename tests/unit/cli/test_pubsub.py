"""`hyperfleet pubsub`: what it writes, byte by byte (the transcripts in `pubsub`), and how it fails."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hyperfleet.api.app import create_app
from hyperfleet.api.context import EventOptions
from hyperfleet.cli import exits
from hyperfleet.events.broker_choice import BrokerChoice
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.making import Origin, gap_message
from hyperfleet.messaging import Message, Subscription, SubscriptionState, Topic
from hyperfleet.ports import LogGap
from tests.unit.cli.terminal import Terminal
from tests.unit.cli.transcripts import commands_of, missing_formats, transcribe

TRANSCRIPTS = sorted((Path(__file__).parent / "pubsub").glob("*.txt"))
WRITES = os.environ.get("HYPERFLEET_TEST_WRITE_GOLDEN") == "1"
MINUTE = timedelta(minutes=1)


def message(terminal: Terminal, number: int, topic: Topic = "clusterEvents", **data: object) -> Message:
    """Make an event about a cluster."""
    body = {"id": "cls-1", "kind": "Cluster", "href": "/v1/clusters/cls-1", "generation": 2, **data}
    verb, end = ("reconcile", "") if topic == "clusterEvents" else ("status.changed", "-s")
    return Message(
        topic,
        f"{number}{end}",
        "/hyperfleet/memory/relay",
        f"io.hyperfleet.cluster.{verb}",
        "Cluster/cls-1",
        terminal.clock.now(),
        "acme",
        "cls-1",
        msgspec.json.encode(body),
    )


@pytest.fixture
def queues(terminal: Terminal) -> Terminal:
    """Fill the queues of three subscriptions; time passes until the events are some minutes old."""
    server, queue = terminal.server, terminal.server.store.queues
    for subscription in (
        Subscription("dns"),
        Subscription("vpc", tenants=frozenset({"acme", "shop"})),
        Subscription("audit", "statusUpdates"),
    ):
        server.run(queue.subscribe(subscription))
    moves = [{"subject": "phase", "from": "Pending", "to": "Failed"}, {"subject": "Ready", "from": None, "to": "False"}]
    published = [
        message(terminal, 1, reason="Created"),
        message(terminal, 2, reason="AdapterChanged", adapter="vpc"),
        message(terminal, 2, "statusUpdates", phase="Failed", transitions=moves, cause={"kind": "Report", "ref": "x"}),
        message(terminal, 3, reason="Requested"),
    ]
    server.run(queue.enqueue(published))
    for queued in server.run(queue.take("dns", 2, MINUTE, 3)):
        server.run(queue.nack("dns", [queued.receipt], "ValueError: no such zone", None))
    server.run(queue.take("vpc", 1, 10 * MINUTE, 3))
    terminal.pass_time(minutes=3, seconds=6)
    return terminal


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_transcript(file: Path, queues: Terminal) -> None:
    expected = file.read_text()
    written = transcribe(queues, commands_of(expected))
    if WRITES:
        file.write_text(written)
    assert "Traceback" not in written
    assert written == expected


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_every_format_has_a_transcript(file: Path) -> None:
    assert not missing_formats(file)


def test_dead_letters_are_delivered_again(queues: Terminal) -> None:
    assert queues.run("pubsub", "replay", "dns").out == "2 dead letters of dns delivered again\n"
    states = queues.server.run(queues.server.store.queues.subscriptions("dns"))
    assert (states[0].waiting, states[0].dead) == (3, 0)


def test_a_gap_is_shown_and_no_subscription_is_added(queues: Terminal) -> None:
    gap = gap_message(LogGap(5, 9), Origin("memory", lambda kind, id_, parent: "", lambda kind: None))
    queues.server.run(queues.server.store.queues.enqueue([gap]))
    done = queues.run("pubsub", "listen", "--take", "dns", "--limit", "2")
    assert done.out == (
        "2025-10-17T12:00:00Z  3  Cluster/cls-1  Requested (generation 2)\n"
        "-                     gap-5-9  gap  Gap: changes 5 to 9 were lost\n"
    )
    names = {each.subscription.name for each in queues.server.run(queues.server.store.queues.subscriptions())}
    assert names == {"dns", "vpc", "audit"}
    assert queues.run("pubsub", "subscriptions", "-o", "name").out.split() == [
        "subscription/audit",
        "subscription/dns",
        "subscription/vpc",
    ]


def test_errors_and_events_cannot_control_a_terminal(terminal: Terminal) -> None:
    evil = "\x1b[2Jgone\x1b]0;title\x07\x9b31m"
    server, queue = terminal.server, terminal.server.store.queues
    server.run(queue.subscribe(Subscription("dns")))
    server.run(queue.enqueue([message(terminal, 1, reason=evil), message(terminal, 2, reason=evil)]))
    (queued,) = server.run(queue.take("dns", 1, MINUTE, 3))
    server.run(queue.nack("dns", [queued.receipt], evil, None))
    for line in ("dead-letters dns -o wide", "listen --take dns --limit 1"):
        written = terminal.run("pubsub", *line.split()).out.replace("\n", "")
        assert "gone" in written
        assert written.isprintable(), line


@pytest.mark.parametrize("line", ["subscriptions", "subscribe dns", "listen"])
def test_where_events_go_elsewhere_the_message_says_where(terminal: Terminal, line: str) -> None:
    server = terminal.server
    server.app = create_app(replace(server.context, events=EventOptions(BrokerChoice("rabbitmq"))))
    done = terminal.run("pubsub", *line.split())
    assert (done.code, done.out) == (exits.REFUSED, "")
    where = "events go to rabbitmq, topics hyperfleet.cluster.events and hyperfleet.status.updates; subscribe there"
    assert where in done.err
    assert "rabbitmq" in terminal.run("pubsub", "state").out
    listed = terminal.run("pubsub", "list").out
    assert "clusterEvents   hyperfleet.cluster.events   rabbitmq   <none>" in listed


class SilentBroker(InProcessBroker):
    """Does not tell how many messages there are, as Google Pub/Sub."""

    async def state_of(self, subscription: Subscription) -> SubscriptionState | None:
        """Tell only whether there is such a subscription."""
        return SubscriptionState(subscription) if await super().state_of(subscription) else None


def move_elsewhere(terminal: Terminal, broker: InProcessBroker) -> None:
    """Let the server reach its queues through the port of brokers only, as it reaches those of other programs."""
    server = terminal.server
    events = EventOptions(BrokerChoice("rabbitmq"), broker=broker)
    server.app = create_app(replace(server.context, events=events))


@pytest.fixture
def elsewhere(queues: Terminal) -> Terminal:
    """Give a server whose queues are elsewhere."""
    move_elsewhere(queues, InProcessBroker(queues.server.store, queues.clock))
    return queues


def test_dead_letters_that_the_broker_does_not_count(queues: Terminal) -> None:
    move_elsewhere(queues, SilentBroker(queues.server.store, queues.clock))
    assert queues.run("pubsub", "dead-letters", "dns").err == ""
    assert "There may be more" in queues.run("pubsub", "dead-letters", "dns", "--limit", "1").err
    assert queues.run("pubsub", "replay", "dns", "--limit", "1").out == "1 dead letter of dns delivered again\n"
    done = queues.run("pubsub", "replay", "dns")
    assert (done.out, done.err) == ("1 dead letter of dns delivered again\n", "")


def test_dead_letters_of_another_broker_are_listed_and_replayed(elsewhere: Terminal) -> None:
    assert "no such zone" in elsewhere.run("pubsub", "dead-letters", "dns").out
    assert "1 more" in elsewhere.run("pubsub", "dead-letters", "dns", "--topic", "clusterEvents", "--limit", "1").err
    assert elsewhere.run("pubsub", "replay", "dns").out == "2 dead letters of dns delivered again\n"
    for command in ("dead-letters", "replay"):
        assert elsewhere.run("pubsub", command, "nope").code == exits.NOT_FOUND


def test_a_subscription_of_another_broker_is_not_deleted_here(elsewhere: Terminal) -> None:
    done = elsewhere.run("pubsub", "unsubscribe", "dns", "--yes")
    assert (done.code, done.out) == (exits.REFUSED, "")
    assert "subscribe there" in done.err
    assert elsewhere.server.run(elsewhere.server.store.queues.find("dns")) is not None


def test_the_topic_must_be_that_of_the_subscription(queues: Terminal) -> None:
    for command in ("dead-letters", "replay"):
        done = queues.run("pubsub", command, "dns", "--topic", "statusUpdates")
        assert done.code == exits.NOT_FOUND
        assert "the subscription dns is to the topic clusterEvents" in done.err
