"""`hyperfleet delete`: delete clusters and node pools."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, Command, bundle, connected
from hyperfleet.cli.confirmation import confirm
from hyperfleet.cli.failures import Failure, Misuse, code_of
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.resources import Target, find, operations_on
from hyperfleet.cli.selecting import Chosen, parse_chosen, select
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_SHOWN: Final = 10  # names in a question; more nobody reads


class Choice(Struct, frozen=True):
    """Which ones, beside names."""

    cluster: str | None = None
    selector: str | None = None
    is_all: bool = False
    files: tuple[str, ...] = ()


class Manner(Struct, frozen=True):
    """How to delete."""

    waits: bool = False
    timeout: timedelta = timedelta(minutes=10)
    is_forced: bool = False
    reason: str | None = None
    ignores_absent: bool = False


@click.command(
    "delete",
    cls=Command,
    examples=[
        ("let a cluster go; adapters clean up first", "hyperfleet delete cluster payments"),
        ("… and return when it is gone", "hyperfleet delete cluster payments --wait --timeout 30m"),
        ("all with a label, after a question", "hyperfleet delete clusters -l env=test"),
        (
            "one that will not go: no adapter is asked, history keeps the reason",
            'hyperfleet delete cluster payments --force --reason "the account is closed"',
        ),
    ],
    codes={
        exits.FALSE: "the question was not answered with yes; nothing was deleted",
        exits.NOT_FOUND: "one of them is not there; the others are being deleted",
        exits.REFUSED: "the server refused one of them; the others are being deleted",
        exits.TIMEOUT: "with --wait: one is not gone in time; it still goes",
    },
)
@click.argument("what", nargs=-1, metavar="KIND NAME... | KIND/NAME...")
@bundle(
    "choice",
    Choice,
    click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools."),
    click.option("-l", "--selector", metavar="SELECTOR", help="All with these labels, after a question."),
    click.option("--all", "is_all", is_flag=True, help="All of the kind, after a question."),
    click.option("-f", "--filename", "files", multiple=True, metavar="FILE|DIR|-", help="What manifests describe."),
)
@bundle(
    "manner",
    Manner,
    click.option("--wait", "waits", is_flag=True, help="Return when they are gone."),
    click.option(
        "--timeout", type=DURATION, default="10m", metavar="DURATION", help="How long to wait. [default: 10m]"
    ),
    click.option("--force", "is_forced", is_flag=True, help="Remove at once, without waiting for adapters."),
    click.option("--reason", metavar="TEXT", help="Why, with --force: for those who will look at history."),
    click.option("--ignore-not-found", "ignores_absent", is_flag=True, help="What is not there is as good as deleted."),
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@document_options(FORMATS)
@connected
@pass_session
def delete(session: Session, what: tuple[str, ...], choice: Choice, manner: Manner, yes: bool, output: Output) -> None:
    """Delete clusters and node pools.

    They go when every adapter has cleaned up after itself; --wait waits for that. The node pools of a cluster go with
    it.
    """
    if manner.is_forced != (manner.reason is not None):
        raise Misuse("--force and --reason go together: history keeps why nobody was waited for")
    chosen = _choose(what, choice)
    outcomes = Outcomes(session, output)
    with session.open() as fleet:
        targets = select(fleet, chosen)
        if not targets:
            session.say("Nothing found.")
        if not chosen.is_by_name and targets and not yes and not confirm(session, _question(targets)):
            session.say("Nothing was deleted.")
            sys.exit(exits.FALSE)
        work = _Work(fleet, manner, outcomes)
        for target in targets:
            with outcomes.attempt():
                work.send(target)
    with session.open(is_patient=True) as fleet:
        for target, resource in work.leaving:
            with outcomes.attempt(about=str(target)):
                work.await_end(fleet, target, resource)
    sys.exit(outcomes.close())


def _choose(what: tuple[str, ...], choice: Choice) -> Chosen:
    if not choice.files:
        return parse_chosen(what, choice.cluster, choice.selector, is_all=choice.is_all)
    if what or choice.selector or choice.is_all or choice.cluster:
        raise Misuse("-f says everything: leave either it or the rest out")
    from hyperfleet.cli.manifests import read_manifests

    manifests = read_manifests(choice.files)
    return Chosen([Target(each.noun, each.name, each.cluster) for each in reversed(manifests)])


def _question(targets: Sequence[Target]) -> str:
    names = [str(target) for target in targets[:_SHOWN]]
    more = f" and {len(targets) - _SHOWN} more" if len(targets) > _SHOWN else ""
    return f"Delete {count_of(len(targets), 'resource')}: {', '.join(names)}{more}?"


class _Work:
    """Lets resources go, all of them before the first is waited for."""

    def __init__(self, fleet: Fleet, manner: Manner, outcomes: Outcomes) -> None:
        self._fleet = fleet
        self._manner = manner
        self._outcomes = outcomes
        self.leaving: list[tuple[Target, Resource]] = []  # those that are to be waited for

    def send(self, target: Target) -> None:
        """Ask for one to go."""
        from hyperfleet.client.errors import NotFound

        try:
            resource = find(self._fleet, target)
            left = self._send(target, resource)
        except (Failure, NotFound) as failure:
            if self._manner.ignores_absent and code_of(failure) == exits.NOT_FOUND:
                return
            raise
        if left is not None and self._manner.waits:
            self.leaving.append((target, left))
        else:
            self._tell(target, left or resource, is_gone=left is None)

    def await_end(self, patient: Fleet, target: Target, resource: Resource) -> None:
        """Wait until one is gone."""
        operations: Any = operations_on(patient, target.noun)
        operations.wait(resource, for_="deleted", timeout=self._manner.timeout.total_seconds())
        self._tell(target, resource, is_gone=True)

    def _send(self, target: Target, resource: Resource) -> Resource | None:
        """Return what is left of it; None: it is gone already."""
        operations: Any = operations_on(self._fleet, target.noun)
        left: Resource | None = resource if resource.is_deleting else operations.delete(resource)
        if self._manner.is_forced and left is not None:
            operations.force_delete(left, self._manner.reason)
            return None
        return left

    def _tell(self, target: Target, resource: Resource, *, is_gone: bool) -> None:
        action = "force deleted" if self._manner.is_forced else "deleted" if is_gone else "deleting"
        self._outcomes.tell(str(target), action, resource.raw)
