"""`hyperfleet rules versions`: which policies were in force, who put them there, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_item, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import PolicyVersion

_COLUMNS = (
    Column("VERSION"),
    Column("IN FORCE"),
    Column("TIME"),
    Column("AGE"),
    Column("SOURCE"),
    Column("BY"),
    Column("RESTORES"),
    Column("DIGEST", is_wide=True),
    Column("FILE", is_elastic=True),
)


@click.command(
    "versions",
    cls=CliCommand,
    examples=[
        ("which policies were in force, and who put them there?", "hyperfleet rules versions"),
        ("what does one say?", "hyperfleet rules versions 3"),
        ("keep it in a file", "hyperfleet rules versions 3 > policy.yaml"),
        ("the last ten, as JSON", "hyperfleet rules versions --limit 10 -o json"),
    ],
    codes={exits.NOT_FOUND: "there is no such version"},
)
@click.argument("version", required=False, type=click.IntRange(min=1), metavar="[N]")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the newest so many.")
@output_options()
@connected
@pass_session
def versions(session: CliSession, version: int | None, limit: int | None, output: Output) -> None:
    """List the versions of the policy, the newest first; or show the text of one.

    SOURCE is file (a server read it at its start), api (somebody applied it, or rolled back to the version under
    RESTORES) or built-in. All versions are kept; `hyperfleet rules rollback N` goes back to one.
    """
    with session.open() as fleet:
        if version is None:
            print_items(session, output, _sheet(session.now()), fleet.policy_versions(limit=limit))
            return
        found = fleet.policy_version(version)
    if output.format.name != "table":
        print_item(session, output, _sheet(session.now()), found)
        return
    lines = found.text.removesuffix("\n").split("\n")
    session.write_all([sanitize(line) for line in lines] if session.is_terminal else lines)


def _sheet(now: datetime) -> Sheet[PolicyVersion]:
    def cells(each: PolicyVersion) -> Sequence[str]:
        return (
            str(each.version),
            "yes" if each.in_force else "no",
            each.activated_at.strftime("%Y-%m-%d %H:%M:%S") if each.activated_at else NONE,
            format_age(each.activated_at, now),
            each.source,
            each.by or NONE,
            NONE if each.restores is None else str(each.restores),
            each.digest,
            each.file or NONE,
        )

    return Sheet("PolicyVersion", _COLUMNS, cells, lambda each: each.raw, lambda each: str(each.version))
