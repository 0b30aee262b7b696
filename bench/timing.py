"""How we time: many rounds, interleaved, the fastest counts (the others measure the machine's other work)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter


def time_each(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int = 15, seconds: float = 0.02
) -> dict[str, float]:
    """Return the time of one call of each candidate in microseconds; rounds take turns among them."""
    counts = {name: _calls_within(call, seconds) for name, call in candidates.items()}
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, call in candidates.items():
            best[name] = min(best[name], _time(call, counts[name]))
    return best


def _calls_within(call: Callable[[], object], seconds: float) -> int:
    count = 1
    while _time(call, count) * count < seconds * 1e6 and count < 10_000_000:
        count *= 2
    return count


def _time(call: Callable[[], object], count: int) -> float:
    repeat = range(count)
    start = perf_counter()
    for _ in repeat:
        call()
    return (perf_counter() - start) / count * 1e6
