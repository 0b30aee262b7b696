"""`hyperfleet describe`: one cluster, node pool or adapter in detail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.describe_tree import COLUMNS, ResourceDescription, make_tree, write_head
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.live import Frames
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.columns import format_counts, format_kinds, format_last_loss, format_skew
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import default_look, print_document, separator_of, write_document
from hyperfleet.cli.output.table import Column, write_table
from hyperfleet.cli.output.tree import write_tree
from hyperfleet.cli.resources import ADAPTER, NODE_POOL, ResourceTarget, find, operations_on, parse_target
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Adapter, Fleet


@click.command(
    "describe",
    cls=CliCommand,
    examples=[
        ("a cluster with its adapters and node pools", "hyperfleet describe cluster payments"),
        ("everything, one row for each", "hyperfleet describe cluster payments --all"),
        ("a node pool", "hyperfleet describe nodepool payments/workers"),
        ("see it change", "hyperfleet describe cluster payments --watch"),
        ("an adapter, and what it blocks", "hyperfleet describe adapter dns"),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@click.option(
    "-a", "--all", "has_all", is_flag=True, help="Show every condition, and each sibling in a row of its own."
)
@click.option("-w", "--watch", "watches", is_flag=True, help="Redraw it with every change, until Ctrl-C.")
@document_options()
@connected
@pass_session
def describe(
    session: CliSession, what: tuple[str, ...], cluster: str | None, has_all: bool, watches: bool, output: Output
) -> None:
    """Show one cluster or node pool as a tree, or an adapter.

    The tree has the phase, the conditions, the adapters with their state, reason and message, and the node pools.
    Conditions that are as they should be are left out, and equal siblings share one row.
    """
    if (name := _adapter_name(what)) is not None:
        if watches:
            raise Misuse("--watch is not for adapters; use `hyperfleet top NAME --watch`")
        with session.open() as fleet:
            _print_adapter(session, output, fleet.adapter(name))
        return
    target = parse_target(what, cluster)
    with session.open() as fleet:
        subject = find(fleet, target)
        if not watches:
            session.write_all(_write(session, output, _describe(fleet, target, subject), has_all=has_all))
            return
    with session.open(is_persistent=True) as fleet, Frames(session, separator_of(output.format)) as frames:
        for event in operations_on(fleet, target.noun).watch(subject):
            if event.resource is not None and event.kind in ("added", "modified"):
                description = _describe(fleet, target, event.resource)
                frames.show(_write(session, output, description, has_all=has_all))
            elif event.kind == "deleted":
                session.message(f"{target.name} is gone.")


def _adapter_name(what: Sequence[str]) -> str | None:
    """Return the name of the adapter, if the arguments name one."""
    words = what[0].split("/", 1) if len(what) == 1 else list(what)
    if words[0].lower() not in ADAPTER.words:
        return None
    if len(words) != 2 or not words[1]:
        raise Misuse("name one adapter; `hyperfleet get adapters` lists them")
    return words[1]


def _describe(fleet: Fleet, target: ResourceTarget, resource: Any) -> ResourceDescription:
    explanation = operations_on(fleet, target.noun).explain(resource)
    if target.noun is NODE_POOL:
        return ResourceDescription(
            resource, explanation, cluster=fleet.clusters.get(resource.cluster_id, fields="name").name
        )
    return ResourceDescription(resource, explanation, list(fleet.node_pools.list(parent=resource)))


def _write(session: CliSession, output: Output, description: ResourceDescription, *, has_all: bool) -> list[str]:
    if output.format.is_table:
        return _draw(session, description, has_all=has_all)
    pools = {} if description.cluster else {"nodePools": [pool.raw for pool in description.pools]}
    document = {"resource": description.resource.raw, "explanation": description.explanation.raw, **pools}
    return write_document(output.format, document)


def _draw(session: CliSession, description: ResourceDescription, *, has_all: bool) -> list[str]:
    now = session.now()
    tree = write_tree(COLUMNS, make_tree(description, now, has_all=has_all), default_look(session))
    return [*write_head(description, now), "", *tree]


def _print_adapter(session: CliSession, output: Output, adapter: Adapter) -> None:
    if not output.format.is_table:
        print_document(session, output, adapter.raw)
        return
    now = session.now()
    reports = adapter.reports
    lines = [
        ("Name", adapter.name),
        ("Last seen", f"{format_age(adapter.last_seen, now)} ago" if adapter.last_seen else "never"),
        ("Clock", f"{format_skew(adapter.clock_skew_seconds)} off" if adapter.clock_skew_seconds is not None else ""),
        ("Reports", f"{reports.aggregated} aggregated, {reports.stored} stored, {reports.replayed} replayed"),
        ("Discarded", format_counts(adapter.discards)),
        ("Rejected", format_counts(adapter.rejected)),
        ("Last loss", format_last_loss(adapter, now)),
        ("Blocks", format_kinds(adapter.blocks)),
    ]
    session.write_all(f"{label + ':':<12}{text}" for label, text in lines if text)
    if adapter.blocked:
        columns = (Column("BLOCKED"), Column("PHASE", is_coloured=True), Column("ID"))
        rows = [(each.name, each.phase, each.id) for each in adapter.blocked]
        session.write_all(["", *write_table(columns, rows, default_look(session))])
