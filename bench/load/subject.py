"""What is measured: a server in a process of its own over a fleet in a database, and what a load on it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.load import usage, wrk
from bench.load.wrk import Figures, Load, LoadError
from tests.e2e.server import Server
from tests.servers import PostgresServer

SQLITE: Final = "SQLite"
POSTGRES: Final = "PostgreSQL"

_AFTERMATH: Final = 0.3  # seconds until those who served a load have gone, and their time is their parent's


class Effort(Struct, frozen=True):
    """How much to measure: each load so often for so many seconds, and before that to warm up; the fastest counts."""

    rounds: int
    seconds: int
    warm_up: int


class Database(Struct, frozen=True):
    """Where the fleet is. Unless it is embedded: the server of it, and an empty database there for the yardstick."""

    name: str
    url: str
    postgres: PostgresServer | None = None
    plain_url: str = ""

    @property
    def processes(self) -> list[int]:
        """Return the processes that work for the database alone."""
        if self.postgres is None:
            return []
        return usage.family(int((self.postgres.directory / "data" / "postmaster.pid").read_text().split()[0]))


class Measured(Struct, frozen=True):
    """The figures of a load, and the processor time that one request took, in microseconds."""

    figures: Figures
    server_time: float = 0.0
    database_time: float = 0.0


class ServerProcess(Server):
    """A server whose processes can be looked at."""

    @property
    def processes(self) -> list[int]:
        """Return all its processes: several workers have one above them."""
        return usage.family(self._running().pid)


class Subject(Struct, frozen=True):
    """A running server over a fleet of so many clusters."""

    server: ServerProcess
    database: Database
    clusters: int
    start_time: float  # seconds from the start of the process to its first answer

    def measure(self, load: Load, effort: Effort) -> Measured:
        """Bring a load to bear, and see what comes of it."""
        if effort.warm_up:
            self._bring(load, effort.warm_up)
        return self.watch(lambda: self._bring(load, effort.seconds))

    def watch(self, run: Callable[[], Figures]) -> Measured:
        """Run a load and see what processor time it takes."""
        before = self._used()
        figures = run()
        time.sleep(_AFTERMATH)
        server, database = (now - then for now, then in zip(self._used(), before, strict=True))
        answered = figures.requests or 1  # a load may be too much for a single answer
        return Measured(figures, server / answered * 1e6, database / answered * 1e6)

    def memory(self) -> usage.Memory:
        """Return what the largest process of the server has in memory."""
        return max((usage.memory(pid) for pid in self.server.processes), key=lambda found: found.resident)

    def _bring(self, load: Load, seconds: int) -> Figures:
        try:
            return wrk.run(self.server.url, load, self.clusters, seconds)
        except LoadError as error:
            raise LoadError(f"{error}; the server says:\n{self.server.log[-2000:]}") from error

    def _used(self) -> tuple[float, float]:
        return usage.processor_time(self.server.processes), usage.processor_time(self.database.processes)


@contextmanager
def running(directory: Path, database: Database, clusters: int, settings: Mapping[str, str]) -> Iterator[Subject]:
    """Run a server for the length of a block."""
    server = ServerProcess(directory, database.url, **settings)
    start = time.monotonic()
    try:
        server.start()
        yield Subject(server, database, clusters, time.monotonic() - start)
    finally:
        if server.is_running():
            server.stop()
