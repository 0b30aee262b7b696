"""`hyperfleet problems`: what fails over the whole fleet, by cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.options import Selection, output_options, selection_options
from hyperfleet.cli.output.ages import tell_age
from hyperfleet.cli.output.columns import tell_kinds, tell_labels
from hyperfleet.cli.output.documents import to_plain
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.outline import Item, write_outline
from hyperfleet.cli.output.printer import print_document, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.printable import tame
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Problems, SharedCause

_COLUMNS = (
    Column("COUNT"),
    Column("ADAPTER"),
    Column("REASON"),
    Column("SINCE"),
    Column("NEWEST"),
    Column("LAST HOUR"),
    Column("IN COMMON"),
    Column("RESOURCES", is_wide=True),
    Column("MESSAGE", is_elastic=True),
)


@click.command(
    "problems",
    cls=Command,
    examples=[
        ("what is broken?", "hyperfleet problems"),
        ("which resources, with an example of each message", "hyperfleet problems --details"),
        ("in one region", "hyperfleet problems -l region=eu-west-1"),
    ],
)
@selection_options()
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the so many most frequent causes.")
@click.option("-d", "--details", is_flag=True, help="Show the resources of each, and an example.")
@output_options()
@connected
@pass_session
def problems(session: Session, selection: Selection, limit: int | None, details: bool, output: Output) -> None:
    """Show failing adapters over clusters and node pools, grouped by what looks like one cause.

    Grouped by adapter, reason and message, apart from numbers, names and the like; those with the most resources
    first. IN COMMON are the labels that all of them have, LAST HOUR how many of the failures began then.
    """
    with session.open() as fleet:
        found = fleet.problems(limit=limit, **selection.as_filters())
    if not output.format.is_table:
        _print_document(session, output, found)
    elif not found.items:
        session.say(f"No problems: {count_of(found.examined, 'suspicious resource')} looked at.")
    elif details:
        for cause in found.items:
            session.write_all(_write_details(cause, session.now()))
    else:
        print_items(session, output, _sheet(session.now()), found.items)
    if not found.complete:
        session.say(f"There were too many: only the worst {found.examined} resources were looked at.")
    elif found.total > len(found.items):
        session.say(f"{found.total - len(found.items)} more; --limit shows more of them.")


def _print_document(session: Session, output: Output, found: Problems) -> None:
    if output.format.name in ("name", "custom-columns"):
        print_items(session, output, _sheet(session.now()), found.items)
    else:
        print_document(session, output, found.raw)


def _sheet(now: datetime) -> Sheet[SharedCause]:
    def cells(cause: SharedCause) -> Sequence[str]:
        names = ", ".join(each.name for each in cause.resources[:5])
        return (
            str(cause.count),
            cause.adapter,
            cause.reason,
            tell_age(cause.since, now),
            tell_age(cause.newest, now),
            f"+{cause.growth.last_hour}" if cause.growth.last_hour else "0",
            tell_labels(cause.shared_labels) if cause.count > 1 else NONE,
            names + (", …" if cause.count > 5 else ""),
            cause.message,
        )

    return Sheet("Problem", _COLUMNS, cells, to_plain, lambda each: f"adapter/{each.adapter}")


def _write_details(cause: SharedCause, now: datetime) -> Iterator[str]:
    labels = tell_labels(cause.shared_labels)
    mostly = ", ".join(f"{each.key}={each.value} ({each.share:.0%})" for each in cause.mostly_shared_labels[:5])
    lines = [
        *([Item(f"for example: {cause.example}")] if cause.example else []),
        Item(f"since {tell_age(cause.since, now)}, the newest {tell_age(cause.newest, now)} ago"),
        *([Item(f"in common: {labels}")] if labels != NONE and cause.count > 1 else []),
        *([Item(f"mostly: {mostly}")] if mostly else []),
        Item("resources", _list_resources(cause, now)),
    ]
    whole = Item(f"{tell_kinds(cause.kinds)}: {cause.adapter} {cause.reason}", lines)
    yield from map(tame, write_outline(whole))


def _list_resources(cause: SharedCause, now: datetime) -> list[Item]:
    shown = [Item(f"{each.kind} {each.name} ({each.id}), {tell_age(each.since, now)}") for each in cause.resources]
    more = cause.count - len(cause.resources)
    return [*shown, *([Item(f"… and {more} more")] if more > 0 else [])]
