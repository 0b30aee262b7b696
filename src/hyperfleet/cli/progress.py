"""`hyperfleet progress`: the progress of each adapter, in the guide's format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.live import Frames
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.colours import Colour, paint
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import list_document, separator_of, write_document
from hyperfleet.cli.resources import find, operations_on, parse_target
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import AdapterProgress

_COLOURS: dict[str, Colour] = {"completed": "good", "failed": "bad", "unhealthy": "bad", "running": "busy"}


@click.command(
    "progress",
    cls=CliCommand,
    examples=[
        ("how far is it?", "hyperfleet progress cluster payments"),
        ("follow it", "hyperfleet progress cluster payments --watch"),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@click.option("-w", "--watch", "watches", is_flag=True, help="Show it again with every change, until it is gone.")
@document_options()
@connected
@pass_session
def progress(session: CliSession, what: tuple[str, ...], cluster: str | None, watches: bool, output: Output) -> None:
    """Show the progress of each adapter on a cluster or a node pool.

    In the order of the policy, including adapters without a report; for each its state, the generation of its last
    report, and its message.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        subject = find(fleet, target)
        if not watches:
            session.write_all(_write(session, output, fleet.progress(subject)))
            return
    with session.open(is_persistent=True) as fleet, Frames(session, separator_of(output.format)) as frames:
        for event in operations_on(fleet, target.noun).watch(subject):
            if event.kind in ("added", "modified"):
                frames.show(_write(session, output, fleet.progress(subject)))


def write_progress(adapters: Sequence[AdapterProgress], *, has_colour: bool) -> list[str]:
    """Return the lines of the guide: `validation - completed (gen 1)`, and the message below it."""
    lines = []
    for each in adapters:
        state = paint(each.state, _COLOURS.get(each.state) if has_colour else None)
        notes = [word for word, holds in (("stale", each.stale), ("optional", not each.required)) if holds]
        more = f" [{', '.join(notes)}]" if notes else ""
        lines.append(f"{each.adapter} - {state} (gen {each.generation}){more}")
        lines += [f"   {sanitize(' '.join(each.message.split()))}"] if each.message else []
    return lines


def _write(session: CliSession, output: Output, adapters: Sequence[AdapterProgress]) -> list[str]:
    if output.format.is_table:
        return write_progress(adapters, has_colour=session.has_colour)
    return write_document(output.format, list_document("AdapterProgress", adapters))
