"""Chance that can be repeated: the only place of the simulator where anything is random.

Everything that lives has a chance of its own, named by the seed and by what it is. So one more cluster, or one more
draw in the life of one, changes nothing in the life of another.
"""

from __future__ import annotations

import math
import random  # noqa: TID251  # seeded, never asked without a name
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A stream of draws that is the same for the same seed and names, on every machine."""

    def __init__(self, seed: int, *names: str) -> None:
        """Name the stream."""
        self._seed = seed
        self._names = names
        self._random = random.Random("/".join((str(seed), *names)))  # noqa: S311  # not for secrets

    def of(self, *names: str) -> Chance:
        """Return the stream of something that belongs to this; it draws nothing from here."""
        return Chance(self._seed, *self._names, *names)

    def happens(self, probability: float) -> bool:
        """Tell whether something with this probability happens."""
        return self._random.random() < probability

    def pick(self, things: Sequence[T]) -> T:
        """Pick one of several."""
        return things[int(self._random.random() * len(things))]

    def between(self, low: float, high: float) -> float:
        """Draw a number."""
        return low + (high - low) * self._random.random()

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def about(self, typical: float) -> float:
        """Draw a duration around a typical one: seldom half of it, now and then thrice, as work takes its time."""
        spread = math.exp(0.35 * self._random.gauss(0.0, 1.0))
        return typical * min(max(spread, 0.4), 3.0)

    def next_event(self, mean: float) -> float:
        """Draw how long it takes until something happens that happens every `mean` on average, at any time."""
        return -mean * math.log(1.0 - self._random.random())
