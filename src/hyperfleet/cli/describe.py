"""`hyperfleet describe`: one cluster, node pool or adapter, with everything that matters about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.describing import COLUMNS, Description, make_tree, write_head
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.live import Frames
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.ages import tell_age
from hyperfleet.cli.output.columns import tell_counts, tell_kinds, tell_loss, tell_skew
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import default_look, print_document, separator_of, write_document
from hyperfleet.cli.output.table import Column, write_table
from hyperfleet.cli.output.tree import write_tree
from hyperfleet.cli.resources import ADAPTER, NODE_POOL, Target, find, operations_on, parse_target
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Adapter, Fleet


@click.command(
    "describe",
    cls=Command,
    examples=[
        ("a cluster with its adapters and node pools", "hyperfleet describe cluster payments"),
        ("everything, one row for each", "hyperfleet describe cluster payments --all"),
        ("a node pool", "hyperfleet describe nodepool payments/workers"),
        ("see it change", "hyperfleet describe cluster payments --watch"),
        ("an adapter, and what waits for it", "hyperfleet describe adapter dns"),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@click.option(
    "-a", "--all", "has_all", is_flag=True, help="Show every condition, and each sibling in a row of its own."
)
@click.option("-w", "--watch", "watches", is_flag=True, help="Draw it anew with every change, until Ctrl-C.")
@document_options()
@connected
@pass_session
def describe(
    session: Session, what: tuple[str, ...], cluster: str | None, has_all: bool, watches: bool, output: Output
) -> None:
    """Show one cluster or node pool as a tree, or an adapter.

    From the phase to the conditions, to the adapters with their state, reason and message, to the node pools. Only
    what matters is shown: conditions that are good are left out, and siblings that are alike are one row.
    """
    if (name := _adapter_name(what)) is not None:
        if watches:
            raise Misuse("adapters are not drawn anew here; use `hyperfleet top NAME --watch`")
        with session.open() as fleet:
            _print_adapter(session, output, fleet.adapter(name))
        return
    target = parse_target(what, cluster)
    with session.open() as fleet:
        subject = find(fleet, target)
        if not watches:
            session.write_all(_write(session, output, _describe(fleet, target, subject), has_all=has_all))
            return
    with session.open(is_patient=True) as fleet, Frames(session, separator_of(output.format)) as frames:
        for event in operations_on(fleet, target.noun).watch(subject):
            if event.resource is not None and event.kind in ("added", "modified"):
                told = _describe(fleet, target, event.resource)
                frames.show(_write(session, output, told, has_all=has_all))
            elif event.kind == "deleted":
                session.say(f"{target.name} is gone.")


def _adapter_name(what: Sequence[str]) -> str | None:
    """Return the name of the adapter that is meant, if one is."""
    words = what[0].split("/", 1) if len(what) == 1 else list(what)
    if words[0].lower() not in ADAPTER.words:
        return None
    if len(words) != 2 or not words[1]:
        raise Misuse("say which adapter, one at a time; `hyperfleet get adapters` lists them")
    return words[1]


def _describe(fleet: Fleet, target: Target, resource: Any) -> Description:
    explanation = operations_on(fleet, target.noun).explain(resource)
    if target.noun is NODE_POOL:
        return Description(resource, explanation, cluster=fleet.clusters.get(resource.cluster_id, fields="name").name)
    return Description(resource, explanation, list(fleet.node_pools.list(parent=resource)))


def _write(session: Session, output: Output, told: Description, *, has_all: bool) -> list[str]:
    if output.format.is_table:
        return _draw(session, told, has_all=has_all)
    pools = {} if told.cluster else {"nodePools": [pool.raw for pool in told.pools]}
    document = {"resource": told.resource.raw, "explanation": told.explanation.raw, **pools}
    return write_document(output.format, document)


def _draw(session: Session, told: Description, *, has_all: bool) -> list[str]:
    now = session.now()
    tree = write_tree(COLUMNS, make_tree(told, now, has_all=has_all), default_look(session))
    return [*write_head(told, now), "", *tree]


def _print_adapter(session: Session, output: Output, adapter: Adapter) -> None:
    if not output.format.is_table:
        print_document(session, output, adapter.raw)
        return
    now = session.now()
    reports = adapter.reports
    lines = [
        ("Name", adapter.name),
        ("Last seen", f"{tell_age(adapter.last_seen, now)} ago" if adapter.last_seen else "never"),
        ("Clock", f"{tell_skew(adapter.clock_skew_seconds)} off" if adapter.clock_skew_seconds is not None else ""),
        ("Reports", f"{reports.aggregated} aggregated, {reports.stored} stored, {reports.replayed} replayed"),
        ("Discarded", tell_counts(adapter.discards)),
        ("Rejected", tell_counts(adapter.rejected)),
        ("Last loss", tell_loss(adapter, now)),
        ("Blocks", tell_kinds(adapter.blocks)),
    ]
    session.write_all(f"{label + ':':<12}{text}" for label, text in lines if text)
    if adapter.blocked:
        columns = (Column("BLOCKED"), Column("PHASE", is_coloured=True), Column("ID"))
        rows = [(each.name, each.phase, each.id) for each in adapter.blocked]
        session.write_all(["", *write_table(columns, rows, default_look(session))])
