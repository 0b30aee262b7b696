"""`hyperfleet sim`: run simulated adapters and people against a real server."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, CliCommand, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.simulator.faults import FAULTS, parse_faults

if TYPE_CHECKING:
    from hyperfleet.client import AsyncFleet, FleetError
    from hyperfleet.simulator.pacing import SimulationPace
    from hyperfleet.simulator.planning import PlanOptions
    from hyperfleet.simulator.stats import SimulationResults, SimulationStats

_MAX: Final = "max"
_DEFAULT_DURATION: Final = timedelta(hours=1)  # of the plan, where the end must be known
_FAULT_HELP: Final = "\n".join(f"  {fault.example:<12} {fault.meaning}" for fault in FAULTS)
_EPILOG: Final = f"""\b
Faults are given as ADAPTER=FAULT, separated by commas; * means all adapters, + joins faults of one adapter:
{_FAULT_HELP}
Without --faults the fleet has typical faults: now and then something fails and recovers.
"none" turns those off, so that only the faults given beside it remain.
"""


class SpeedType(click.ParamType[float]):
    """Reads 1, 60x or max; `max` is 0."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a speed, or fail with what is wrong."""
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


class SimOptions(Struct, frozen=True):
    """The options of `hyperfleet sim`."""

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
    click.option(
        "--clusters", type=click.IntRange(1, 100_000), default=10, show_default=True, help="Number of clusters."
    ),
    click.option(
        "--adapters",
        type=click.IntRange(1, 50),
        default=4,
        show_default=True,
        help="Adapters per cluster: validation, dns, infrastructure, hypershift, monitoring, logging …",
    ),
    click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same simulation."),
    click.option("--faults", default="", metavar="SPEC", help="What goes wrong; see below."),
    click.option(
        "--churn",
        type=click.FloatRange(0, 1000),
        default=1.0,
        show_default=True,
        help="Factor on how often people create, change and delete; 0: never.",
    ),
    click.option(
        "--heartbeat",
        type=DURATION,
        default="3m",
        show_default=True,
        help="How often an adapter reports when nothing changes.",
    ),
    click.option(
        "--duration", type=DURATION, help="How long to run, in simulated time. [default: no end; with --speed max: 1h]"
    ),
    click.option(
        "--speed",
        type=SpeedType(),
        default="60",
        show_default=True,
        help="Simulated seconds per real second; max: as fast as the server answers.",
    ),
    click.option("--reports-per-second", type=click.FloatRange(0.01), metavar="N", help="Limit the rate of reports."),
    click.option("--at-once", type=click.IntRange(1, 256), default=8, show_default=True, help="Concurrent requests."),
    click.option(
        "--patience",
        type=DURATION,
        default="2m",
        show_default=True,
        help="How long to retry while the server does not answer.",
    ),
)


@click.command(
    "sim",
    cls=CliCommand,
    epilog=_EPILOG,
    examples=[
        ("ten clusters, a simulated minute per second", "hyperfleet sim"),
        ("how much load does the server take?", "hyperfleet sim --clusters 500 --speed max --duration 2h"),
        ("an unreliable DNS adapter", "hyperfleet sim --faults 'dns=fail:0.3+slow:3x,skew:dns=+90s'"),
        ("an unreliable network", "hyperfleet sim --faults 'none,*=lost:0.05+twice:0.05+late:0.1'"),
    ],
    codes={
        exits.REFUSED: "the server refused something that it should have accepted",
        exits.INTERRUPTED: "stopped (Ctrl-C)",
    },
)
@bundle("request", SimOptions, *_OPTIONS)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to write the summary.")
@connected
@pass_session
def sim(session: CliSession, request: SimOptions, output: str) -> None:
    """Run simulated adapters and people against a server.

    Creates clusters and node pools, simulates their adapters (dependencies, durations, faults), and changes and deletes
    resources, all through the API. The same seed and options give the same simulation, at any speed. Existing resources
    with the same names are adopted, so it can be run again; what it created stays when it ends.

    The server has its own clock: what depends on its time, such as staleness, takes real time at any speed.
    """
    ending = asyncio.run(_simulate(session, request, _read_options(request)))
    _write(session, ending.results, output)
    if ending.error is not None:
        raise ending.error
    if not ending.is_complete:
        sys.exit(exits.INTERRUPTED)
    sys.exit(exits.REFUSED if ending.results.errors else exits.OK)


