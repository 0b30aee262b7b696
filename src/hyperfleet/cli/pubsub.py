"""`hyperfleet pubsub`: where events go, who has subscribed, and what consumers gave up."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import HELP, CliCommand, connected
from hyperfleet.cli.confirmation import confirm
from hyperfleet.cli.options import document_options, output_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.documents import to_plain
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.pubsub_listen import TOPIC, listen
from hyperfleet.cli.pubsub_sheets import dead_letter_sheet, subscription_sheet
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from datetime import datetime

    from hyperfleet.client import Fleet, PubSub, Subscription

_MISSING: Final = {exits.NOT_FOUND: "there is no such subscription"}
_ELSEWHERE: Final = {exits.REFUSED: "events go to another broker; the message says where"}
_BATCH: Final = 100  # dead letters per request: another broker takes them one by one, well within a time limit
_UNCOUNTED: Final = 1_000  # replayed where the number is unknown: poison comes back, so there may be no end of it
_topic_option: Final = click.option(
    "--topic",
    type=TOPIC,
    help="The topic of the subscription; at RabbitMQ and Google Pub/Sub clusterEvents if not given.",
)


@click.group(name="pubsub", context_settings=dict(HELP))
def pubsub() -> None:
    """Look after events: topics, subscriptions, dead letters.

    Every change of a resource becomes an event (docs/events.md). Dead letters are listed and replayed at every
    broker; subscriptions of RabbitMQ and Google Pub/Sub are looked after with the tools of these.
    """


pubsub.add_command(listen)


@pubsub.command(
    cls=CliCommand,
    examples=[
        ("where do events go, and are they late?", "hyperfleet pubsub state"),
        ("the lag, for a script", "hyperfleet pubsub state -o jsonpath='{.position} {.head}'"),
    ],
)
@document_options()
@connected
@pass_session
def state(session: CliSession, output: Output) -> None:
    """Show where events go, and how far the relay is.

    The relay publishes the changes of the log in order. Everything up to its position is published.
    """
    with session.open() as fleet:
        found = fleet.pubsub()
    if output.format.is_table:
        session.write_all(_describe(found, session.now()))
    else:
        print_document(session, output, found.raw)


def _describe(found: PubSub, now: datetime) -> Iterator[str]:
    behind = found.head - found.position
    late = f", the oldest {format_age(found.unpublished_since, now)} ago" if found.unpublished_since else ""
    rows = {
        "Provider": found.provider,
        "Cluster events": found.cluster_events,
        "Status updates": found.status_updates,
        "Store": found.store_id,
        "Published": f"{found.position} of {found.head}",
        "Lag": f"{count_of(behind, 'change')}{late}",
    }
    for name, value in rows.items():
        yield sanitize(f"{name + ':':<16} {value}")


class _TopicRow(Struct, frozen=True, rename="camel"):
    """A topic, and the sums over its subscriptions; None: another broker has them."""

    topic: str
    name: str
    provider: str
    subscriptions: int | None = None
    waiting: int | None = None
    dead_letters: int | None = None


@pubsub.command(
    "list",
    cls=CliCommand,
    examples=[
        ("which topics are there?", "hyperfleet pubsub list"),
        ("their names at the broker", "hyperfleet pubsub list -o custom-columns=NAME:.name"),
    ],
)
@output_options()
@connected
@pass_session
def list_topics(session: CliSession, output: Output) -> None:
    """List the topics: their names at the broker, and what waits in their subscriptions."""
    with session.open() as fleet:
        print_items(session, output, _TOPICS, _list_topics(fleet))


def _list_topics(fleet: Fleet) -> list[_TopicRow]:
    found = fleet.pubsub()
    names = {"clusterEvents": found.cluster_events, "statusUpdates": found.status_updates}
    if found.provider != "in-process":
        return [_TopicRow(topic, name, found.provider) for topic, name in names.items()]
    subscriptions = fleet.subscriptions()
    rows = []
    for topic, name in names.items():
        own = [each for each in subscriptions if each.topic == topic]
        waiting, dead = sum(map(_count_waiting, own)), sum(each.dead_letters or 0 for each in own)
        rows.append(_TopicRow(topic, name, found.provider, len(own), waiting, dead))
    return rows


def _count_waiting(found: Subscription) -> int:
    return (found.waiting or 0) + (found.in_flight or 0)


def _topic_cells(row: _TopicRow) -> Sequence[str]:
    counts = (row.subscriptions, row.waiting, row.dead_letters)
    return (row.topic, row.name, row.provider, *(NONE if count is None else str(count) for count in counts))


_TOPICS: Final = Sheet(
    "Topic",
    tuple(map(Column, ("TOPIC", "NAME", "PROVIDER", "SUBSCRIPTIONS", "WAITING", "DEAD LETTERS"))),
    _topic_cells,
    to_plain,
    lambda row: f"topic/{row.topic}",
)


@pubsub.command(
    cls=CliCommand,
    examples=[
        ("who has subscribed, and who is behind?", "hyperfleet pubsub subscriptions"),
        ("those with the most waiting first", "hyperfleet pubsub subscriptions --sort-by=-.waiting"),
    ],
    codes=_ELSEWHERE,
)
@output_options()
@connected
@pass_session
def subscriptions(session: CliSession, output: Output) -> None:
    """List the subscriptions, and what is in their queues.

    WAITING can be pulled now; IN FLIGHT was pulled, or waits for its next attempt; DEAD LETTERS were given up.
    OLDEST is the age of the oldest event that was not handled.
    """
    with session.open() as fleet:
        found = fleet.subscriptions()
    if not print_items(session, output, subscription_sheet(session.now()), found) and output.format.is_table:
        session.message("There are no subscriptions.")


@pubsub.command(
    cls=CliCommand,
    examples=[
        ("for an adapter", "hyperfleet pubsub subscribe dns"),
        ("to the transitions of phases and conditions", "hyperfleet pubsub subscribe audit --topic statusUpdates"),
    ],
    codes={exits.REFUSED: "it exists with another topic, or events go to another broker"},
)
@click.argument("name")
@click.option("--topic", type=TOPIC, default="clusterEvents", show_default=True, help="The topic to subscribe to.")
@connected
@pass_session
def subscribe(session: CliSession, name: str, topic: Any) -> None:
    """Create a subscription: a queue that keeps events from now on, whether they are pulled or not.

    A subscription that exists stays as it is. Consumers of the Python client create theirs themselves.
    """
    with session.open() as fleet:
        made = fleet.put_subscription(name, topic=topic)
    session.write(f"subscription/{made.name} to {made.topic}: {made.waiting} waiting")


@pubsub.command(
    cls=CliCommand,
    examples=[
        ("an adapter that is gone for good", "hyperfleet pubsub unsubscribe dns"),
        ("without a question", "hyperfleet pubsub unsubscribe dns --yes"),
    ],
    codes={exits.FALSE: "not confirmed; nothing was deleted", **_MISSING, **_ELSEWHERE},
)
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@connected
@pass_session
def unsubscribe(session: CliSession, name: str, yes: bool) -> None:
    """Delete a subscription with everything in its queue and its dead letters; needs the role admin."""
    with session.open() as fleet:
        found = fleet.subscription(name)
        kept = f"{count_of(_count_waiting(found), 'event')}, {count_of(found.dead_letters or 0, 'dead letter')}"
        if not yes and not confirm(session, f"Delete the subscription {name} with {kept}?"):
            sys.exit(exits.FALSE)
        fleet.delete_subscription(name)
    session.write(f"subscription/{name} deleted with {kept}")


@pubsub.command(
    "dead-letters",
    cls=CliCommand,
    examples=[
        ("what was given up, and why?", "hyperfleet pubsub dead-letters dns"),
        ("the whole events", "hyperfleet pubsub dead-letters dns -o json"),
    ],
    codes=_MISSING,
)
@click.argument("name")
@_topic_option
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Only the oldest so many.")
@output_options()
@connected
@pass_session
def dead_letters(session: CliSession, name: str, topic: Any, limit: int, output: Output) -> None:
    """List the events of a subscription that its consumers gave up, the oldest first, with the last error.

    An event is given up after the retries of the policy file, or at once if a consumer called it poison. Queues of
    RabbitMQ and Google Pub/Sub hold events of all tenants, so only callers who see all tenants see these.
    """
    with session.open() as fleet:
        found = fleet.dead_letters(name, topic=topic, limit=limit)
        total = fleet.subscription(name, topic=topic).dead_letters
    count = print_items(session, output, dead_letter_sheet(session.now()), found)
    if output.format.is_table and not count:
        session.message(f"There are no dead letters of {name}.")
    elif total is None and count == limit:
        session.message("There may be more; --limit shows more of them.")
    elif total is not None and total > count:
        session.message(f"{total - count} more; --limit shows more of them.")


@pubsub.command(
    cls=CliCommand,
    examples=[
        ("all, after the cause is fixed", "hyperfleet pubsub replay dns"),
        ("only the oldest, as a trial", "hyperfleet pubsub replay dns --limit 1"),
    ],
    codes=_MISSING,
)
@click.argument("name")
@_topic_option
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the oldest so many.")
@connected
@pass_session
def replay(session: CliSession, name: str, topic: Any, limit: int | None) -> None:
    """Deliver dead letters of a subscription again, as if for the first time.

    Google Pub/Sub does not tell how many there are: without --limit, it is 1000 at most there.
    """
    with session.open() as fleet:
        dead = fleet.subscription(name, topic=topic).dead_letters
        wanted = min([count for count in (limit, dead) if count is not None], default=_UNCOUNTED)
        done = 0
        while done < wanted and (
            more := fleet.replay_dead_letters(name, topic=topic, limit=min(wanted - done, _BATCH))
        ):
            done += more
    session.write(f"{count_of(done, 'dead letter')} of {name} delivered again")
    if limit is None and dead is None and done == wanted:
        session.message("There may be more; replay them too, or give a --limit.")
