"""`hyperfleet webhooks`: how webhooks are doing, a test message, enabling one again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import HELP, CliCommand, connected
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_item, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Webhook

_COLUMNS = (
    Column("NAME"),
    Column("STATE"),
    Column("SINCE"),
    Column("FORMAT"),
    Column("LAST SENT"),
    Column("LAG"),
    Column("OPEN"),
    Column("ADDRESS", is_wide=True),
    Column("LAST ERROR", is_elastic=True),
)


@click.group(name="webhooks", context_settings=dict(HELP))
def webhooks() -> None:
    """See and repair webhooks, which are configured in the server's settings.

    All of this is for administrators who see the whole fleet: docs/webhooks.md.
    """


@webhooks.command(
    "list",
    cls=CliCommand,
    examples=[
        ("how are they doing?", "hyperfleet webhooks list"),
        ("with the problems that are open", "hyperfleet webhooks list -o yaml"),
    ],
)
@output_options()
@connected
@pass_session
def list_(session: CliSession, output: Output) -> None:
    """List the webhooks of the server.

    STATE is ok, failing (it is tried again) or disabled (it must be enabled again), and SINCE for how long. LAG is how
    long the oldest change has waited to be sent, OPEN the number of causes that are not over.
    """
    with session.open() as fleet:
        found = fleet.webhooks()
    print_items(session, output, _sheet(session.now()), found)


@webhooks.command(
    cls=CliCommand,
    examples=[("does the receiver take messages?", "hyperfleet webhooks test ops")],
    codes={exits.FALSE: "the receiver did not take the message", exits.NOT_FOUND: "there is no such webhook"},
)
@click.argument("name")
@connected
@pass_session
def test(session: CliSession, name: str) -> None:
    """Send a test message to the receiver of a webhook."""
    with session.open() as fleet:
        result = fleet.test_webhook(name)
    if not result.delivered:
        session.message(f"Not delivered: {sanitize(result.error)}")
        sys.exit(exits.FALSE)
    session.write_all([f"webhook/{name} delivered: the receiver answered {result.status}"])


@webhooks.command(
    cls=CliCommand,
    examples=[("after the receiver was repaired", "hyperfleet webhooks enable ops")],
    codes={exits.NOT_FOUND: "there is no such webhook"},
)
@click.argument("name")
@output_options()
@connected
@pass_session
def enable(session: CliSession, name: str, output: Output) -> None:
    """Let a disabled webhook send again: the problems that are open now, and everything from now on."""
    with session.open() as fleet:
        found = fleet.enable_webhook(name)
    print_item(session, output, _sheet(session.now()), found)


def _sheet(now: datetime) -> Sheet[Webhook]:
    def age(time: datetime | None) -> str:
        return NONE if time is None else format_age(time, now)

    def cells(each: Webhook) -> Sequence[str]:
        return (
            each.name,
            each.state,
            age(each.disabled_since or each.failing_since),
            each.format,
            age(each.last_sent),
            age(each.waiting_since),
            str(each.open_cause_count),
            each.address,
            each.last_error or NONE,
        )

    return Sheet("Webhook", _COLUMNS, cells, lambda each: each.raw, lambda each: f"webhook/{each.name}")
