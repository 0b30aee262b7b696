"""`hyperfleet sim`: let simulated adapters and people work on the fleet of a real server."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, Command, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.session import Session, pass_session
from hyperfleet.simulator.faults import FAULTS, read_faults

if TYPE_CHECKING:
    from hyperfleet.client import AsyncFleet, FleetError
    from hyperfleet.simulator.pacing import Pace
    from hyperfleet.simulator.planning import Options
    from hyperfleet.simulator.tally import Results, Tally

_MAX: Final = "max"
_DEFAULT_DURATION: Final = timedelta(hours=1)  # of the plan, where the end must be known
_FAULT_HELP: Final = "\n".join(f"  {fault.example:<12} {fault.meaning}" for fault in FAULTS)
_EPILOG: Final = f"""\b
Faults are given as ADAPTER=FAULT, several with commas; * stands for all adapters, + joins faults of one:
{_FAULT_HELP}
Without --faults a fleet is as fleets are: now and then something fails and is mended.
"none" makes it flawless, apart from what stands beside it.
"""


class SpeedType(click.ParamType[float]):
    """Reads 1, 60x or max; `max` is 0."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it, or say what is wrong."""
        if isinstance(value, float):
            return value
        if value == _MAX:
            return 0.0
        try:
            speed = float(str(value).removesuffix("x"))
        except ValueError:
            speed = 0.0
        if not 0.001 <= speed <= 100_000:
            self.fail(f'expected a factor from 0.001 to 100000, such as 60, or max, found "{value}"', param, ctx)
        return speed


class Request(Struct, frozen=True):
    """What was asked for."""

    clusters: int
    adapters: int
    seed: int
    faults: str
    churn: float
    heartbeat: timedelta
    duration: timedelta | None
    speed: float
    reports_per_second: float | None
    at_once: int
    patience: timedelta


_OPTIONS: Final = (
    click.option("--clusters", type=click.IntRange(1, 100_000), default=10, show_default=True, help="How many."),
    click.option(
        "--adapters",
        type=click.IntRange(1, 50),
        default=4,
        show_default=True,
        help="How many work on each: validation, dns, infrastructure, hypershift, monitoring, logging …",
    ),
    click.option("--seed", type=int, default=1, show_default=True, help="The same seed lives the same lives."),
    click.option("--faults", default="", metavar="SPEC", help="What goes wrong; see below."),
    click.option(
        "--churn",
        type=click.FloatRange(0, 1000),
        default=1.0,
        show_default=True,
        help="How many times as often as usual people create, change and delete; 0: never.",
    ),
    click.option(
        "--heartbeat", type=DURATION, default="3m", show_default=True, help="How often a settled adapter reports."
    ),
    click.option("--duration", type=DURATION, help="How long, in the fleet's time. [default: no end; at max 1h]"),
    click.option(
        "--speed",
        type=SpeedType(),
        default="60",
        show_default=True,
        help="Seconds of the fleet in one of ours; max: as fast as the server takes it.",
    ),
    click.option("--reports-per-second", type=click.FloatRange(0.01), metavar="N", help="Send no more than so many."),
    click.option("--at-once", type=click.IntRange(1, 256), default=8, show_default=True, help="Requests at once."),
    click.option(
        "--patience",
        type=DURATION,
        default="2m",
        show_default=True,
        help="How long to wait for a server that is away.",
    ),
)


@click.command(
    "sim",
    cls=Command,
    epilog=_EPILOG,
    examples=[
        ("ten clusters, a minute of theirs in each second of yours", "hyperfleet sim"),
        ("how much does the server take?", "hyperfleet sim --clusters 500 --speed max --duration 2h"),
        ("DNS has a bad day", "hyperfleet sim --faults 'dns=fail:0.3+slow:3x,skew:dns=+90s'"),
        ("a network that loses things", "hyperfleet sim --faults 'none,*=lost:0.05+twice:0.05+late:0.1'"),
    ],
    codes={
        exits.REFUSED: "the server refused something that it should have taken",
        exits.INTERRUPTED: "stopped (Ctrl-C)",
    },
)
@bundle("request", Request, *_OPTIONS)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to write the summary.")
@connected
@pass_session
def sim(session: Session, request: Request, output: str) -> None:
    """Let simulated adapters and people work on a fleet.

    Creates clusters and node pools, plays their adapters (who needs whom, how long it takes, what goes wrong), changes
    and deletes what is there, all through the API as anybody would. The same seed and options give the same lives, at
    any speed. Names that are taken are taken over, so it can be run again; what it created stays when it ends.

    The server has its own clock: what depends on time there, such as staleness, needs real time at any speed.
    """
    ending = asyncio.run(_simulate(session, request, _read_options(request)))
    _write(session, ending.results, output)
    if ending.error is not None:
        raise ending.error
    if not ending.is_complete:
        sys.exit(exits.INTERRUPTED)
    sys.exit(exits.REFUSED if ending.results.errors else exits.OK)


