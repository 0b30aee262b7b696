"""Running a simulation from the command line: the client, the clock, the view, and an end that is always in order.

Called by `sim` and `demo`. What is simulated, and how it is sent, is the business of `hyperfleet.simulator`.
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
from hyperfleet.cli.printable import tame
from hyperfleet.cli.sim_view import Glance, View, open_view
from hyperfleet.client import AsyncFleet, FleetError, Summary
from hyperfleet.simulator.pacing import Hours
from hyperfleet.simulator.tally import Results, Tally

if TYPE_CHECKING:
    from hyperfleet.cli.connection import Connection
    from hyperfleet.cli.session import Session

HOURS: Final = Hours(lambda: datetime.now(UTC), asyncio.sleep)
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, kill, and a terminal that was closed
_MANY: Final = 1_000_000  # retries: time alone says when to give up
_LOOK_TIMEOUT: Final = 5.0  # seconds: a look that takes longer is not worth waiting for
_CAUSE: Final = 72  # characters of a cause that are shown


def open_async(
    connection: Connection, patience: float | None = None, request_timeout: timedelta | None = None
) -> AsyncFleet:
    """Open a client that comes back for so many seconds while the server is away; without any, as other commands do."""
    return AsyncFleet(
        connection.server,
        **connection.credentials,
        timeout=request_timeout.total_seconds() if request_timeout else TIMEOUT,
        retries=RETRIES if patience is None else _MANY,
        deadline=DEADLINE if patience is None else patience,
    )


async def run_until_told(work: Coroutine[Any, Any, None]) -> bool:
    """Do something until it is done or somebody stops us; tell whether it came to its end."""
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
    """Looks at a simulation from outside now and then, as a person would, and shows what there is to see."""

    def __init__(self, title: str, fleet: AsyncFleet, tally: Tally) -> None:
        """Look at the fleet through a client of our own, and at what the driver has counted."""
        self._title = title
        self._fleet = fleet
        self._tally = tally
        self._begin = time.monotonic()
        self._phases: dict[str, int] = {}
        self._causes: list[str] = []
        self._is_away = False

    async def show(self, view: View) -> None:
        """Show glances until cancelled."""
        while True:
            await asyncio.sleep(view.pause)
            await self._look()
            view.show(self._glance())

    @asynccontextmanager
    async def showing(self, session: Session) -> AsyncIterator[None]:
        """Show glances on stderr for as long as a block lasts."""
        with open_view(session, is_terminal=sys.stderr.isatty()) as view:
            showing = asyncio.create_task(self.show(view))
            try:
                yield
            finally:
                showing.cancel()

    async def conclude(self) -> Results:
        """Look once more, and return everything that was counted."""
        await self._look()
        return self._tally.conclude(time.monotonic() - self._begin, self._phases)

    async def _look(self) -> None:
        """Ask the server; what it does not answer stays as it was."""
        self._is_away = True
        with contextlib.suppress(FleetError, TimeoutError):
            async with asyncio.timeout(_LOOK_TIMEOUT):
                self._phases = count_phases(await self._fleet.clusters.summary("phase"))
                self._causes = [
                    tame(f"{cause.adapter} {cause.reason} ×{cause.count}: {cause.example or cause.message}")[:_CAUSE]
                    for cause in (await self._fleet.problems(limit=3)).items
                ]
                self._is_away = False

    def _glance(self) -> Glance:
        tally, now = self._tally, time.monotonic()
        return Glance(
            title=self._title,
            virtual=tally.virtual,
            seconds=now - self._begin,
            reports=tally.reports,
            rate=tally.rate(now),
            p50=tally.latencies.quantile(0.5),
            p99=tally.latencies.quantile(0.99),
            outcomes=dict(tally.outcomes),
            discards=dict(tally.discards),
            errors=dict(tally.errors),
            phases=self._phases,
            causes=self._causes,
            is_away=self._is_away,
        )


def count_phases(summary: Summary) -> dict[str, int]:
    """Return how many are in each phase."""
    return {str(group["phase"]): int(group["count"] or 0) for group in summary.groups}
