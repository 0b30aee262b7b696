"""The measurements of one database with one size of the fleet, in the order that they must be made in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, field

from bench.load import pgbench, plain_sqlite
from bench.load.fleet import report_templates
from bench.load.subject import Effort, Measured, Subject
from bench.load.usage import Memory
from bench.load.wrk import Load

MANY: Final = 64  # connections

HEARTBEATS: Final = "heartbeats"  # of a settled fleet: every adapter says again what it said before
HEARTBEATS_TO_TWO: Final = "heartbeats, 2 workers"
MOVING: Final = "moving fleet"  # every report differs, and one in ten in whether the adapter is available
PLAIN: Final = "plain SQL"  # the yardstick

ONE: Final = "one"
ONE_COMPRESSED: Final = "one, gzip"
ONE_OF_TWO: Final = "one, 2 workers"
LIST: Final = "list of 100"
LISTS: Final = {
    LIST: "limit=100",
    "filtered: 100 of a third": "limit=100&phase=Ready&labelSelector=env%3Dprod",
    "filtered: a team's 100": "limit=100&phase=Ready&labelSelector=team%3Dteam-@TEAM@",
    "filtered: not ready (none)": "limit=100&phase=!Ready",
}

K = TypeVar("K")
Key = tuple[str, int]  # what was written, over how many connections
Measure = Callable[[], Measured]


class Sheet(Struct):
    """What was found."""

    database: str
    clusters: int
    fill_time: float  # seconds
    start_time: float = 0.0  # seconds
    memory: Memory | None = None
    writes: dict[Key, Measured] = field(default_factory=dict)
    reads: dict[str, Measured] = field(default_factory=dict)


class Measuring(Struct, frozen=True):
    """Measurements of one subject; files are kept in `directory`."""

    subject: Subject
    effort: Effort
    directory: Path

    def read_one(self, name: str) -> dict[str, Measured]:
        """Measure the reading of one cluster."""
        return self._in_turns({name: self._bring(Load("reads.lua", ("",)))})

    def write_again(self, name: str) -> dict[Key, Measured]:
        """Measure heartbeats alone."""
        return self._in_turns({(name, MANY): self._bring(self._reports("settled", MANY))})

    def read(self) -> dict[str, Measured]:
        """Measure everything that is read; what lists find depends on a settled fleet."""
        loads = {ONE: Load("reads.lua", ("",)), ONE_COMPRESSED: Load("reads.lua", ("", "gzip"))}
        loads |= {name: Load("reads.lua", (query,)) for name, query in LISTS.items()}
        return self._in_turns({name: self._bring(load) for name, load in loads.items()})

    def write(self) -> dict[Key, Measured]:
        """Measure writes: heartbeats in turn with the yardstick, then those after which the fleet is not settled."""
        heartbeats = {(HEARTBEATS, number): self._bring(self._reports("settled", number)) for number in (MANY, 1)}
        found = self._in_turns(heartbeats | self._yardsticks())
        return found | self._in_turns({(MOVING, MANY): self._bring(self._reports("moving", MANY))})

    def _bring(self, load: Load) -> Measure:
        return partial(self.subject.measure, load, self.effort)

    def _reports(self, fleet: str, connections: int) -> Load:
        templates = self.directory / "reports"
        templates.write_text(report_templates())
        return Load("writes.lua", (str(templates), fleet), connections)

    def _yardsticks(self) -> dict[Key, Measure]:
        plain_url = self.subject.database.plain_url
        if not plain_url:
            return {(PLAIN, 1): self._run_plain_sqlite}
        pgbench.prepare(plain_url, self.subject.clusters)
        return {(PLAIN, number): partial(self._run_pgbench, plain_url, number) for number in (MANY, 1)}

    def _run_plain_sqlite(self) -> Measured:
        file = self.directory / "plain.db"
        return self.subject.watch(lambda: plain_sqlite.run(file, self.subject.clusters, self.effort.seconds))

    def _run_pgbench(self, url: str, connections: int) -> Measured:
        amount = pgbench.Amount(self.subject.clusters, connections, self.effort.seconds)
        return self.subject.watch(lambda: pgbench.run(url, amount, self.directory))

    def _in_turns(self, measures: Mapping[K, Measure]) -> dict[K, Measured]:
        """Measure each in every round, so that what else the machine does is shared by all."""
        rounds = [{name: measure() for name, measure in measures.items()} for _ in range(self.effort.rounds)]
        return {name: max((found[name] for found in rounds), key=_rate_of) for name in measures}


def _rate_of(measured: Measured) -> float:
    return measured.figures.rate
