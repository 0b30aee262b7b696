"""`hyperfleet failed`: the adapters that failed, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.documents import to_plain
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import Column
from hyperfleet.cli.resources import find, parse_target
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import FailedAdapter


@click.command(
    "failed",
    cls=CliCommand,
    examples=[
        ("what failed, and why?", "hyperfleet failed cluster payments"),
        ("in a script", 'hyperfleet failed payments -o name || echo "some failed"'),
    ],
    codes={
        exits.OK: "no adapter failed",
        exits.FALSE: "some adapters failed; they are shown",
        exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND],
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@output_options()
@connected
@pass_session
def failed(session: CliSession, what: tuple[str, ...], cluster: str | None, output: Output) -> None:
    """Show the adapters that failed on the present generation of a cluster or a node pool.

    Unhealthy means that the adapter itself is in trouble, Failed that its work did not succeed.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        found = fleet.failed_adapters(find(fleet, target))
    if found or not output.format.is_table:
        print_items(session, output, _sheet(session.now()), found)
    else:
        session.message("No adapter failed.")
    sys.exit(exits.FALSE if found else exits.OK)


def _sheet(now: datetime) -> Sheet[FailedAdapter]:
    columns = (
        Column("ADAPTER"),
        Column("STATE", is_coloured=True),
        Column("REASON"),
        Column("SINCE"),
        Column("GENERATION", is_wide=True),
        Column("MESSAGE", is_elastic=True),
    )

    def cells(each: FailedAdapter) -> Sequence[str]:
        since = format_age(each.since, now)
        return (each.name, each.state, each.reason, since, str(each.generation), each.message)

    return Sheet("FailedAdapter", columns, cells, to_plain, lambda each: f"adapter/{each.name}")
