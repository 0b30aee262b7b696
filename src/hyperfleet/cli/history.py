"""`hyperfleet history`: what changed, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import TIME, CliCommand, bundle, connected
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.ages import format_age, format_length
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.resources import find_in_past, operations_on, parse_target
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import HistoryEntry

_COLUMNS = (
    Column("TIME"),
    Column("AGE"),
    Column("WHAT"),
    Column("FROM", is_coloured=True),
    Column("TO", is_coloured=True),
    Column("AFTER"),
    Column("CAUSE"),
    Column("REASON"),
    Column("POSITION", is_wide=True),
    Column("POLICY", is_wide=True),
    Column("MESSAGE", is_wide=True, is_elastic=True),
)


class HistoryRange(Struct, frozen=True):
    """Which part of the history."""

    subject: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    limit: int | None = None


@click.command(
    "history",
    cls=CliCommand,
    examples=[
        ("what happened to it?", "hyperfleet history cluster payments"),
        ("its phase and Ready during the last day", "hyperfleet history payments --subject phase,Ready --since 24h"),
        ("with messages, oldest first", "hyperfleet history payments -o wide --sort-by position"),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@bundle(
    "options",
    HistoryRange,
    click.option(
        "--subject", multiple=True, metavar="SUBJECT", help="Only the phase, or these conditions: phase,Ready."
    ),
    click.option("--since", type=TIME, metavar="TIME", help="From this time: 24h, 2025-10-17T12:00:05Z."),
    click.option("--until", type=TIME, metavar="TIME", help="Up to this time."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N."),
)
@output_options()
@connected
@pass_session
def history(
    session: CliSession, what: tuple[str, ...], cluster: str | None, options: HistoryRange, output: Output
) -> None:
    """Show every transition of the phase and of conditions, newest first.

    FROM and TO are the old and the new value, AFTER is how long the old one lasted, CAUSE is what triggered the
    computation: a report, a deadline, an edit of the spec, another policy and so on. A cluster that is gone still has
    its history, under its id.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        subject, parent = find_in_past(fleet, target)
        entries = list(
            operations_on(fleet, target.noun).history(
                subject,
                parent=parent,
                subjects=",".join(options.subject) or None,
                since=options.since,
                until=options.until,
                limit=options.limit,
            )
        )
    if not entries and output.format.is_table:
        session.message("There are no transitions, or they are no longer kept.")
    else:
        print_items(session, output, _sheet(session.now()), entries)


def _sheet(now: datetime) -> Sheet[HistoryEntry]:
    def cells(entry: HistoryEntry) -> Sequence[str]:
        return (
            entry.time.strftime("%Y-%m-%d %H:%M:%S") if entry.time else NONE,
            format_age(entry.time, now),
            entry.subject,
            entry.from_ or NONE,
            entry.to or NONE,
            _format_duration(entry.duration),
            " ".join(filter(None, (entry.cause.kind, entry.cause.ref))),
            entry.reason,
            str(entry.position),
            entry.policy,
            entry.message,
        )

    return Sheet("HistoryEntry", _COLUMNS, cells, lambda each: each.raw, lambda each: f"{each.position}/{each.subject}")


def _format_duration(text: str | None) -> str:
    """Format a duration without fractions."""
    from hyperfleet.documents.durations import parse_duration

    if text is None:
        return NONE
    try:
        return format_length(parse_duration(text))
    except ValueError:  # a newer server may use another format
        return text
