"""`hyperfleet watch`: resources, and each change as it comes."""

from __future__ import annotations

from typing import Any

import click

from hyperfleet.cli.command import Command, bundle, connected
from hyperfleet.cli.following import Scope, Subject, batches, choose_subject, follow, key_of
from hyperfleet.cli.gathering import Gathered, sheet_of
from hyperfleet.cli.live import Frames
from hyperfleet.cli.options import Selection, label_options, output_options, selection_options
from hyperfleet.cli.output.formats import LabelColumns, Output
from hyperfleet.cli.output.printer import look_of, sort_items, write_items
from hyperfleet.cli.resources import parse_targets
from hyperfleet.cli.session import Session, pass_session
from hyperfleet.model.phase import WORST_FIRST


@click.command(
    "watch",
    cls=Command,
    examples=[
        ("all clusters, the worst first", "hyperfleet watch"),
        ("what is not ready", "hyperfleet watch clusters --where Ready!=True"),
        ("one of them", "hyperfleet watch cluster payments"),
        ("every change as a line of JSON", "hyperfleet watch clusters --output-watch-events -o json"),
    ],
)
@click.argument("what", nargs=-1, metavar="[KIND [NAME] | KIND/NAME]")
@selection_options()
@bundle(
    "scope",
    Scope,
    click.option("-c", "--cluster", metavar="CLUSTER", help="Only node pools of this cluster."),
    click.option("--output-watch-events", "tells_events", is_flag=True, help="Say of each change what it was."),
    click.option("--watch-only", "watches_only", is_flag=True, help="Show changes only, not what there is."),
)
@label_options()
@output_options()
@connected
@pass_session
def watch(
    session: Session, what: tuple[str, ...], selection: Selection, scope: Scope, labels: LabelColumns, output: Output
) -> None:
    """Show resources and go on with every change, until Ctrl-C; connections that are lost are made anew.

    On a terminal the table is drawn anew in place, the worst first. Anywhere else, and with --output-watch-events,
    every change is a line of its own, as `get --watch` writes them.
    """
    targets = parse_targets(what or ("clusters",), scope.cluster)
    if not session.is_terminal or not output.format.is_table or scope.tells_events or scope.watches_only:
        follow(session, targets, selection, labels, output, scope)
        return
    with session.open() as fleet:
        subject = choose_subject(fleet, targets, selection, scope.cluster)
    _redraw(session, subject, labels, output)


def _redraw(session: Session, subject: Subject, labels: LabelColumns, output: Output) -> None:
    present: dict[str, Any] = {}
    clusters: dict[str, str] = {}
    with session.open(is_patient=True) as fleet, Frames(session) as frames:
        for changes in batches(fleet, subject):
            for change in changes:
                key = key_of(change.item)
                if change.kind == "deleted":
                    present.pop(key, None)
                else:
                    present[key] = change.item
            items = sorted(present.values(), key=_rank)
            sheet = sheet_of(fleet, Gathered(subject.noun, items), session.now(), labels, clusters=clusters)
            chosen = sort_items(items, sheet, output.sort_by)
            frames.show(write_items(output, sheet, chosen, look_of(session, output)) or ["Nothing fits."])


def _rank(item: Any) -> tuple[int, str]:
    phase = getattr(item, "phase", "")
    return (WORST_FIRST.index(phase) if phase in WORST_FIRST else len(WORST_FIRST), item.name)
