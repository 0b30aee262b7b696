"""Reproducible randomness: the only place in the simulator that draws random numbers.

Every cluster and every adapter run has a stream of its own, named by the seed and by what it belongs to. One more
cluster, or one more draw in one stream, therefore changes no other stream. Stream names are part of the seed: renaming
one changes every plan.
"""

from __future__ import annotations

import math
import random  # noqa: TID251  # always seeded
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class RandomStream:
    """A stream of draws that is the same for the same seed and names, on every machine."""

    def __init__(self, seed: int, *names: str) -> None:
        """Seed the stream with a number and its names."""
        self._seed = seed
        self._names = names
        self._random = random.Random("/".join((str(seed), *names)))  # noqa: S311  # not for secrets

    def derive(self, *names: str) -> RandomStream:
        """Return a sub-stream; this draws nothing from the present one."""
        return RandomStream(self._seed, *self._names, *names)

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < probability

    def pick(self, things: Sequence[T]) -> T:
        """Pick one of several."""
        return things[int(self._random.random() * len(things))]

    def between(self, low: float, high: float) -> float:
        """Draw a number, uniformly."""
        return low + (high - low) * self._random.random()

    def integer(self, low: int, high: int) -> int:
        """Draw an integer, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def duration_around(self, typical: float) -> float:
        """Draw a log-normal duration around a typical one, between 0.4 and 3 times of it."""
        spread = math.exp(0.35 * self._random.gauss(0.0, 1.0))
        return typical * min(max(spread, 0.4), 3.0)

    def next_event(self, mean: float) -> float:
        """Draw the exponential time until the next event of a kind that occurs every `mean` on average."""
        return -mean * math.log(1.0 - self._random.random())
