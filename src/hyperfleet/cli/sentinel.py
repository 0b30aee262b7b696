"""`hyperfleet sentinel`: look at what is due, and ask adapters to look again."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.cli.sentinel_passes import Pass

_WRONG = "wrong arguments; the file has problems"


@click.command(
    "sentinel",
    cls=CliCommand,
    examples=[
        ("show what it would do now, and why", "hyperfleet sentinel --dry-run"),
        ("one pass, for a cron job", "hyperfleet sentinel --once"),
        ("run beside the server; start it several times to share the work", "hyperfleet sentinel --name night"),
        ("try rules of your own", "hyperfleet sentinel -f examples/sentinel/rules.yaml --dry-run"),
        ("with a file of the Go sentinel", "hyperfleet sentinel -f examples/sentinel/go.yaml --dry-run"),
    ],
    codes={exits.USAGE: _WRONG},
)
@click.option("-f", "--file", metavar="FILE", help="Rules of your own, or a file of the Go sentinel; - is stdin.")
@click.option("--name", default="default", metavar="NAME", help="The sentinel to take part in.", show_default=True)
@click.option("--dry-run", is_flag=True, help="Show what it would do, and why; publish nothing.")
@click.option("--once", is_flag=True, help="Make one pass, then end.")
@output_options()
@connected
@pass_session
def sentinel(session: CliSession, file: str | None, name: str, dry_run: bool, once: bool, output: Output) -> None:
    """Ask adapters to look at resources that nobody has looked at for long.

    Every server has a sentinel already; this one runs beside it, through the API, and shares the work with all that
    have the same name. Without -f it follows the rules of the server and reads only what is due.

    With -f it has rules of its own, and reads the whole fleet in each pass: every minute, or as often as a file of the
    Go sentinel says. It needs the role reporter; for --dry-run, reader.
    """
    from hyperfleet.cli.sentinel_passes import make_pass

    with session.open(is_persistent=not (once or dry_run)) as fleet:
        work = make_pass(session, fleet, name, file)
        if dry_run:
            work.preview(output)
            return
        _run(session, work, once=once)


def _run(session: CliSession, work: Pass, *, once: bool) -> None:
    try:
        while True:
            pause = _finish(work.turn())
            if once:
                session.message(work.summary)
                return
            time.sleep(pause)
    finally:
        work.leave()


def _finish(turn: Coroutine[Any, Any, float]) -> float:
    """Run a pass to its end: through the synchronous client it never waits for an event loop."""
    try:
        turn.send(None)
    except StopIteration as done:
        return float(done.value)
    raise RuntimeError("a pass through the synchronous client cannot wait")
