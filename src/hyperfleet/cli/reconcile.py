"""`hyperfleet reconcile`: ask adapters to look again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.resources import ResourceTarget, find, find_cluster, operations_on
from hyperfleet.cli.selection import parse_selection
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, ReconcileRequested


@click.command(
    "reconcile",
    cls=CliCommand,
    examples=[
        ("one cluster", "hyperfleet reconcile cluster payments"),
        ("all with a label", "hyperfleet reconcile -l region=eu-west-1"),
        ("the node pools of a cluster", "hyperfleet reconcile nodepools --all --cluster payments"),
    ],
    codes={exits.NOT_FOUND: "one of them does not exist; the adapters of the others are asked"},
)
@click.argument("what", nargs=-1, metavar="[KIND] NAME... | KIND/NAME...")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools.")
@click.option("-l", "--selector", metavar="SELECTOR", help="All with these labels, instead of names.")
@click.option("--all", "is_all", is_flag=True, help="All of the kind, instead of names.")
@document_options(FORMATS)
@connected
@pass_session
def reconcile(
    session: CliSession,
    what: tuple[str, ...],
    cluster: str | None,
    selector: str | None,
    is_all: bool,
    output: Output,
) -> None:
    """Ask the adapters of clusters and node pools to look at them again.

    An event with the reason Requested goes to every subscribed adapter. Nothing of the resource itself changes. With
    -l or --all, of clusters unless you name another kind, it is one request: the server answers how many matched.
    """
    if not what and not selector and not is_all:
        raise Misuse("name a cluster or a node pool, or choose with -l or --all")
    if output.format.name == "name" and (selector or is_all):
        raise Misuse("-o name needs names: with -l and --all the server tells only how many resources matched")
    chosen = parse_selection(what or ("clusters",), cluster, selector, is_all=is_all)
    outcomes = Outcomes(session, output)
    with session.open() as fleet:
        for target in chosen.targets:
            with outcomes.attempt():
                if chosen.is_by_name:
                    _request_one(fleet, target, outcomes)
                else:
                    _request_all(fleet, target, chosen.selector, outcomes)
    sys.exit(outcomes.close())


def _request_one(fleet: Fleet, target: ResourceTarget, outcomes: Outcomes) -> None:
    resource = find(fleet, target)
    requested = operations_on(fleet, target.noun).reconcile(resource)
    outcomes.report(str(target), f"requested at position {requested.position}", resource.raw)


def _request_all(fleet: Fleet, target: ResourceTarget, selector: str | None, outcomes: Outcomes) -> None:
    parent = find_cluster(fleet, target.cluster) if target.cluster else None
    requested: ReconcileRequested = operations_on(fleet, target.noun).reconcile_all(parent=parent, labels=selector)
    found = count_of(requested.requested, target.noun.title)
    where = f" at positions up to {requested.position}" if requested.requested else ""
    outcomes.report(found, f"requested{where}", requested.raw)
