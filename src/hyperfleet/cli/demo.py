"""`hyperfleet demo`: the whole system on its embedded default, with a simulated fleet, leaving nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, CliCommand, bundle
from hyperfleet.cli.demo_server import DATABASE, OTHER_POLICY, POLICY, choose_address, program
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.settings import Address
    from hyperfleet.simulator.planning import PlanOptions
    from hyperfleet.simulator.roster import Roster

# Adapters report less often than real ones, so that an hour is simulated in seconds; the policy must allow for it.
_HEARTBEAT: Final = 20 * 60.0
_USUAL_THRESHOLD: Final = "staleThreshold: 10m"
_THRESHOLD: Final = "staleThreshold: 30m"
_REQUIRES_HYPERSHIFT: Final = "\n  - hypershift\n"
_RETRY_SECONDS: Final = 10.0  # how long to retry while the demo's server does not answer
_LANES: Final = 4
# Appended to the built-in policy. A roll-out of four adapters makes six transitions in a few minutes; the higher
# threshold marks only the clusters that are meant to flap.
_MORE_POLICY: Final = """
flapping: {window: 10m, transitions: 8}
---
# Node pools have adapters of their own.
name: pools
appliesTo: {kind: NodePool}
requiredAdapters: [machines, nodes]
clusterConditions:
  - type: NodesJoined
    evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}
phases:
  ready: {requiredConditions: [{type: NodesJoined, status: "True"}]}
policies: {staleThreshold: 30m, staleAction: degraded}
"""


class DemoOptions(Struct, frozen=True):
    """The options of `hyperfleet demo`."""

    clusters: int
    seed: int
    speed: float
    listen: str
    keep: bool
    curl: bool
    duration: timedelta | None


_OPTIONS: Final = (
    click.option("--clusters", type=click.IntRange(1, 1000), default=40, show_default=True, help="Number of clusters."),
    click.option("--seed", type=int, default=7, show_default=True, help="Another seed gives another fleet."),
    click.option(
        "--speed",
        type=click.FloatRange(0.1, 1000),
        default=10.0,
        show_default=True,
        help="Simulated seconds per real second.",
    ),
    click.option(
        "--listen",
        default="127.0.0.1:8000",
        show_default=True,
        metavar="HOST:PORT",
        help="Address; if the port is taken, the next free one is used.",
    ),
    click.option("--keep", is_flag=True, help="Keep the data afterwards."),
    click.option("--curl", is_flag=True, help="Suggest curl commands instead of hyperfleet ones."),
    click.option("--duration", type=DURATION, help="Stop after this time. [default: until Ctrl-C]"),
)


@click.command(
    "demo",
    cls=CliCommand,
    examples=[
        ("look around", "hyperfleet demo"),
        ("another fleet, larger and faster", "hyperfleet demo --clusters 100 --seed 3 --speed 30"),
        ("keep the data, to look at it later", "hyperfleet demo --keep"),
    ],
    codes={
        exits.OK: "it ended, also by Ctrl-C",
        exits.USAGE: exits.MEANINGS[exits.USAGE],
        exits.UNAVAILABLE: "the server did not start, or died",
    },
)
@bundle("options", DemoOptions, *_OPTIONS)
@pass_session
def demo(session: CliSession, options: DemoOptions) -> None:
    """Run a server with a simulated fleet, to try things out.

    Starts a server of its own, with its data in a temporary directory, and a simulated fleet with clusters in every
    state: ready, provisioning, rolling out, failing, unhealthy, silent, flapping, deleting, stuck. The fleet has a
    history of an hour and keeps changing. Ctrl-C stops it and removes the data.
    """
    from hyperfleet.cli.simulating import run_until_stopped
    from hyperfleet.settings import parse_address

    try:
        wanted = parse_address(options.listen)
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None
    if not wanted.is_loopback:
        raise Misuse("--listen: the demo has no authentication, so it listens on a loopback address only")
    with _directory(session, is_kept=options.keep) as directory:
        # A demo usually ends by being stopped: that is not a failure.
        asyncio.run(run_until_stopped(_run_demo(session, options, directory, choose_address(wanted))))


@contextmanager
def _directory(session: CliSession, *, is_kept: bool) -> Iterator[Path]:
    """Create a directory for the data, and remove it afterwards unless it is to be kept."""
    prefix = "hyperfleet-demo-"
    if is_kept:
        directory = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            yield directory
        finally:
            session.message(
                f"The data is in {directory}; to serve it again:\n  {_serve_again(directory, session.environment)}"
            )
    else:
        with tempfile.TemporaryDirectory(prefix=prefix) as name:
            yield Path(name)
        session.message("Stopped; the demo's data has been removed.")


def _serve_again(directory: Path, environment: Mapping[str, str]) -> str:
    """Return the command that serves the kept data with the demo's policy."""
    flags = ("--database", f"sqlite:{directory / DATABASE}", "--policy", str(directory / POLICY))
    return f"{program(environment)} serve {shlex.join(flags)}"


