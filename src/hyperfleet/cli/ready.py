"""`hyperfleet is-ready`: a yes or no for scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.resources import find, parse_named
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Resource


@click.command(
    "is-ready",
    cls=CliCommand,
    examples=[
        ("in a script", "hyperfleet is-ready payments --quiet && ./deploy.sh"),
        ("several at once", "hyperfleet is-ready cluster payments shop"),
    ],
    codes={
        exits.OK: "all of them are ready",
        exits.FALSE: "at least one is not",
        exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND],
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME... | KIND/NAME... | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools.")
@click.option("-q", "--quiet", is_flag=True, help="Write nothing; only set the exit code.")
@connected
@pass_session
def is_ready(session: CliSession, what: tuple[str, ...], cluster: str | None, quiet: bool) -> None:
    """Check whether clusters or node pools are ready now; `wait` waits until they are.

    Ready is the phase Ready: every required adapter has completed the present generation.
    """
    with session.open() as fleet:
        found = [find(fleet, target) for target in parse_named(what, cluster)]
    if not quiet:
        session.write_all(_describe_resource(each) for each in found)
    sys.exit(exits.OK if all(each.is_ready for each in found) else exits.FALSE)


def _describe_resource(resource: Resource) -> str:
    ready = resource.status.condition("Ready")
    if resource.is_ready:
        return f"{resource.name} is Ready"
    why = f", {ready.reason}: {ready.message}" if ready is not None and ready.status != "True" else ""
    return sanitize(f"{resource.name} is not ready: {resource.phase}{why}")