def _read_options(request: Request) -> Options:
    """Make options of a plan; everything that is wrong with the faults is told."""
    from hyperfleet.simulator.adapters import POOL_ADAPTERS, list_adapters
    from hyperfleet.simulator.planning import Options
    from hyperfleet.simulator.timeline import FOREVER

    adapters = (*list_adapters(request.adapters), *POOL_ADAPTERS)
    reading = read_faults(request.faults, [adapter.name for adapter in adapters])
    if reading.problems:
        raise Misuse("--faults: " + "\n  ".join(("", *reading.problems)).strip())
    for name, given in (("--heartbeat", request.heartbeat), ("--patience", request.patience)):
        if given < timedelta(seconds=1):
            raise Misuse(f"{name} must be at least 1s")
    duration = request.duration
    if duration is None and not request.speed:
        duration = _DEFAULT_DURATION
    return Options(
        seed=request.seed,
        clusters=request.clusters,
        adapters=request.adapters,
        faults=reading.faults,
        churn=request.churn,
        heartbeat=request.heartbeat.total_seconds(),
        duration=FOREVER if duration is None else duration.total_seconds(),
    )


class Ending(Struct, frozen=True):
    """How a simulation ended: what was counted, whether nobody stopped it, and the error that did."""

    results: Results
    is_complete: bool
    error: FleetError | None = None


async def _simulate(session: Session, request: Request, options: Options) -> Ending:
    from hyperfleet.cli.simulating import Observer, open_async, run_until_told
    from hyperfleet.client import FleetError
    from hyperfleet.simulator.tally import Tally

    own, timeout = session.connection, session.flags.request_timeout
    patience = request.patience.total_seconds()
    async with open_async(own, patience, timeout) as fleet, open_async(own, None, timeout) as eye:
        session.say(f"Simulating {options.clusters} clusters on {own.server}, HyperFleet {await eye.version()}")
        tally = Tally()
        observer = Observer(f"{options.clusters} clusters, seed {options.seed}", eye, tally)
        is_complete, error = False, None
        async with observer.showing(session):
            try:
                is_complete = await run_until_told(_drive(fleet, request, options, tally))
            except FleetError as raised:
                error = raised
        return Ending(await observer.conclude(), is_complete, error)


async def _drive(fleet: AsyncFleet, request: Request, options: Options, tally: Tally) -> None:
    from hyperfleet.cli.simulating import HOURS
    from hyperfleet.simulator.driving import Driver
    from hyperfleet.simulator.lane import Desk
    from hyperfleet.simulator.pacing import Throttle
    from hyperfleet.simulator.planning import plan
    from hyperfleet.simulator.roster import Roster

    throttle = Throttle(HOURS, request.reports_per_second) if request.reports_per_second else None
    desk = Desk(fleet, _choose_pace(request, options), Roster(), tally, time.monotonic)
    await Driver(desk, request.at_once, throttle).run(plan(options))


def _choose_pace(request: Request, options: Options) -> Pace:
    from hyperfleet.cli.simulating import HOURS
    from hyperfleet.simulator.pacing import Steady, Utmost

    if request.speed:
        return Steady(HOURS, request.speed)
    return Utmost(HOURS, options.duration, options.faults.greatest_skew + 1.0)


def _write(session: Session, results: Results, output: str) -> None:
    """Write the summary: data, so it goes to stdout."""
    import msgspec

    if output == "json":
        session.write(msgspec.json.format(msgspec.json.encode(results)).decode())
    else:
        session.write(*(f"{name:<14} {text}" for name, text in _summarize(results) if text))


def _summarize(results: Results) -> list[tuple[str, str]]:
    from hyperfleet.cli.sim_view import write_counts

    return [
        ("lived", f"{_tell(results.virtual_seconds)} in {_tell(results.seconds)}"),
        ("requests", f"{results.requests}; p50 {results.latency_ms['p50']}ms, p99 {results.latency_ms['p99']}ms"),
        ("reports", f"{results.reports}, {results.reports_per_second:.0f} a second"),
        ("outcomes", write_counts(results.outcomes)),
        ("discards", write_counts(results.discards)),
        ("people", write_counts(results.actions)),
        ("errors", write_counts(results.errors)),
        ("resynchronised", str(results.resynchronised or "")),
        ("phases", write_counts(results.phases)),
    ]


def _tell(seconds: float) -> str:
    from hyperfleet.documents.durations import short_duration

    return short_duration(timedelta(seconds=seconds))
