"""Running a simulation from the command line: the client, the clock, the view, and an orderly end.

Called by `sim` and `demo`. What is simulated, and how it is sent, is in `hyperfleet.simulator`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from hyperfleet.cli.connection import DEADLINE, RETRIES, TIMEOUT
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.sim_view import SimulationSnapshot, SnapshotView, open_view
from hyperfleet.client import AsyncFleet, FleetError, Summary
from hyperfleet.simulator.pacing import RealClock
from hyperfleet.simulator.stats import SimulationResults, SimulationStats

if TYPE_CHECKING:
    from hyperfleet.cli.connection import ServerConnection
    from hyperfleet.cli.session import CliSession

REAL_CLOCK: Final = RealClock(lambda: datetime.now(UTC), asyncio.sleep)
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, kill, and a terminal that was closed
_MANY: Final = 1_000_000  # retries: only the deadline ends them
_POLL_TIMEOUT: Final = 5.0  # seconds: a view that takes longer is not worth waiting for
_CAUSE: Final = 72  # characters of a cause that are shown


def open_async(
    connection: ServerConnection, patience: float | None = None, request_timeout: timedelta | None = None
) -> AsyncFleet:
    """Open a client that retries for `patience` seconds while the server is away; None: as other commands do."""
    return AsyncFleet(
        connection.server,
        **connection.credentials,
        timeout=request_timeout.total_seconds() if request_timeout else TIMEOUT,
        retries=RETRIES if patience is None else _MANY,
        deadline=DEADLINE if patience is None else patience,
    )


async def run_until_stopped(work: Coroutine[Any, Any, None]) -> bool:
    """Run something until it ends or a signal stops it; return whether it ended by itself."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for each in _STOPS:
        loop.add_signal_handler(each, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return False
    finally:
        for each in _STOPS:
            loop.remove_signal_handler(each)
    return True


class Observer:
    """Polls the server during a simulation and shows how it is going."""

    def __init__(self, title: str, fleet: AsyncFleet, stats: SimulationStats) -> None:
        """Poll with a client of its own, and read the driver's statistics."""
        self._title = title
        self._fleet = fleet
        self._stats = stats
        self._begin = time.monotonic()
        self._phases: dict[str, int] = {}
        self._causes: list[str] = []
        self._is_away = False

    async def show(self, view: SnapshotView) -> None:
        """Show progress until cancelled."""
        while True:
            await asyncio.sleep(view.pause)
            await self._poll()
            view.show(self._snapshot())

    @asynccontextmanager
    async def showing(self, session: CliSession) -> AsyncIterator[None]:
        """Show progress on stderr during a block."""
        with open_view(session, is_terminal=sys.stderr.isatty()) as view:
            showing = asyncio.create_task(self.show(view))
            try:
                yield
            finally:
                showing.cancel()

    async def summarize(self) -> SimulationResults:
        """Poll once more and return the final statistics."""
        await self._poll()
        return self._stats.summarize(time.monotonic() - self._begin, self._phases)

    async def _poll(self) -> None:
        """Poll the server; without an answer the last values stay."""
        self._is_away = True
        with contextlib.suppress(FleetError, TimeoutError):
            async with asyncio.timeout(_POLL_TIMEOUT):
                self._phases = count_phases(await self._fleet.clusters.summary("phase"))
                self._causes = [
                    sanitize(f"{cause.adapter} {cause.reason} ×{cause.count}: {cause.example or cause.message}")[
                        :_CAUSE
                    ]
                    for cause in (await self._fleet.problems(limit=3)).items
                ]
                self._is_away = False

    def _snapshot(self) -> SimulationSnapshot:
        stats, now = self._stats, time.monotonic()
        return SimulationSnapshot(
            title=self._title,
            virtual=stats.virtual,
            seconds=now - self._begin,
            reports=stats.reports,
            rate=stats.rate(now),
            p50=stats.latencies.quantile(0.5),
            p99=stats.latencies.quantile(0.99),
            outcomes=dict(stats.outcomes),
            discards=dict(stats.discards),
            errors=dict(stats.errors),
            phases=self._phases,
            causes=self._causes,
            is_away=self._is_away,
        )


def count_phases(summary: Summary) -> dict[str, int]:
    """Return the number of clusters in each phase."""
    return {str(group["phase"]): int(group["count"] or 0) for group in summary.groups}
