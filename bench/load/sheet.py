"""The measurements of a server with fleets of several sizes, in the order that they must be made in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
COMPAT_HEARTBEATS: Final = "heartbeats, /compat"
MOVING: Final = "moving fleet"  # every report differs, and one in ten in whether the adapter is available
PLAIN: Final = "plain SQL"  # the yardstick

ONE: Final = "one"
ONE_COMPRESSED: Final = "one, gzip"
ONE_COMPAT: Final = "one, /compat"
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
    """Measurements of several subjects, each with a sheet for what is found; files are kept in `directory`."""

    subjects: Sequence[Subject]
    effort: Effort
    directory: Path
    sheets: Sequence[Sheet]

    def read_one(self, name: str) -> None:
        """Measure the reading of one cluster."""
        self._read({name: Load("reads.lua", ("",))})

    def write_again(self, name: str) -> None:
        """Measure heartbeats alone."""
        self._write([{(name, MANY): self._bring(subject, self._reports("settled", MANY))} for subject in self.subjects])

    def read(self) -> None:
        """Measure everything that is read; what lists find depends on a settled fleet."""
        loads = {
            ONE: Load("reads.lua", ("",)),
            ONE_COMPRESSED: Load("reads.lua", ("", "gzip")),
            ONE_COMPAT: Load("reads.lua", ("", "", "/compat")),
        }
        self._read(loads | {name: Load("reads.lua", (query,)) for name, query in LISTS.items()})

    def write(self) -> None:
        """Measure writes: heartbeats in turn with the yardstick, then those after which the fleet is not settled."""
        loads = {(HEARTBEATS, number): self._reports("settled", number) for number in (MANY, 1)}
        loads[COMPAT_HEARTBEATS, MANY] = self._reports("settled", MANY, is_compat=True)
        self._write(
            [
                {key: self._bring(subject, load) for key, load in loads.items()} | self._yardsticks(subject)
                for subject in self.subjects
            ]
        )
        moving = self._reports("moving", MANY)
        self._write([{(MOVING, MANY): self._bring(subject, moving)} for subject in self.subjects])

    def _read(self, loads: Mapping[str, Load]) -> None:
        measures = [{name: self._bring(subject, load) for name, load in loads.items()} for subject in self.subjects]
        _take_turns([sheet.reads for sheet in self.sheets], measures, self.effort.rounds)

    def _write(self, measures: Sequence[Mapping[Key, Measure]]) -> None:
        _take_turns([sheet.writes for sheet in self.sheets], measures, self.effort.rounds)

    def _bring(self, subject: Subject, load: Load) -> Measure:
        return partial(subject.measure, load, self.effort)

    def _reports(self, fleet: str, connections: int, *, is_compat: bool = False) -> Load:
        dialect = "compat" if is_compat else "native"
        templates = self.directory / f"reports-{dialect}"
        templates.write_text(report_templates(is_compat=is_compat))
        return Load("writes.lua", (str(templates), fleet, dialect), connections)

    def _yardsticks(self, subject: Subject) -> dict[Key, Measure]:
        plain_url = subject.database.plain_url
        if not plain_url:
            return {(PLAIN, 1): partial(self._run_plain_sqlite, subject)}
        pgbench.prepare(plain_url, subject.clusters)
        return {(PLAIN, number): partial(self._run_pgbench, subject, number) for number in (MANY, 1)}

    def _run_plain_sqlite(self, subject: Subject) -> Measured:
        file = self.directory / f"plain-{subject.clusters}.db"
        return subject.watch(lambda: plain_sqlite.run(file, subject.clusters, self.effort.seconds))

    def _run_pgbench(self, subject: Subject, connections: int) -> Measured:
        amount = pgbench.Amount(subject.clusters, connections, self.effort.seconds)
        return subject.watch(lambda: pgbench.run(subject.database.plain_url, amount, self.directory))


def _take_turns(found: Sequence[dict[K, Measured]], measures: Sequence[Mapping[K, Measure]], rounds: int) -> None:
    """Measure each in every round, all sizes after each other, so that all share what else the machine does."""
    for _ in range(rounds):
        for name in measures[0]:
            for best, some in zip(found, measures, strict=True):
                measured = some[name]()
                if name not in best or _rate_of(measured) > _rate_of(best[name]):
                    best[name] = measured


def _rate_of(measured: Measured) -> float:
    return measured.figures.rate