def _read_options(request: SimOptions) -> PlanOptions:
    """Return the options of the plan; report everything that is wrong with the faults."""
    from hyperfleet.simulator.adapters import POOL_ADAPTERS, list_adapters
    from hyperfleet.simulator.planning import PlanOptions
    from hyperfleet.simulator.timeline import FOREVER

    adapters = (*list_adapters(request.adapters), *POOL_ADAPTERS)
    parsed = parse_faults(request.faults, [adapter.name for adapter in adapters])
    if parsed.problems:
        raise Misuse("--faults: " + "\n  ".join(("", *parsed.problems)).strip())
    for name, given in (("--heartbeat", request.heartbeat), ("--patience", request.patience)):
        if given < timedelta(seconds=1):
            raise Misuse(f"{name} must be at least 1s")
    duration = request.duration
    if duration is None and not request.speed:
        duration = _DEFAULT_DURATION
    return PlanOptions(
        seed=request.seed,
        clusters=request.clusters,
        adapters=request.adapters,
        faults=parsed.faults,
        churn=request.churn,
        heartbeat=request.heartbeat.total_seconds(),
        duration=FOREVER if duration is None else duration.total_seconds(),
    )


class SimulationEnd(Struct, frozen=True):
    """How a simulation ended: its results, whether it ran to its end, and the error that stopped it."""

    results: SimulationResults
    is_complete: bool
    error: FleetError | None = None


async def _simulate(session: CliSession, request: SimOptions, options: PlanOptions) -> SimulationEnd:
    from hyperfleet.cli.simulating import Observer, open_async, run_until_stopped
    from hyperfleet.client import FleetError
    from hyperfleet.simulator.stats import SimulationStats

    own, timeout = session.connection, session.flags.request_timeout
    patience = request.patience.total_seconds()
    async with open_async(own, patience, timeout) as fleet, open_async(own, None, timeout) as viewer:
        session.message(f"Simulating {options.clusters} clusters on {own.server}, HyperFleet {await viewer.version()}")
        stats = SimulationStats()
        observer = Observer(f"{options.clusters} clusters, seed {options.seed}", viewer, stats)
        is_complete, error = False, None
        async with observer.showing(session):
            try:
                is_complete = await run_until_stopped(_drive(fleet, request, options, stats))
            except FleetError as raised:
                error = raised
        return SimulationEnd(await observer.summarize(), is_complete, error)


async def _drive(fleet: AsyncFleet, request: SimOptions, options: PlanOptions, stats: SimulationStats) -> None:
    from hyperfleet.cli.simulating import REAL_CLOCK
    from hyperfleet.simulator.driving import Driver
    from hyperfleet.simulator.lane import DriverContext
    from hyperfleet.simulator.pacing import Throttle
    from hyperfleet.simulator.planning import plan
    from hyperfleet.simulator.roster import Roster

    throttle = Throttle(REAL_CLOCK, request.reports_per_second) if request.reports_per_second else None
    context = DriverContext(fleet, _choose_pace(request, options), Roster(), stats, time.monotonic)
    await Driver(context, request.at_once, throttle).run(plan(options))


def _choose_pace(request: SimOptions, options: PlanOptions) -> SimulationPace:
    from hyperfleet.cli.simulating import REAL_CLOCK
    from hyperfleet.simulator.pacing import MaximumPace, ScaledPace

    if request.speed:
        return ScaledPace(REAL_CLOCK, request.speed)
    return MaximumPace(REAL_CLOCK, options.duration, options.faults.max_skew + 1.0)


def _write(session: CliSession, results: SimulationResults, output: str) -> None:
    """Write the summary: data, so it goes to stdout."""
    import msgspec

    if output == "json":
        session.write(msgspec.json.format(msgspec.json.encode(results)).decode())
    else:
        session.write(*(f"{name:<14} {text}" for name, text in _summarize(results) if text))


def _summarize(results: SimulationResults) -> list[tuple[str, str]]:
    from hyperfleet.cli.sim_view import write_counts

    return [
        ("simulated", f"{_duration(results.virtual_seconds)} in {_duration(results.seconds)}"),
        ("requests", f"{results.requests}; p50 {results.latency_ms['p50']}ms, p99 {results.latency_ms['p99']}ms"),
        ("reports", f"{results.reports}, {results.reports_per_second:.0f} a second"),
        ("outcomes", write_counts(results.outcomes)),
        ("discards", write_counts(results.discards)),
        ("people", write_counts(results.actions)),
        ("errors", write_counts(results.errors)),
        ("resynchronised", str(results.resynchronised or "")),
        ("phases", write_counts(results.phases)),
    ]


def _duration(seconds: float) -> str:
    from hyperfleet.documents.durations import short_duration

    return short_duration(timedelta(seconds=seconds))
