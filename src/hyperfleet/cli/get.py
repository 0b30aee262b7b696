"""`hyperfleet get`: show clusters, node pools and adapters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits, following
from hyperfleet.cli.command import TIME, Command, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.gathering import Gathered, Wish, gather, group, sheet_of
from hyperfleet.cli.options import Selection, label_options, output_options, refuse_together, selection_options
from hyperfleet.cli.output.formats import LabelColumns, Output
from hyperfleet.cli.output.printer import (
    list_document,
    look_of,
    print_document,
    print_item,
    sort_items,
    write_items,
)
from hyperfleet.cli.resources import ADAPTER, ALL, NOUNS, Target, parse_targets
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet


class Scope(following.Scope, frozen=True, kw_only=True):
    """Which part of what there is, and for how long."""

    all_clusters: bool = False
    limit: int | None = None
    at: str | None = None
    watches: bool = False


@click.command(
    "get",
    cls=Command,
    examples=[
        ("all clusters", "hyperfleet get clusters"),
        (
            "what is not ready in production, the worst first",
            "hyperfleet get cl -l env=prod --where Ready!=True --sort-by severity",
        ),
        ("two of them, by name or id", "hyperfleet get cluster payments shop -o wide"),
        ("the node pools of a cluster", "hyperfleet get nodepools --cluster payments"),
        (
            "one field of each",
            'hyperfleet get cl -o jsonpath=\'{range .items[*]}{.name}{"\\t"}{.status.phase}{"\\n"}{end}\'',
        ),
        ("columns of your own", "hyperfleet get cl -o custom-columns=NAME:.name,REGION:.spec.region"),
        ("how it was an hour ago", "hyperfleet get cluster payments --at 1h -o yaml"),
        ("go on with every change", "hyperfleet get clusters --phase Failed --watch"),
    ],
    codes={exits.NOT_FOUND: "something that was named is not there; the others are shown"},
)
@click.argument("what", nargs=-1, metavar="KIND [NAME...] | KIND/NAME...")
@selection_options()
@bundle(
    "scope",
    Scope,
    click.option("-c", "--cluster", metavar="CLUSTER", help="Only node pools of this cluster."),
    click.option("-A", "--all-clusters", is_flag=True, help="Node pools of all clusters; that is so without it, too."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show only the first so many."),
    click.option("--at", type=TIME, metavar="TIME", help="As it was then: 1h, 2025-10-17T12:00:05Z. Only with names."),
    click.option("-w", "--watch", "watches", is_flag=True, help="Go on with every change, until Ctrl-C."),
    click.option("--watch-only", "watches_only", is_flag=True, help="Show changes only, not what there is."),
    click.option("--output-watch-events", "tells_events", is_flag=True, help="Say of each change what it was."),
)
@label_options()
@output_options()
@connected
@pass_session
def get(
    session: Session, what: tuple[str, ...], selection: Selection, scope: Scope, labels: LabelColumns, output: Output
) -> None:
    """Show clusters, node pools and adapters.

    KIND is clusters (cl), nodepools (np), adapters (ad) or all; several with commas between them. Resources are named
    by name or id; KIND/NAME as -o name writes it, nodepool/CLUSTER/NAME for a pool with its cluster.

    Without names, everything that fits the filters is shown. --sort-by name, createdAt, updatedAt or severity is done
    by the server, so that --limit leaves the right ones; any other path is sorted here.
    """
    targets = _parse(what, scope, selection)
    if scope.watches or scope.watches_only:
        for given in ({"limit": scope.limit}, {"at": scope.at}, {"sort_by": output.sort_by}):
            refuse_together(watch=True, **given)
        following.follow(session, targets, selection, labels, output, scope)
        return
    wish = Wish(selection, scope.cluster, scope.limit, scope.at, output.sort_by)
    with session.open() as fleet:
        groups = [gather(fleet, noun, named, wish) for noun, named in group(targets).items()]
        _print(session, fleet, groups, labels, output, is_single=_is_single(targets))
    if sum(_tell_absent(session, gathered) for gathered in groups):
        sys.exit(exits.NOT_FOUND)


def _parse(what: tuple[str, ...], scope: Scope, selection: Selection) -> list[Target]:
    targets = parse_targets(what, scope.cluster, (*NOUNS, ALL))
    if any(target.noun is ALL for target in targets):
        if len(targets) > 1 or targets[0].name is not None:
            raise Misuse("all is everything; it takes no names")
        targets = [Target(noun, None, scope.cluster) for noun in NOUNS]
    elif all(target.noun is ADAPTER for target in targets) and not selection.is_everything():
        raise Misuse("adapters cannot be filtered; name those that you want to see")
    return targets


def _is_single(targets: Sequence[Target]) -> bool:
    return len(targets) == 1 and targets[0].name is not None


def _print(
    session: Session,
    fleet: Fleet,
    groups: Sequence[Gathered],
    labels: LabelColumns,
    output: Output,
    *,
    is_single: bool,
) -> None:
    has_kind = len(groups) > 1
    sheets = [sheet_of(fleet, each, session.now(), labels, has_kind=has_kind) for each in groups]
    if is_single and groups[0].items:
        print_item(session, Output(output.format, output.has_headers), sheets[0], groups[0].items[0])
    elif has_kind and output.format.name in ("json", "yaml", "jsonpath"):
        pairs = zip(groups, sheets, strict=True)
        documents: list[Any] = [sheet.document(item) for each, sheet in pairs for item in each.items]
        print_document(session, output, list_document("", documents))
    else:
        _print_groups(session, groups, sheets, output, is_single=is_single)


def _print_groups(
    session: Session, groups: Sequence[Gathered], sheets: Sequence[Any], output: Output, *, is_single: bool
) -> None:
    written = []
    for each, sheet in zip(groups, sheets, strict=True):
        items = sort_items(list(each.items), sheet, each.order(output.sort_by))
        if items or not (output.format.is_table or is_single):
            written.append(write_items(output, sheet, items, look_of(session, output)))
        elif not each.absent:
            session.say(f"No {each.noun.title}s found.")
    for number, lines in enumerate(written):
        if number and output.format.is_table:
            session.write("")
        session.write_all(lines)


def _tell_absent(session: Session, gathered: Gathered) -> int:
    for failure in gathered.absent:
        session.say(f"Error: {failure}")
    return len(gathered.absent)
