"""`hyperfleet demo`: the whole system on its embedded default, with a fleet that lives, and nothing left behind."""

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
from hyperfleet.cli.command import DURATION, Command, bundle
from hyperfleet.cli.demo_server import DATABASE, OTHER_POLICY, POLICY, choose_address, program
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.settings import Address
    from hyperfleet.simulator.planning import Options
    from hyperfleet.simulator.roster import Roster

# Adapters report less often than in earnest, so that an hour is made up in a few seconds; the policy must allow for it.
_HEARTBEAT: Final = 20 * 60.0
_USUAL_THRESHOLD: Final = "staleThreshold: 10m"
_THRESHOLD: Final = "staleThreshold: 30m"
_REQUIRES_HYPERSHIFT: Final = "\n  - hypershift\n"
_PATIENCE: Final = 10.0  # seconds that our own server may be away
_LANES: Final = 4
# Made from the policy that is built in: a roll-out of four adapters that wait for each other moves six times in a few
# minutes, and in a demo only what is meant to flap shall be marked.
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


class Show(Struct, frozen=True):
    """What was asked for."""

    clusters: int
    seed: int
    speed: float
    listen: str
    keep: bool
    curl: bool
    duration: timedelta | None


_OPTIONS: Final = (
    click.option(
        "--clusters", type=click.IntRange(1, 1000), default=40, show_default=True, help="How many to begin with."
    ),
    click.option("--seed", type=int, default=7, show_default=True, help="Another seed makes another fleet."),
    click.option(
        "--speed",
        type=click.FloatRange(0.1, 1000),
        default=10.0,
        show_default=True,
        help="Seconds of the fleet in one of yours.",
    ),
    click.option(
        "--listen",
        default="127.0.0.1:8000",
        show_default=True,
        metavar="HOST:PORT",
        help="Where; if it is taken, the next port that is free.",
    ),
    click.option("--keep", is_flag=True, help="Leave the data there in the end."),
    click.option("--curl", is_flag=True, help="Suggest commands for curl instead of ours."),
    click.option("--duration", type=DURATION, help="Stop after so long. [default: when you say so]"),
)


@click.command(
    "demo",
    cls=Command,
    examples=[
        ("look around", "hyperfleet demo"),
        ("another fleet, larger and faster", "hyperfleet demo --clusters 100 --seed 3 --speed 30"),
        ("keep what happened, to look at it later", "hyperfleet demo --keep"),
    ],
    codes={
        exits.OK: "it ended, be it by Ctrl-C",
        exits.USAGE: exits.MEANINGS[exits.USAGE],
        exits.UNAVAILABLE: "the server did not start, or died",
    },
)
@bundle("show", Show, *_OPTIONS)
@pass_session
def demo(session: Session, show: Show) -> None:
    """Run a server with a fleet that lives, to try things out.

    Starts a server of its own, with its data in a temporary directory, and a simulated fleet in which something is in
    every state there is: ready, arriving, rolling out, failing, ill, silent, flapping, leaving, stuck. The fleet has a
    past of an hour, and goes on living. Ctrl-C ends it and leaves nothing behind.
    """
    from hyperfleet.cli.simulating import run_until_told
    from hyperfleet.settings import parse_address

    try:
        wanted = parse_address(show.listen)
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None
    if not wanted.is_loopback:
        raise Misuse("--listen: the demo asks nobody who they are, so it listens on this machine only")
    with _directory(session, is_kept=show.keep) as directory:
        # Being stopped is how a demo ends: that is no failure.
        asyncio.run(run_until_told(_play(session, show, directory, choose_address(wanted))))


@contextmanager
def _directory(session: Session, *, is_kept: bool) -> Iterator[Path]:
    """Make a directory for the data, and see to it that it is gone in the end unless it is to be kept."""
    prefix = "hyperfleet-demo-"
    if is_kept:
        directory = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            yield directory
        finally:
            session.say(f"The data is in {directory}; go on with it:\n  {_serve_again(directory, session.environment)}")
    else:
        with tempfile.TemporaryDirectory(prefix=prefix) as name:
            yield Path(name)
        session.say("Stopped; the demo's data is gone.")


