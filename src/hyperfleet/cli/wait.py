"""`hyperfleet wait`: wait until something is as you want it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, Command, bundle, connected
from hyperfleet.cli.failures import Failure
from hyperfleet.cli.resources import Target, find, operations_on, parse_named
from hyperfleet.cli.session import Session, pass_session, wants_colour

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_FAILED_STATES = ("Failed", "Unhealthy")


class Wish(Struct, frozen=True):
    """What to wait for, when to give up."""

    for_: tuple[str, ...] = ()
    adapter: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    timeout: timedelta = timedelta(seconds=30)
    observed_any: bool = False

    @property
    def terms(self) -> list[str]:
        """Return what must hold, in the words of the server; that it is Ready, if nothing was said."""
        wanted = [*(_translate(term) for term in self.for_), *(f"adapter={name}" for name in self.adapter)]
        return wanted or ["condition=Ready"]

    @property
    def failures(self) -> list[str]:
        """Return what ends the wait; an adapter that is waited for and fails does."""
        of_adapters = [f"adapter={name}={state}" for name in self.adapter for state in _FAILED_STATES]
        return [*(_translate(term) for term in self.fail_on), *of_adapters]

    def as_keywords(self, resource: Resource, seconds: float) -> dict[str, Any]:
        """Return the keywords of the client."""
        observed = {"observed": "any"} if self.observed_any else {}
        wanted, failures = ([_spell(term, resource) for term in terms] for terms in (self.terms, self.failures))
        return {"for_": wanted, "fail_on": failures, "timeout": seconds, **observed}


@click.command(
    "wait",
    cls=Command,
    examples=[
        ("until it is ready", "hyperfleet wait cluster payments --timeout 30m"),
        ("… or it is clear that it will not be", "hyperfleet wait payments --fail-on phase=Failed --timeout 30m"),
        ("until an adapter is done, or has failed", "hyperfleet wait payments --adapter dns"),
        ("until it is gone", "hyperfleet wait cluster/payments --for deleted --timeout 10m"),
        ("several things at once", "hyperfleet wait payments --for phase=Ready --for generation=3"),
    ],
    codes={
        exits.OK: "it is so, for all of them",
        exits.FAILED: "it will not be: what --fail-on names has happened, or an adapter of --adapter failed",
        exits.NOT_FOUND: "there is no such resource, or it was removed while waiting",
        exits.TIMEOUT: "time is up; stderr says what is missing and why",
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME... | KIND/NAME... | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools.")
@bundle(
    "wish",
    Wish,
    click.option("--for", "for_", multiple=True, metavar="TERM", help="What must hold; see above. Several: all."),
    click.option("--adapter", multiple=True, metavar="NAME", help="Until an adapter completes; fails if it does."),
    click.option("--fail-on", multiple=True, metavar="TERM", help="What ends the wait. Several: one is enough."),
    click.option("--timeout", type=DURATION, default="30s", show_default=True, help="How long, for all together."),
    click.option("--observed-any", is_flag=True, help="What adapters saw of an earlier generation counts, too."),
)
@click.option("-q", "--quiet", is_flag=True, help="Write nothing on stdout, and draw no bar.")
@connected
@pass_session
def wait(session: Session, what: tuple[str, ...], cluster: str | None, wish: Wish, quiet: bool) -> None:
    """Wait until clusters or node pools are as you want them.

    \b
    TERM is one of
      condition=Ready, condition=Ready=False   a condition (True, if nothing is said)
      phase=Ready                              the phase
      adapter=dns, adapter=dns=Failed          an adapter (Completed, if nothing is said)
      generation=3                             every adapter has seen that generation
      deleted                                  it is gone

    Without any, it is condition=Ready. All must hold of one version, and only what is of the present generation
    counts. On a terminal a bar shows how many adapters are done.
    """
    targets = parse_named(what, cluster)
    deadline = session.now() + wish.timeout
    with session.open() as fleet:
        found = [_find(fleet, target, wish) for target in targets]
    with session.open(is_patient=True) as fleet, _Bar(session, is_quiet=quiet) as bar:
        for target, resource in zip(targets, found, strict=True):
            if resource is not None:
                left = max((deadline - session.now()).total_seconds(), 0.0)
                bar.begin(fleet, target, resource)
                keywords = wish.as_keywords(resource, left)
                operations_on(fleet, target.noun).wait(resource, on_version=bar.advance, **keywords)
            if not quiet:
                session.write(f"{target} {'deleted' if 'deleted' in wish.terms else 'condition met'}")


def _find(fleet: Fleet, target: Target, wish: Wish) -> Resource | None:
    """Read what is waited for; None: it is to be gone, and is."""
    try:
        return find(fleet, target)
    except Failure as failure:
        if failure.exit_code == exits.NOT_FOUND and wish.terms == ["deleted"]:
            return None
        raise


def _translate(term: str) -> str:
    """Take what kubectl says, too: `delete`."""
    return {"delete": "deleted"}.get(term, term)


def _spell(term: str, resource: Resource) -> str:
    """Spell a condition as the resource does: kubectl takes it in any case."""
    kind, *words = term.split("=")
    if kind != "condition" or not words:
        return term
    spellings = {each.type.lower(): each.type for each in resource.status.conditions}
    type_, *status = words
    return "=".join((kind, spellings.get(type_.lower(), type_), *map(str.capitalize, status)))


class _Bar:
    """A bar on the terminal that fills as adapters complete; nothing anywhere else."""

    def __init__(self, session: Session, *, is_quiet: bool) -> None:
        self._session = session
        self._is_shown = not is_quiet and sys.stderr.isatty()
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            console = Console(stderr=True, no_color=not wants_colour(True, self._session.environment))
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )
            self._progress.start()
        return self

    def begin(self, fleet: Fleet, target: Target, resource: Resource) -> None:
        """Show a bar for a resource: as many adapters as are required or have reported."""
        if self._progress is None:
            return
        adapters: Sequence[Any] = fleet.progress(resource)
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(str(target), total=max(len(adapters), 1))
        self.advance(resource)

    def advance(self, resource: Resource) -> None:
        """Show how far it is now."""
        if self._progress is None:
            return
        done = sum(each.state == "Completed" for each in resource.status.adapters)
        busy = [each.name for each in resource.status.adapters if each.state not in ("Completed", "Outdated")]
        text = f"{resource.name} {resource.phase}" + (f": {', '.join(busy[:3])}" if busy else "")
        self._progress.update(self._task, completed=done, description=text)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._progress is not None:
            self._progress.stop()
