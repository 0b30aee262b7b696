"""The tables of a run, as they stand in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bench.load.sheet import HEARTBEATS, LISTS, MANY, MOVING, ONE, PLAIN, Sheet
from bench.load.subject import Measured
from bench.load.targets import targets_of

Row = Sequence[str]

_FIGURES: Final = ("per second", "p50 ms", "p99 ms", "CPU µs, server", "CPU µs, database")
_GROWING: Final = ((HEARTBEATS, MANY), (MOVING, MANY))


def show(sheets: Sequence[Sheet]) -> None:
    """Print what was found, and which targets are met."""
    _print("Status writes", ["database", "clusters", "connections", "load", *_FIGURES, "to plain SQL"], _writes(sheets))
    _print("Reads, 64 connections", ["database", "clusters", "GET", *_FIGURES], _reads(sheets))
    _print("From the smaller to the larger fleet", ["database", "load", "CPU of one", "rate"], _growth(sheets))
    resources = ["database", "clusters", "fill s", "start to first answer s", "resident MB", "of it anonymous MB"]
    _print("The process", resources, _process(sheets))
    _print("Targets, with the larger fleet", ["target", "wanted", "found", ""], _targets(sheets))


def _writes(sheets: Iterable[Sheet]) -> Iterator[Row]:
    for sheet in sheets:
        for (load, connections), measured in sorted(sheet.writes.items(), key=lambda item: (-item[0][1], item[0][0])):
            plain = sheet.writes.get((PLAIN, connections))
            ratio = f"{measured.figures.rate / plain.figures.rate:.2f}" if plain else ""
            yield [sheet.database, f"{sheet.clusters:,}", str(connections), load, *_figures(measured), ratio]


def _reads(sheets: Iterable[Sheet]) -> Iterator[Row]:
    for sheet in sheets:
        for name, measured in sheet.reads.items():
            yield [sheet.database, f"{sheet.clusters:,}", name, *_figures(measured)]


def _figures(measured: Measured) -> list[str]:
    figures = measured.figures
    times = [f"{figures.p50 / 1000:.2f}", f"{figures.p99 / 1000:.2f}"]
    return [f"{figures.rate:,.0f}", *times, f"{measured.server_time:.0f}", f"{measured.database_time:.0f}"]


def _growth(sheets: Sequence[Sheet]) -> Iterator[Row]:
    """Compare the largest fleet with the smallest, database by database."""
    for database in dict.fromkeys(sheet.database for sheet in sheets):
        small, *_, large = [sheet for sheet in sheets if sheet.database == database]
        pairs = {f"write, {key[0]}": (small.writes[key], large.writes[key]) for key in _GROWING}
        pairs |= {f"GET {name}": (small.reads[name], large.reads[name]) for name in (ONE, *LISTS)}
        for name, (less, more) in pairs.items():
            cost = (more.server_time + more.database_time) / (less.server_time + less.database_time)
            yield [database, name, f"× {cost:.2f}", f"× {more.figures.rate / less.figures.rate:.2f}"]


def _process(sheets: Iterable[Sheet]) -> Iterator[Row]:
    for sheet in sheets:
        memory = [f"{sheet.memory.resident:.0f}", f"{sheet.memory.anonymous:.0f}"] if sheet.memory else ["", ""]
        yield [sheet.database, f"{sheet.clusters:,}", f"{sheet.fill_time:.0f}", f"{sheet.start_time:.2f}", *memory]


def _targets(sheets: Iterable[Sheet]) -> Iterator[Row]:
    for sheet in {sheet.database: sheet for sheet in sheets}.values():
        for target in targets_of(sheet):
            wanted = f"{'at least' if target.is_least else 'at most'} {target.limit:,g}"
            verdict = "met" if target.is_met else "MISSED"
            yield [f"{sheet.database}: {target.name}", wanted, f"{target.found:,.{target.digits}f}", verdict]


def _print(title: str, head: Row, rows: Iterable[Row]) -> None:
    print(f"\n### {title}\n")
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |")