def _serve_again(directory: Path, environment: Mapping[str, str]) -> str:
    """Return the command that serves what was kept, under the policy that it was made with."""
    flags = ("--database", f"sqlite:{directory / DATABASE}", "--policy", str(directory / POLICY))
    return f"{program(environment)} serve {shlex.join(flags)}"


async def _play(session: Session, show: Show, directory: Path, address: Address) -> None:
    """Make up the past, open the server, tell where to look, and go on living."""
    from hyperfleet.cli.demo_server import serving
    from hyperfleet.simulator.planning import Options
    from hyperfleet.simulator.roster import Roster
    from hyperfleet.simulator.stories import PAST
    from hyperfleet.simulator.temper import Faults, Temper

    faults = Faults(Temper(fail=0.03, sick=0.002, twice=0.01, late=0.01))
    options = Options(seed=show.seed, clusters=show.clusters, faults=faults, heartbeat=_HEARTBEAT, moment=PAST)
    roster = Roster()
    session.say(f"Making up the last hour of {show.clusters} clusters …")
    await _make_past(session, options, directory, roster)
    async with serving(directory, address, session.environment) as url:
        session.write(*introduce(show, url, roster, str(directory / OTHER_POLICY), session.environment))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if show.duration is None else show.duration.total_seconds()):
                await _live(session, show, options, url, roster)


async def _make_past(session: Session, options: Options, directory: Path, roster: Roster) -> None:
    from msgspec.structs import replace

    from hyperfleet.bootstrap import read_policy
    from hyperfleet.cli.aging import age
    from hyperfleet.settings import Settings
    from hyperfleet.simulator.planning import plan

    policy = directory / POLICY
    text = read_policy(None).text.replace(_USUAL_THRESHOLD, _THRESHOLD) + _MORE_POLICY
    policy.write_text(text, "utf-8")
    (directory / OTHER_POLICY).write_text(text.replace(_REQUIRES_HYPERSHIFT, "\n", 1), "utf-8")
    settings = Settings(database=f"sqlite:{directory / DATABASE}", policy=str(policy))
    end = session.now()
    past = plan(replace(options, duration=options.moment))
    await age(settings, past, end - timedelta(seconds=options.moment), end, roster)


async def _live(session: Session, show: Show, options: Options, url: str, roster: Roster) -> None:
    """Go on where the past ended, for ever."""
    from hyperfleet.cli.connection import Connection
    from hyperfleet.cli.simulating import HOURS, Observer, open_async
    from hyperfleet.simulator.driving import Driver
    from hyperfleet.simulator.lane import Desk
    from hyperfleet.simulator.pacing import Steady
    from hyperfleet.simulator.planning import plan
    from hyperfleet.simulator.tally import Tally

    own = Connection(url, "demo")
    tally = Tally()
    future = dropwhile(lambda step: step.at <= options.moment, plan(options))
    async with open_async(own, _PATIENCE) as fleet, open_async(own) as eye:
        desk = Desk(fleet, Steady(HOURS, show.speed, options.moment), roster, tally, time.monotonic)
        async with Observer(f"{url} (Ctrl-C ends it)", eye, tally).showing(session):
            await Driver(desk, _LANES).run(future)


def introduce(show: Show, url: str, roster: Roster, policy: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Tell where to look, who is who, and what to ask."""
    from hyperfleet.cli import demo_tour
    from hyperfleet.simulator.actions import Place

    names = demo_tour.name_parts(show.seed, show.clusters)
    known = {part: roster.find(Place(name)) for part, name in names.items()}
    ids = {f"{part}_id": each.address.rpartition("/")[2] for part, each in known.items() if each}
    values = {**names, **ids, "api": f"{url}/v1", "policy": shlex.quote(policy)}
    yield f"HyperFleet is listening on {url} with a fleet that lives. {url}/docs describes the API."
    yield "\nWho is who:"
    yield from demo_tour.describe_parts(names)
    yield "\nAsk it, in another terminal of this directory:"
    if not show.curl:
        yield f"  export HYPERFLEET_SERVER={url}"
    for question in demo_tour.QUESTIONS:
        if demo_tour.is_answerable(question, values):
            yield f"\n  # {question.text}"
            yield f"  {demo_tour.ask(question, program(environment), values, with_curl=show.curl)}"
    yield ""
