"""`hyperfleet watch`: resources, and each change as it happens."""

from __future__ import annotations

from typing import Any

import click

from hyperfleet.cli.command import CliCommand, bundle, connected
from hyperfleet.cli.following import WatchOptions, WatchSubject, batches, choose_watch_subject, follow, key_of
from hyperfleet.cli.listing import FoundResources, sheet_of
from hyperfleet.cli.live import Frames
from hyperfleet.cli.options import Selection, label_options, output_options, selection_options
from hyperfleet.cli.output.formats import LabelColumns, Output
from hyperfleet.cli.output.printer import look_of, sort_items, write_items
from hyperfleet.cli.resources import parse_targets
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.model.phase import WORST_FIRST


@click.command(
    "watch",
    cls=CliCommand,
    examples=[
        ("all clusters, worst first", "hyperfleet watch"),
        ("what is not ready", "hyperfleet watch clusters --where Ready!=True"),
        ("one of them", "hyperfleet watch cluster payments"),
        ("every change as a line of JSON", "hyperfleet watch clusters --output-watch-events -o json"),
    ],
)
@click.argument("what", nargs=-1, metavar="[KIND [NAME] | KIND/NAME]")
@selection_options()
@bundle(
    "options",
    WatchOptions,
    click.option("-c", "--cluster", metavar="CLUSTER", help="Only node pools of this cluster."),
    click.option("--output-watch-events", "shows_events", is_flag=True, help="Show the type of each change."),
    click.option("--watch-only", "watches_only", is_flag=True, help="Show changes only, without the initial list."),
)
@label_options()
@output_options()
@connected
@pass_session
def watch(
    session: CliSession,
    what: tuple[str, ...],
    selection: Selection,
    options: WatchOptions,
    labels: LabelColumns,
    output: Output,
) -> None:
    """Show resources and every change, until Ctrl-C; lost connections are restored.

    On a terminal the table is redrawn in place, worst first. Elsewhere, and with --output-watch-events, every change is
    a line, as `get --watch` writes it.
    """
    targets = parse_targets(what or ("clusters",), options.cluster)
    if not session.is_terminal or not output.format.is_table or options.shows_events or options.watches_only:
        follow(session, targets, selection, labels, output, options)
        return
    with session.open() as fleet:
        subject = choose_watch_subject(fleet, targets, selection, options.cluster)
    _redraw(session, subject, labels, output)


def _redraw(session: CliSession, subject: WatchSubject, labels: LabelColumns, output: Output) -> None:
    present: dict[str, Any] = {}
    clusters: dict[str, str] = {}
    with session.open(is_persistent=True) as fleet, Frames(session) as frames:
        for changes in batches(fleet, subject):
            for change in changes:
                key = key_of(change.item)
                if change.kind == "deleted":
                    present.pop(key, None)
                else:
                    present[key] = change.item
            items = sorted(present.values(), key=_rank)
            sheet = sheet_of(fleet, FoundResources(subject.noun, items), session.now(), labels, clusters=clusters)
            chosen = sort_items(items, sheet, output.sort_by)
            frames.show(write_items(output, sheet, chosen, look_of(session, output)) or ["Nothing matches."])


def _rank(item: Any) -> tuple[int, str]:
    phase = getattr(item, "phase", "")
    return (WORST_FIRST.index(phase) if phase in WORST_FIRST else len(WORST_FIRST), item.name)
