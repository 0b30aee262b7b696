"""Sums the metrics of all workers: a scrape reaches one of them and must show the total.

Each worker writes a snapshot of its metrics to shared memory about once a second; the one that is scraped writes its
own first and adds up all of them. So a counter never decreases when a worker dies, and the worker that replaces it
continues from its counts. A single worker needs no shared memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from hyperfleet.services.instruments import Labels, Values
from hyperfleet.services.loops import Loop
from hyperfleet.services.measures import Measures

_LOG: Final = logging.getLogger(__name__)
_INTERVAL: Final = 1.0  # seconds: the age of what is shown of other workers; scrapes are rarer

Series = dict[Labels, list[float]]
Rows = list[tuple[Labels, float]]


class MetricsBoard(Protocol):
    """Shared memory with a slot for each worker, which all of them can read."""

    @property
    def slot(self) -> int:
        """Return our own slot."""
        ...

    def write(self, text: bytes) -> bool:
        """Write to our slot; tell whether it fitted."""
        ...

    def read(self) -> Sequence[bytes]:
        """Return the content of every slot; an unused slot is empty."""
        ...

    def is_taken(self, slot: int) -> bool:
        """Tell whether the worker of a slot is running."""
        ...


class ProcessFigure(Struct, frozen=True):
    """A metric that the operating system keeps of a process."""

    name: str
    kind: str
    help: str
    rows: list[tuple[dict[str, str], float]]


class MetricsSnapshot(Struct, frozen=True):
    """The metrics of one worker."""

    counters: dict[str, Rows] = {}
    histograms: dict[str, list[tuple[Labels, list[float]]]] = {}
    gauges: dict[str, float] = {}
    process: list[ProcessFigure] = []


class MetricTotals(Struct, frozen=True):
    """The metrics of all workers together, by name."""

    counters: dict[str, Values]
    histograms: dict[str, Series]
    gauges: dict[str, float]
    process: list[tuple[str, ProcessFigure]]  # with the number of the worker; empty if there is only one


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(MetricsSnapshot).decode


class ReadProcess(Protocol):
    """Reads the operating system's metrics of this process."""

    def __call__(self) -> list[ProcessFigure]:
        """Return the metrics."""
        ...


class WorkerTotals:
    """Sums the metrics of all workers."""

    def __init__(self, measures: Measures, read_process: ReadProcess, board: MetricsBoard | None = None) -> None:
        """Continue from the counts of the worker that had our slot before; `loop` publishes ours."""
        self._measures = measures
        self._read_process = read_process
        self._board = board
        self._is_too_large = False
        self.loop = Loop("metrics", self._turn)
        if board is not None and (left := board.read()[board.slot]):
            _take_over(_decode(left), measures)

    def total(self) -> MetricTotals:
        """Return the sums over all workers; those of other workers are up to a second old."""
        own = self._take_snapshot()
        if self._board is None:
            return _sum([own], [("", own)])
        self._publish(own)
        found = [_decode(text) if text else MetricsSnapshot() for text in self._board.read()]
        running = [(str(slot + 1), each) for slot, each in enumerate(found) if self._board.is_taken(slot)]
        return _sum(found, running)

    async def _turn(self) -> float:
        self._publish(self._take_snapshot())
        return _INTERVAL

    def _publish(self, own: MetricsSnapshot) -> None:
        if self._board is None or self._board.write(_encode(own)):
            return
        if not self._is_too_large:
            _LOG.error(
                "the metrics of this worker do not fit into shared memory; scrapes show its last snapshot that did"
            )
        self._is_too_large = True

    def _take_snapshot(self) -> MetricsSnapshot:
        measures = self._measures
        return MetricsSnapshot(
            {each.family.name: list(each.values.items()) for each in measures.counters},
            {
                each.family.name: [(labels, [*row]) for labels, row in each.series.items()]
                for each in measures.histograms
            },
            {each.family.name: each.look() for each in measures.gauges},
            self._read_process(),
        )


def _take_over(left: MetricsSnapshot, measures: Measures) -> None:
    """Continue from the counts of another worker."""
    for counter in measures.counters:
        counter.values |= dict(left.counters.get(counter.family.name, ()))
    for histogram in measures.histograms:
        histogram.series |= dict(left.histograms.get(histogram.family.name, ()))


def _sum(all_: Iterable[MetricsSnapshot], running: Sequence[tuple[str, MetricsSnapshot]]) -> MetricTotals:
    """Add up the counts of all workers, and the gauges of those that run."""
    total = MetricTotals({}, {}, {}, [(worker, figure) for worker, each in running for figure in each.process])
    for snapshot in all_:
        for name, rows in snapshot.counters.items():
            values = total.counters.setdefault(name, {})
            for labels, value in rows:
                values[labels] = values.get(labels, 0) + value
        for name, buckets in snapshot.histograms.items():
            series = total.histograms.setdefault(name, {})
            for labels, row in buckets:
                known = series.get(labels)
                series[labels] = row if known is None else [a + b for a, b in zip(known, row, strict=True)]
    for _, snapshot in running:
        for name, value in snapshot.gauges.items():
            total.gauges[name] = total.gauges.get(name, 0.0) + value
    return total
