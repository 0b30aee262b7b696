"""`hyperfleet wait`: wait until resources reach a state."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, CliCommand, bundle, connected
from hyperfleet.cli.failures import CommandFailure
from hyperfleet.cli.resources import ResourceTarget, find, operations_on, parse_named
from hyperfleet.cli.session import CliSession, pass_session, wants_colour

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource

_FAILED_STATES = ("Failed", "Unhealthy")


class WaitCommandOptions(Struct, frozen=True):
    """What to wait for, and when to give up."""

    for_: tuple[str, ...] = ()
    adapter: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    timeout: timedelta = timedelta(seconds=30)
    observed_any: bool = False

    @property
    def terms(self) -> list[str]:
        """Return what must hold, in the server's syntax; default: Ready."""
        wanted = [*(_translate(term) for term in self.for_), *(f"adapter={name}" for name in self.adapter)]
        return wanted or ["condition=Ready"]

    @property
    def failures(self) -> list[str]:
        """Return what ends the wait, including the failure of an awaited adapter."""
        of_adapters = [f"adapter={name}={state}" for name in self.adapter for state in _FAILED_STATES]
        return [*(_translate(term) for term in self.fail_on), *of_adapters]

    def as_keywords(self, resource: Resource, seconds: float) -> dict[str, Any]:
        """Return the keywords of the client."""
        observed = {"observed": "any"} if self.observed_any else {}
        wanted, failures = ([_spell(term, resource) for term in terms] for terms in (self.terms, self.failures))
        return {"for_": wanted, "fail_on": failures, "timeout": seconds, **observed}


@click.command(
    "wait",
    cls=CliCommand,
    examples=[
        ("until it is ready", "hyperfleet wait cluster payments --timeout 30m"),
        ("… or has failed", "hyperfleet wait payments --fail-on phase=Failed --timeout 30m"),
        ("until an adapter is done, or has failed", "hyperfleet wait payments --adapter dns"),
        ("until it is gone", "hyperfleet wait cluster/payments --for deleted --timeout 10m"),
        ("several things at once", "hyperfleet wait payments --for phase=Ready --for generation=3"),
    ],
    codes={
        exits.OK: "all of them reached the state",
        exits.FAILED: "a condition of --fail-on holds, or an adapter of --adapter failed",
        exits.NOT_FOUND: "the resource does not exist, or it was removed during the wait",
        exits.TIMEOUT: "timeout; stderr says what is missing and why",
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME... | KIND/NAME... | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools.")
@bundle(
    "options",
    WaitCommandOptions,
    click.option("--for", "for_", multiple=True, metavar="TERM", help="What must hold; see above. If repeated: all."),
    click.option(
        "--adapter", multiple=True, metavar="NAME", help="Until an adapter completes; fails if the adapter fails."
    ),
    click.option("--fail-on", multiple=True, metavar="TERM", help="What ends the wait. If repeated: any."),
    click.option(
        "--timeout", type=DURATION, default="30s", show_default=True, help="How long to wait for all of them together."
    ),
    click.option("--observed-any", is_flag=True, help="Accept observations of earlier generations, too."),
)
@click.option("-q", "--quiet", is_flag=True, help="Write nothing to stdout, and show no progress bar.")
@connected
@pass_session
def wait(
    session: CliSession, what: tuple[str, ...], cluster: str | None, options: WaitCommandOptions, quiet: bool
) -> None:
    """Wait until clusters or node pools reach a state.

    \b
    TERM is one of
      condition=Ready, condition=Ready=False   a condition (default: True)
      phase=Ready                              the phase
      adapter=dns, adapter=dns=Failed          an adapter (default: Completed)
      generation=3                             every adapter has observed that generation
      deleted                                  it is gone

    The default is condition=Ready. All terms must hold at the same time, and only observations of the present
    generation count. On a terminal a bar shows how many adapters are done.
    """
    targets = parse_named(what, cluster)
    deadline = session.now() + options.timeout
    with session.open() as fleet:
        found = [_find(fleet, target, options) for target in targets]
    with session.open(is_persistent=True) as fleet, _Bar(session, is_quiet=quiet) as bar:
        for target, resource in zip(targets, found, strict=True):
            if resource is not None:
                left = max((deadline - session.now()).total_seconds(), 0.0)
                bar.begin(fleet, target, resource)
                keywords = options.as_keywords(resource, left)
                operations_on(fleet, target.noun).wait(resource, on_version=bar.advance, **keywords)
            if not quiet:
                session.write(f"{target} {'deleted' if 'deleted' in options.terms else 'condition met'}")


def _find(fleet: Fleet, target: ResourceTarget, options: WaitCommandOptions) -> Resource | None:
    """Read the resource to wait for; None: it is already gone, and the wait is for that."""
    try:
        return find(fleet, target)
    except CommandFailure as failure:
        if failure.exit_code == exits.NOT_FOUND and options.terms == ["deleted"]:
            return None
        raise


def _translate(term: str) -> str:
    """Accept kubectl's `delete`, too."""
    return {"delete": "deleted"}.get(term, term)


def _spell(term: str, resource: Resource) -> str:
    """Use the resource's spelling of a condition: kubectl ignores case."""
    kind, *words = term.split("=")
    if kind != "condition" or not words:
        return term
    spellings = {each.type.lower(): each.type for each in resource.status.conditions}
    type_, *status = words
    return "=".join((kind, spellings.get(type_.lower(), type_), *map(str.capitalize, status)))


class _Bar:
    """A progress bar of completed adapters, on a terminal only."""

    def __init__(self, session: CliSession, *, is_quiet: bool) -> None:
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

    def begin(self, fleet: Fleet, target: ResourceTarget, resource: Resource) -> None:
        """Show a bar for a resource, over the adapters that are required or have reported."""
        if self._progress is None:
            return
        adapters: Sequence[Any] = fleet.progress(resource)
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(str(target), total=max(len(adapters), 1))
        self.advance(resource)

    def advance(self, resource: Resource) -> None:
        """Update the bar."""
        if self._progress is None:
            return
        done = sum(each.state == "Completed" for each in resource.status.adapters)
        busy = [each.name for each in resource.status.adapters if each.state not in ("Completed", "Outdated")]
        text = f"{resource.name} {resource.phase}" + (f": {', '.join(busy[:3])}" if busy else "")
        self._progress.update(self._task, completed=done, description=text)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._progress is not None:
            self._progress.stop()
