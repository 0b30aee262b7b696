"""`hyperfleet events`: the log of changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.files import write_private
from hyperfleet.cli.following import WatchedChange, batches, choose_watch_subject
from hyperfleet.cli.options import Selection, document_options, refuse_together, selection_options
from hyperfleet.cli.output.documents import write_json_line
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import separator_of, write_document
from hyperfleet.cli.resources import RESOURCES, parse_targets
from hyperfleet.cli.session import CliSession, pass_session

_GAP = "Warning: the server no longer keeps some of the changes; continuing with those from now on."


class EventsStart(Struct, frozen=True):
    """Where to start."""

    after: int | None = None
    bookmark: str | None = None

    def keep(self, position: int) -> None:
        """Save in the bookmark that everything up to a position has been written."""
        if self.bookmark:
            write_private(Path(self.bookmark), f"{position}\n", is_lasting=False)


@click.command(
    "events",
    cls=CliCommand,
    examples=[
        ("changes from now on", "hyperfleet events"),
        ("of one cluster", "hyperfleet events cluster payments"),
        ("after a position", "hyperfleet events --after 1042"),
        (
            "without gaps, even after a restart",
            "hyperfleet events --bookmark fleet.position -o json >> log",
        ),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, metavar="[KIND [NAME] | KIND/NAME]")
@selection_options()
@click.option("-c", "--cluster", metavar="CLUSTER", help="Only node pools of this cluster.")
@bundle(
    "start",
    EventsStart,
    click.option("--after", type=click.IntRange(min=0), metavar="POSITION", help="Start after this position."),
    click.option("--bookmark", metavar="FILE", help="Start after the position in a file, and keep it up to date."),
)
@document_options()
@connected
@pass_session
def events(
    session: CliSession,
    what: tuple[str, ...],
    selection: Selection,
    cluster: str | None,
    start: EventsStart,
    output: Output,
) -> None:
    """Write the changes of clusters (or node pools), one line each, until Ctrl-C.

    Each line has the time, the position, the event, the resource, and what changed. Positions count every change of
    every resource; --after resumes after one, --bookmark keeps it in a file. If the server no longer keeps some of the
    changes, there is a warning on stderr. -o json writes one document per line, with the whole resource.
    """
    refuse_together(after=start.after is not None, bookmark=start.bookmark)
    targets = parse_targets(what or ("clusters",), cluster, RESOURCES)
    position = _read_bookmark(start.bookmark) if start.bookmark else start.after
    with session.open() as fleet:
        subject = choose_watch_subject(fleet, targets, selection, cluster)
    with session.open(is_persistent=True) as fleet:
        all_changes = batches(fleet, subject, position, on_gap=lambda: session.message(_GAP), on_position=start.keep)
        for change in (each for changes in all_changes for each in changes if each.kind != "listed"):
            session.write_all(_write(output, change, subject.noun.name))


def _write(output: Output, change: WatchedChange, noun: str) -> list[str]:
    moves = list(format_moves(change.before, change.item))
    time = _time_of(change)
    if output.format.is_table:
        name = getattr(change.item, "name", change.item.id)
        text = "; ".join(moves) or change.reason or getattr(change.item, "phase", "")
        return [f"{time:<20}  {change.position or '-'}  {change.kind.upper():<8}  {noun}/{name}  {text}".rstrip()]
    document = {
        "time": time,
        "position": change.position,
        "event": change.kind,
        "moves": moves,
        "object": getattr(change.item, "raw", {"id": change.item.id}),
    }
    if output.format.name == "json":
        return [write_json_line(document)]
    return [*filter(None, [separator_of(output.format)]), *write_document(output.format, document)]


def format_moves(before: Any, after: Any) -> Iterator[str]:
    """Yield what changed between two versions of a resource: generation, phase, conditions, adapters."""
    if before is None or not hasattr(after, "status") or not hasattr(before, "status"):
        return
    if before.generation != after.generation:
        yield f"generation {before.generation} → {after.generation}"
    if before.phase != after.phase:
        yield f"phase {before.phase} → {after.phase}"
    yield from _compare(
        {each.type: each.status for each in before.status.conditions},
        {each.type: each.status for each in after.status.conditions},
    )
    yield from _compare(_states(before), _states(after))


def _states(resource: Any) -> dict[str, str]:
    return {each.name: "Stale" if each.stale else each.state for each in resource.status.adapters}


def _compare(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in {**before, **after}:
        old, new = before.get(name, "none"), after.get(name, "none")
        if old != new:
            yield f"{name} {old} → {new}"


def _time_of(change: WatchedChange) -> str:
    """Return the time of a change, from the resource; unknown for a removal."""
    status = getattr(change.item, "status", None)
    if status is None or status.last_updated is None or change.kind == "deleted":
        return "-"
    moment: datetime = status.last_updated
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_bookmark(file: str) -> int | None:
    try:
        text = Path(file).read_bytes().decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    if not text.isdecimal():
        raise Misuse(f"{file} does not contain a position; only --bookmark should write it")
    return int(text)
