"""What the server was promised to do on a two-core machine that it shares with its database."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from bench.load.sheet import COMPAT_HEARTBEATS, HEARTBEATS, MANY, ONE, ONE_COMPAT, ONE_OF_TWO, PLAIN, Sheet
from bench.load.subject import POSTGRES


class Target(Struct, frozen=True):
    """One promise and what was found."""

    name: str
    found: float
    limit: float
    is_least: bool = True  # or the most
    digits: int = 0

    @property
    def is_met(self) -> bool:
        """Tell whether it was kept."""
        return self.found >= self.limit if self.is_least else self.found <= self.limit


def targets_of(sheet: Sheet) -> Iterator[Target]:
    """Compare what was found of one database with what was promised."""
    is_postgres = sheet.database == POSTGRES
    for load, wanted in ((HEARTBEATS, 5_000), (COMPAT_HEARTBEATS, 2_500)):
        written = sheet.writes[load, MANY].figures
        yield Target(f"writes/s, {load}", written.rate, wanted)
        yield Target(f"writes, {load}: p99 in ms", written.p99 / 1000, 60, is_least=False)
    if is_postgres:
        ratio = sheet.writes[HEARTBEATS, MANY].figures.rate / _plain_rate(sheet, MANY)
        yield Target("writes, heartbeats: to pgbench", ratio, 1.6, digits=2)
    alone = sheet.writes[HEARTBEATS, 1].figures.rate / _plain_rate(sheet, 1)
    yield Target("writes over one connection, to plain SQL", alone, 1, digits=2)
    yield Target("GET one of /compat, per second", sheet.reads[ONE_COMPAT].figures.rate, 4_000)
    one = sheet.reads[ONE].figures.rate
    yield Target("GET one, per second", one, 4_000 if is_postgres else 12_000)
    if is_postgres:
        yield Target("GET one with two workers, to one", sheet.reads[ONE_OF_TWO].figures.rate / one, 1, digits=2)
    yield Target("start to first answer, s", sheet.start_time, 1, is_least=False, digits=2)
    if sheet.memory is not None:
        yield Target("resident memory, MB", sheet.memory.resident, 150, is_least=False)


def _plain_rate(sheet: Sheet, connections: int) -> float:
    return sheet.writes[PLAIN, connections].figures.rate
