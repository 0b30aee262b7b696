"""The instruments that count: plain numbers in dictionaries, made into the form of a scrape only when one comes.

A count costs a fifth of what it costs with the objects of a metrics library. Everything is counted in the event loop:
nothing here is for threads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

OTHER: Final = "other"  # stands for all names beyond those that are told apart

Labels = tuple[str, ...]
Values = dict[Labels, float]


class Family(Struct, frozen=True):
    """What a metric is called, what it tells and by what it is told apart."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()  # of a histogram, the upper ends of its buckets but the last


class Counter:
    """Something that only ever becomes more."""

    def __init__(self, name: str, help_: str, *labels: str) -> None:
        """Begin with nothing."""
        self.family = Family(name, "counter", help_, labels)
        self.values: Values = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0) + amount


class Histogram:
    """How often something took how long, or was how large."""

    def __init__(self, name: str, help_: str, bounds: tuple[float, ...], *labels: str) -> None:
        """Begin with nothing."""
        self.family = Family(name, "histogram", help_, labels, bounds)
        self._bounds = bounds
        self.series: dict[Labels, list[float]] = {}  # the count of each bucket, of those beyond all, and the sum

    def observe(self, value: float, *labels: str) -> None:
        """Count one."""
        series = self.series.get(labels)
        if series is None:
            series = self.series[labels] = [0.0] * (len(self._bounds) + 2)
        series[bisect_left(self._bounds, value)] += 1
        series[-1] += value


class Gauge:
    """Something that can be looked at at any moment; `look` is set by whoever has it."""

    def __init__(self, name: str, help_: str) -> None:
        """Show nothing."""
        self.family = Family(name, "gauge", help_)
        self.look: Callable[[], float] = float


class Names:
    """Names that come from outside, of which only so many are told apart: who invents more cannot fill our memory."""

    def __init__(self, most: int) -> None:
        """Tell `most` names apart."""
        self._most = most
        self._known: set[str] = set()

    def admit(self, name: str) -> str:
        """Return a name, or `other` if there are too many already."""
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name