async def _run_demo(session: CliSession, options: DemoOptions, directory: Path, address: Address) -> None:
    """Simulate the past, start the server, print the tour, and continue the simulation."""
    from hyperfleet.cli.demo_server import serving
    from hyperfleet.simulator.fault_profiles import FaultProfile, FaultProfiles
    from hyperfleet.simulator.lifecycles import DEMO_PAST
    from hyperfleet.simulator.planning import PlanOptions
    from hyperfleet.simulator.roster import Roster

    faults = FaultProfiles(FaultProfile(fail=0.03, sick=0.002, twice=0.01, late=0.01))
    plan_options = PlanOptions(
        seed=options.seed, clusters=options.clusters, faults=faults, heartbeat=_HEARTBEAT, showcase_at=DEMO_PAST
    )
    roster = Roster()
    session.message(f"Simulating the last hour of {options.clusters} clusters …")
    await _make_past(session, plan_options, directory, roster)
    async with serving(directory, address, session.environment) as url:
        session.write(*introduce(options, url, roster, str(directory / OTHER_POLICY), session.environment))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if options.duration is None else options.duration.total_seconds()):
                await _continue(session, options, plan_options, url, roster)


async def _make_past(session: CliSession, plan_options: PlanOptions, directory: Path, roster: Roster) -> None:
    from msgspec.structs import replace

    from hyperfleet.bootstrap import read_policy
    from hyperfleet.cli.demo_past import age
    from hyperfleet.settings import Settings
    from hyperfleet.simulator.planning import plan

    policy = directory / POLICY
    text = read_policy(None).text.replace(_USUAL_THRESHOLD, _THRESHOLD) + _MORE_POLICY
    policy.write_text(text, "utf-8")
    (directory / OTHER_POLICY).write_text(text.replace(_REQUIRES_HYPERSHIFT, "\n", 1), "utf-8")
    settings = Settings(database=f"sqlite:{directory / DATABASE}", policy=str(policy))
    end = session.now()
    past = plan(replace(plan_options, duration=plan_options.showcase_at))
    await age(settings, past, end - timedelta(seconds=plan_options.showcase_at), end, roster)


async def _continue(
    session: CliSession, options: DemoOptions, plan_options: PlanOptions, url: str, roster: Roster
) -> None:
    """Continue the simulation where the past ended, without end."""
    from hyperfleet.cli.connection import ServerConnection
    from hyperfleet.cli.simulating import REAL_CLOCK, Observer, open_async
    from hyperfleet.simulator.driving import Driver
    from hyperfleet.simulator.lane import DriverContext
    from hyperfleet.simulator.pacing import ScaledPace
    from hyperfleet.simulator.planning import plan
    from hyperfleet.simulator.stats import SimulationStats

    own = ServerConnection(url, "demo")
    stats = SimulationStats()
    future = dropwhile(lambda step: step.at <= plan_options.showcase_at, plan(plan_options))
    async with open_async(own, _RETRY_SECONDS) as fleet, open_async(own) as viewer:
        context = DriverContext(
            fleet, ScaledPace(REAL_CLOCK, options.speed, plan_options.showcase_at), roster, stats, time.monotonic
        )
        async with Observer(f"{url} (Ctrl-C ends it)", viewer, stats).showing(session):
            await Driver(context, _LANES).run(future)


def introduce(
    options: DemoOptions, url: str, roster: Roster, policy: str, environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines of the introduction: the address, the clusters, commands to try."""
    from hyperfleet.cli import demo_tour
    from hyperfleet.simulator.actions import ResourceRef

    names = demo_tour.name_roles(options.seed, options.clusters)
    resources = {part: roster.find(ResourceRef(name)) for part, name in names.items()}
    ids = {f"{part}_id": each.address.rpartition("/")[2] for part, each in resources.items() if each}
    values = {**names, **ids, "api": f"{url}/v1", "policy": shlex.quote(policy)}
    yield f"HyperFleet is listening on {url} with a simulated fleet. {url}/docs describes the API."
    yield "\nSome of the clusters:"
    yield from demo_tour.describe_roles(names)
    yield "\nCommands to try in another terminal, in this directory:"
    if not options.curl:
        yield f"  export HYPERFLEET_SERVER={url}"
    for question in demo_tour.QUESTIONS:
        if demo_tour.is_answerable(question, values):
            yield f"\n  # {question.text}"
            yield f"  {demo_tour.format_command(question, program(environment), values, with_curl=options.curl)}"
    yield ""
