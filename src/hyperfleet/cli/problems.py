"""`hyperfleet problems`: what fails in the whole fleet, by cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import Selection, output_options, selection_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.columns import format_kinds, format_labels
from hyperfleet.cli.output.documents import to_plain
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.outline import OutlineItem, write_outline
from hyperfleet.cli.output.printer import print_document, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

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
    cls=CliCommand,
    examples=[
        ("what is broken?", "hyperfleet problems"),
        ("which resources, with an example of each message", "hyperfleet problems --details"),
        ("in one region", "hyperfleet problems -l region=eu-west-1"),
    ],
)
@selection_options()
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the N most frequent causes.")
@click.option("-d", "--details", is_flag=True, help="Show the resources of each cause, and an example.")
@output_options()
@connected
@pass_session
def problems(session: CliSession, selection: Selection, limit: int | None, details: bool, output: Output) -> None:
    """Show failing adapters of clusters and node pools, grouped by probable cause.

    Failures are grouped by adapter, reason and message, ignoring numbers, names and the like; the largest group comes
    first. IN COMMON are the labels that all its resources have, LAST HOUR is how many of the failures began then.
    """
    with session.open() as fleet:
        found = fleet.problems(limit=limit, **selection.as_filters())
    if not output.format.is_table:
        _print_document(session, output, found)
    elif not found.items:
        session.message(f"No problems: {count_of(found.examined, 'resource')} examined.")
    elif details:
        for cause in found.items:
            session.write_all(_write_details(cause, session.now()))
    else:
        print_items(session, output, _sheet(session.now()), found.items)
    if not found.complete:
        session.message(f"There are too many: only the worst {found.examined} resources were examined.")
    elif found.total > len(found.items):
        session.message(f"{found.total - len(found.items)} more; --limit shows more of them.")


def _print_document(session: CliSession, output: Output, found: Problems) -> None:
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
            format_age(cause.since, now),
            format_age(cause.newest, now),
            f"+{cause.growth.last_hour}" if cause.growth.last_hour else "0",
            format_labels(cause.shared_labels) if cause.count > 1 else NONE,
            names + (", …" if cause.count > 5 else ""),
            cause.message,
        )

    return Sheet("Problem", _COLUMNS, cells, to_plain, lambda each: f"adapter/{each.adapter}")


def _write_details(cause: SharedCause, now: datetime) -> Iterator[str]:
    labels = format_labels(cause.shared_labels)
    mostly = ", ".join(f"{each.key}={each.value} ({each.share:.0%})" for each in cause.mostly_shared_labels[:5])
    lines = [
        *([OutlineItem(f"for example: {cause.example}")] if cause.example else []),
        OutlineItem(f"since {format_age(cause.since, now)}, newest {format_age(cause.newest, now)} ago"),
        *([OutlineItem(f"in common: {labels}")] if labels != NONE and cause.count > 1 else []),
        *([OutlineItem(f"mostly: {mostly}")] if mostly else []),
        OutlineItem("resources", _list_resources(cause, now)),
    ]
    whole = OutlineItem(f"{format_kinds(cause.kinds)}: {cause.adapter} {cause.reason}", lines)
    yield from map(sanitize, write_outline(whole))


def _list_resources(cause: SharedCause, now: datetime) -> list[OutlineItem]:
    shown = [
        OutlineItem(f"{each.kind} {each.name} ({each.id}), {format_age(each.since, now)}") for each in cause.resources
    ]
    more = cause.count - len(cause.resources)
    return [*shown, *([OutlineItem(f"… and {more} more")] if more > 0 else [])]
