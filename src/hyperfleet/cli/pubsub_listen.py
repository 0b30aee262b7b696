"""`hyperfleet pubsub listen`: events as they are published."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.documents import write_json_line
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import separator_of, write_document
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Event, Fleet, Subscription

TOPIC: Final = click.Choice(("clusterEvents", "statusUpdates"))
_PREFETCH: Final = 50  # events per request: they are only shown, so all of them are in time


@click.command(
    "listen",
    cls=CliCommand,
    examples=[
        ("see events as they are published", "hyperfleet pubsub listen"),
        ("transitions of phases and conditions", "hyperfleet pubsub listen --topic statusUpdates"),
        ("the next event, as JSON", "hyperfleet pubsub listen --limit 1 -o json"),
        ("drain the queue of a consumer that is stopped", "hyperfleet pubsub listen --take dns"),
    ],
    codes={
        exits.NOT_FOUND: "there is no such subscription to take from",
        exits.REFUSED: "events go to another broker; the message says where",
    },
)
@click.option("--topic", type=TOPIC, default="clusterEvents", show_default=True, help="The topic to listen to.")
@click.option("--take", metavar="NAME", help="Take the events of this subscription: its consumers do not get them.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after so many events.")
@document_options()
@connected
@pass_session
def listen(session: CliSession, topic: Any, take: str | None, limit: int | None, output: Output) -> None:
    """Write events as they are published, one line each, until Ctrl-C.

    Each line has the time, the id, the resource, and why the event was sent. Consumers notice nothing of it: a
    subscription is made for this, which gets every event from now on, and is deleted at the end (role admin). -o json
    writes one CloudEvent per line.
    """
    with session.open() as fleet:  # not a persistent one: at first, a server that is away is an error
        found = fleet.subscription(take) if take else fleet.put_subscription(_new_name(), topic=topic)
    try:
        with session.open(is_persistent=True) as fleet:
            _listen(session, fleet, found, limit, output)
    finally:
        if take is None:
            _delete(session, found.name)


def _new_name() -> str:
    return f"listen-{secrets.token_hex(4)}"


def _listen(session: CliSession, fleet: Fleet, found: Subscription, limit: int | None, output: Output) -> None:
    topic: Any = found.topic
    prefetch = min(limit or _PREFETCH, _PREFETCH)
    with closing(fleet.subscribe(found.name, topic=topic, prefetch=prefetch)) as events:
        for event in islice(events, limit):
            session.write_all(_write(output, event))
            event.ack()


def _delete(session: CliSession, name: str) -> None:
    """Delete the subscription that was made; tell who can if this caller cannot."""
    from hyperfleet.client import FleetError

    try:
        with session.open() as fleet:
            fleet.delete_subscription(name)
    except FleetError as error:
        session.message(
            f"Warning: the subscription {name} is left over, and keeps events: {error}. "
            f"An administrator deletes it with: hyperfleet pubsub unsubscribe {name}"
        )


def _write(output: Output, event: Event) -> list[str]:
    if output.format.is_table:
        time = event.time.strftime("%Y-%m-%dT%H:%M:%SZ") if event.time else "-"
        return [sanitize(f"{time:<20}  {event.id}  {event.subject}  {_describe(event)}".rstrip())]
    document = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "time": event.time,
        "tenant": event.tenant,
        "data": event.data,
    }
    if output.format.name == "json":
        return [write_json_line(document)]
    return [*filter(None, [separator_of(output.format)]), *write_document(output.format, document)]


def _describe(event: Event) -> str:
    """Return why an event was sent: its reason, or its transitions."""
    if moves := list(_moves(event)):
        return "; ".join(moves)
    if event.is_gap:
        return f"Gap: changes {event.data.get('after')} to {event.data.get('upto')} were lost"
    adapter = f" {event.adapter}" if event.adapter else ""
    return f"{event.reason}{adapter} (generation {event.generation})"


def _moves(event: Event) -> Iterator[str]:
    transitions = event.data.get("transitions")
    for each in transitions if isinstance(transitions, list) else ():
        if isinstance(each, dict):
            yield f"{each.get('subject')} {each.get('from') or 'none'} → {each.get('to') or 'none'}"
