"""`hyperfleet delete`: delete clusters and node pools."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, CliCommand, bundle, connected
from hyperfleet.cli.confirmation import confirm
from hyperfleet.cli.failures import CommandFailure, Misuse, code_of
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.resources import ResourceTarget, find, operations_on
from hyperfleet.cli.selection import ResourceSelection, parse_selection, select
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_SHOWN: Final = 10  # names in a question


class DeleteSelection(Struct, frozen=True):
    """Which resources to delete, apart from names."""

    cluster: str | None = None
    selector: str | None = None
    is_all: bool = False
    files: tuple[str, ...] = ()


class DeleteOptions(Struct, frozen=True):
    """How to delete."""

    waits: bool = False
    timeout: timedelta = timedelta(minutes=10)
    is_forced: bool = False
    reason: str | None = None
    ignores_missing: bool = False


@click.command(
    "delete",
    cls=CliCommand,
    examples=[
        ("adapters clean up first", "hyperfleet delete cluster payments"),
        ("… and return when it is gone", "hyperfleet delete cluster payments --wait --timeout 30m"),
        ("all with a label, after confirmation", "hyperfleet delete clusters -l env=test"),
        (
            "a stuck one, without waiting for adapters; history keeps the reason",
            'hyperfleet delete cluster payments --force --reason "the account is closed"',
        ),
    ],
    codes={
        exits.FALSE: "not confirmed; nothing was deleted",
        exits.NOT_FOUND: "one of them does not exist; the others are being deleted",
        exits.REFUSED: "the server refused one of them; the others are being deleted",
        exits.TIMEOUT: "with --wait: one is not gone in time; its deletion continues",
    },
)
@click.argument("what", nargs=-1, metavar="KIND NAME... | KIND/NAME...")
@bundle(
    "selection",
    DeleteSelection,
    click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools."),
    click.option("-l", "--selector", metavar="SELECTOR", help="All with these labels, after confirmation."),
    click.option("--all", "is_all", is_flag=True, help="All of the kind, after confirmation."),
    click.option("-f", "--filename", "files", multiple=True, metavar="FILE|DIR|-", help="The resources of manifests."),
)
@bundle(
    "options",
    DeleteOptions,
    click.option("--wait", "waits", is_flag=True, help="Return when they are gone."),
    click.option(
        "--timeout", type=DURATION, default="10m", metavar="DURATION", help="How long to wait. [default: 10m]"
    ),
    click.option("--force", "is_forced", is_flag=True, help="Remove at once, without waiting for adapters."),
    click.option("--reason", metavar="TEXT", help="Why, with --force; kept in the history."),
    click.option(
        "--ignore-not-found", "ignores_missing", is_flag=True, help="A resource that does not exist is not an error."
    ),
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@document_options(FORMATS)
@connected
@pass_session
def delete(
    session: CliSession,
    what: tuple[str, ...],
    selection: DeleteSelection,
    options: DeleteOptions,
    yes: bool,
    output: Output,
) -> None:
    """Delete clusters and node pools.

    A resource is gone when every adapter has cleaned up; --wait waits for that. The node pools of a cluster are deleted
    with it.
    """
    if options.is_forced != (options.reason is not None):
        raise Misuse("--force and --reason must be used together: the history keeps the reason")
    chosen = _choose(what, selection)
    outcomes = Outcomes(session, output)
    with session.open() as fleet:
        targets = select(fleet, chosen)
        if not targets:
            session.message("Nothing found.")
        if not chosen.is_by_name and targets and not yes and not confirm(session, _question(targets)):
            session.message("Nothing was deleted.")
            sys.exit(exits.FALSE)
        work = _Work(fleet, options, outcomes)
        for target in targets:
            with outcomes.attempt():
                work.send(target)
    with session.open(is_persistent=True) as fleet:
        for target, resource in work.pending:
            with outcomes.attempt(about=str(target)):
                work.wait_until_gone(fleet, target, resource)
    sys.exit(outcomes.close())


def _choose(what: tuple[str, ...], selection: DeleteSelection) -> ResourceSelection:
    if not selection.files:
        return parse_selection(what, selection.cluster, selection.selector, is_all=selection.is_all)
    if what or selection.selector or selection.is_all or selection.cluster:
        raise Misuse("-f cannot be combined with other arguments")
    from hyperfleet.cli.manifests import read_manifests

    manifests = read_manifests(selection.files)
    return ResourceSelection([ResourceTarget(each.noun, each.name, each.cluster) for each in reversed(manifests)])


def _question(targets: Sequence[ResourceTarget]) -> str:
    names = [str(target) for target in targets[:_SHOWN]]
    more = f" and {len(targets) - _SHOWN} more" if len(targets) > _SHOWN else ""
    return f"Delete {count_of(len(targets), 'resource')}: {', '.join(names)}{more}?"


class _Work:
    """Deletes all resources before it waits for the first."""

    def __init__(self, fleet: Fleet, options: DeleteOptions, outcomes: Outcomes) -> None:
        self._fleet = fleet
        self._options = options
        self._outcomes = outcomes
        self.pending: list[tuple[ResourceTarget, Resource]] = []  # to be waited for

    def send(self, target: ResourceTarget) -> None:
        """Delete one."""
        from hyperfleet.client.errors import NotFound

        try:
            resource = find(self._fleet, target)
            left = self._send(target, resource)
        except (CommandFailure, NotFound) as failure:
            if self._options.ignores_missing and code_of(failure) == exits.NOT_FOUND:
                return
            raise
        if left is not None and self._options.waits:
            self.pending.append((target, left))
        else:
            self._report(target, left or resource, is_gone=left is None)

    def wait_until_gone(self, fleet: Fleet, target: ResourceTarget, resource: Resource) -> None:
        """Wait until one is gone."""
        operations: Any = operations_on(fleet, target.noun)
        operations.wait(resource, for_="deleted", timeout=self._options.timeout.total_seconds())
        self._report(target, resource, is_gone=True)

    def _send(self, target: ResourceTarget, resource: Resource) -> Resource | None:
        """Return the resource that is being deleted; None: it is already gone."""
        operations: Any = operations_on(self._fleet, target.noun)
        left: Resource | None = resource if resource.is_deleting else operations.delete(resource)
        if self._options.is_forced and left is not None:
            operations.force_delete(left, self._options.reason)
            return None
        return left

    def _report(self, target: ResourceTarget, resource: Resource, *, is_gone: bool) -> None:
        action = "force deleted" if self._options.is_forced else "deleted" if is_gone else "deleting"
        self._outcomes.report(str(target), action, resource.raw)
