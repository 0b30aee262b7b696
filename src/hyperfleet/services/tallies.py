"""The sum of what all workers have counted: a scrape comes to one of them and must be told of all.

Each worker puts a snapshot of its counts on a board that all of them see, about once a second; the one that is asked
puts its own there first and adds up what it finds. So no sum is ever shown that the death of a worker could take back,
and a worker that takes the place of another one goes on from its counts. One worker alone needs no board.
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
_INTERVAL: Final = 1.0  # seconds; so old may be what is told of the other workers

Series = dict[Labels, list[float]]
Rows = list[tuple[Labels, float]]


class Board(Protocol):
    """Where each worker has a place that all of them can read."""

    @property
    def place(self) -> int:
        """Return our own place."""
        ...

    def write(self, text: bytes) -> bool:
        """Put something into our place; tell whether it fitted."""
        ...

    def read(self) -> Sequence[bytes]:
        """Return what is in every place; what nobody has written to is empty."""
        ...

    def is_taken(self, place: int) -> bool:
        """Tell whether the worker of a place lives."""
        ...


class ProcessFigure(Struct, frozen=True):
    """A figure that the system keeps of a process."""

    name: str
    kind: str
    help: str
    rows: list[tuple[dict[str, str], float]]


class Snapshot(Struct, frozen=True):
    """What one worker has counted, and how it is now."""

    counters: dict[str, Rows] = {}
    histograms: dict[str, list[tuple[Labels, list[float]]]] = {}
    gauges: dict[str, float] = {}
    process: list[ProcessFigure] = []


class Total(Struct, frozen=True):
    """What all workers have counted together, by the names of metrics."""

    counters: dict[str, Values]
    histograms: dict[str, Series]
    gauges: dict[str, float]
    process: list[tuple[str, ProcessFigure]]  # with the number of the worker; empty: there is only one


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Snapshot).decode


class LookAtProcess(Protocol):
    """How a process looks at itself."""

    def __call__(self) -> list[ProcessFigure]:
        """Return what the system knows of this process."""
        ...


class Tallies:
    """Adds up what workers count."""

    def __init__(self, measures: Measures, look_at_process: LookAtProcess, board: Board | None = None) -> None:
        """Begin with what the worker before us in our place had counted; `loop` keeps the others informed."""
        self._measures = measures
        self._look = look_at_process
        self._board = board
        self._is_too_large = False
        self.loop = Loop("metrics", self._turn)
        if board is not None and (left := board.read()[board.place]):
            _take_over(_decode(left), measures)

    def add_up(self) -> Total:
        """Return the sums over all workers, as of now for our own counts and of a moment ago for the others'."""
        own = self._take_snapshot()
        if self._board is None:
            return _sum([own], [("", own)])
        self._publish(own)
        found = [_decode(text) if text else Snapshot() for text in self._board.read()]
        living = [(str(place + 1), each) for place, each in enumerate(found) if self._board.is_taken(place)]
        return _sum(found, living)

    async def _turn(self) -> float:
        self._publish(self._take_snapshot())
        return _INTERVAL

    def _publish(self, own: Snapshot) -> None:
        if self._board is None or self._board.write(_encode(own)):
            return
        if not self._is_too_large:
            _LOG.error("the counts of this worker are too many for the others to see; metrics of it stand still")
        self._is_too_large = True

    def _take_snapshot(self) -> Snapshot:
        measures = self._measures
        return Snapshot(
            {each.family.name: list(each.values.items()) for each in measures.counters},
            {
                each.family.name: [(labels, [*row]) for labels, row in each.series.items()]
                for each in measures.histograms
            },
            {each.family.name: each.look() for each in measures.gauges},
            self._look(),
        )


def _take_over(left: Snapshot, measures: Measures) -> None:
    """Go on from what another one has counted."""
    for counter in measures.counters:
        counter.values |= dict(left.counters.get(counter.family.name, ()))
    for histogram in measures.histograms:
        histogram.series |= dict(left.histograms.get(histogram.family.name, ()))


def _sum(all_: Iterable[Snapshot], living: Sequence[tuple[str, Snapshot]]) -> Total:
    """Add up the counts of everybody; only of the living, how they are."""
    total = Total({}, {}, {}, [(worker, figure) for worker, each in living for figure in each.process])
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
    for _, snapshot in living:
        for name, value in snapshot.gauges.items():
            total.gauges[name] = total.gauges.get(name, 0.0) + value
    return total
