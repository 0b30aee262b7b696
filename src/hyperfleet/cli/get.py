"""`hyperfleet get`: show clusters, node pools and adapters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits, following
from hyperfleet.cli.command import TIME, CliCommand, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.listing import FoundResources, ListQuery, find_all, group, sheet_of
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
from hyperfleet.cli.resources import ADAPTER, ALL, NOUNS, ResourceTarget, parse_targets
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet


class GetOptions(following.WatchOptions, frozen=True, kw_only=True):
    """The options of `hyperfleet get`, apart from filters and output."""

    all_clusters: bool = False
    limit: int | None = None
    at: str | None = None
    watches: bool = False


@click.command(
    "get",
    cls=CliCommand,
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
        ("as it was an hour ago", "hyperfleet get cluster payments --at 1h -o yaml"),
        ("continue with every change", "hyperfleet get clusters --phase Failed --watch"),
    ],
    codes={exits.NOT_FOUND: "a named resource does not exist; the others are shown"},
)
@click.argument("what", nargs=-1, metavar="KIND [NAME...] | KIND/NAME...")
@selection_options()
@bundle(
    "get_options",
    GetOptions,
    click.option("-c", "--cluster", metavar="CLUSTER", help="Only node pools of this cluster."),
    click.option("-A", "--all-clusters", is_flag=True, help="Node pools of all clusters; this is the default."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show only the first N."),
    click.option("--at", type=TIME, metavar="TIME", help="As it was then: 1h, 2025-10-17T12:00:05Z. Only with names."),
    click.option("-w", "--watch", "watches", is_flag=True, help="Continue with every change, until Ctrl-C."),
    click.option("--watch-only", "watches_only", is_flag=True, help="Show changes only, without the initial list."),
    click.option("--output-watch-events", "shows_events", is_flag=True, help="Show the type of each change."),
)
@label_options()
@output_options()
@connected
@pass_session
def get(
    session: CliSession,
    what: tuple[str, ...],
    selection: Selection,
    get_options: GetOptions,
    labels: LabelColumns,
    output: Output,
) -> None:
    """Show clusters, node pools and adapters.

    KIND is clusters (cl), nodepools (np), adapters (ad) or all; separate several by commas. Resources are given by name
    or id; or as KIND/NAME, as -o name writes it; nodepool/CLUSTER/NAME for a pool with its cluster.

    Without names, everything that matches the filters is shown. The server sorts by name, createdAt, updatedAt or
    severity (--sort-by), so that --limit is applied after sorting; other paths are sorted here.
    """
    targets = _parse(what, get_options, selection)
    if get_options.watches or get_options.watches_only:
        for given in ({"limit": get_options.limit}, {"at": get_options.at}, {"sort_by": output.sort_by}):
            refuse_together(watch=True, **given)
        following.follow(session, targets, selection, labels, output, get_options)
        return
    options = ListQuery(selection, get_options.cluster, get_options.limit, get_options.at, output.sort_by)
    with session.open() as fleet:
        groups = [find_all(fleet, noun, named, options) for noun, named in group(targets).items()]
        _print(session, fleet, groups, labels, output, is_single=_is_single(targets))
    if sum(_report_missing(session, found_resources) for found_resources in groups):
        sys.exit(exits.NOT_FOUND)


def _parse(what: tuple[str, ...], get_options: GetOptions, selection: Selection) -> list[ResourceTarget]:
    targets = parse_targets(what, get_options.cluster, (*NOUNS, ALL))
    if any(target.noun is ALL for target in targets):
        if len(targets) > 1 or targets[0].name is not None:
            raise Misuse("all cannot be combined with names or other kinds")
        targets = [ResourceTarget(noun, None, get_options.cluster) for noun in NOUNS]
    elif all(target.noun is ADAPTER for target in targets) and not selection.is_everything():
        raise Misuse("adapters cannot be filtered; name the ones to show")
    return targets


def _is_single(targets: Sequence[ResourceTarget]) -> bool:
    return len(targets) == 1 and targets[0].name is not None


def _print(
    session: CliSession,
    fleet: Fleet,
    groups: Sequence[FoundResources],
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
    session: CliSession, groups: Sequence[FoundResources], sheets: Sequence[Any], output: Output, *, is_single: bool
) -> None:
    written = []
    for each, sheet in zip(groups, sheets, strict=True):
        items = sort_items(list(each.items), sheet, each.order(output.sort_by))
        if items or not (output.format.is_table or is_single):
            written.append(write_items(output, sheet, items, look_of(session, output)))
        elif not each.missing:
            session.message(f"No {each.noun.title}s found.")
    for number, lines in enumerate(written):
        if number and output.format.is_table:
            session.write("")
        session.write_all(lines)


def _report_missing(session: CliSession, found_resources: FoundResources) -> int:
    for failure in found_resources.missing:
        session.message(f"Error: {failure}")
    return len(found_resources.missing)
