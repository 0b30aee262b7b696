"""What came of a simulation: what was sent, how long the answers took, what became of reports and what went wrong.

Filled by the driver, read by whoever shows it. It counts and does nothing else.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from msgspec import Struct

_FINEST: Final = 0.0001  # seconds: the first bucket of the latencies
_STEP: Final = 1.1  # each bucket is so many times as wide as the one before: an answer to within 10 %
_WINDOW: Final = 10.0  # seconds over which the present rate is taken


class Latencies:
    """How long answers took, in buckets that grow."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._buckets: Counter[int] = Counter()
        self.count = 0

    def note(self, seconds: float) -> None:
        """Count one answer."""
        bucket, edge = 0, _FINEST
        while edge < seconds:
            bucket, edge = bucket + 1, edge * _STEP
        self._buckets[bucket] += 1
        self.count += 1

    def quantile(self, share: float) -> float:
        """Return the seconds within which this share of the answers came; 0 before the first."""
        left = share * self.count
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return float(_FINEST * _STEP**bucket)
        return 0.0


class Results(Struct, frozen=True, rename="camel"):
    """A tally at its end, as `--output json` shows it."""

    virtual_seconds: float
    seconds: float
    requests: int
    reports: int
    reports_per_second: float
    outcomes: dict[str, int]
    discards: dict[str, int]
    actions: dict[str, int]
    errors: dict[str, int]
    resynchronised: int
    latency_ms: dict[str, float]
    phases: dict[str, int]


class Tally:
    """The books of one simulation."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.outcomes: Counter[str] = Counter()  # aggregated, stored, discarded, gone, refused
        self.discards: Counter[str] = Counter()  # by cause
        self.actions: Counter[str] = Counter()  # created, changed, deleted …
        self.errors: Counter[str] = Counter()  # by code: what nobody had reason to expect
        self.resynchronised = 0  # times that the server knew something else than we thought
        self.latencies = Latencies()
        self.virtual = 0.0  # how far the plan is
        self._recent: deque[tuple[float, int]] = deque()  # when, and how many reports

    @property
    def reports(self) -> int:
        """Return how many reports were answered."""
        return self.outcomes.total()

    def note_answer(self, seconds: float, reports: int, now: float) -> None:
        """Count a request that was answered at a time, whatever the answer."""
        self.latencies.note(seconds)
        self._recent.append((now, reports))

    def rate(self, now: float) -> float:
        """Return the reports per second of late."""
        while self._recent and self._recent[0][0] < now - _WINDOW:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        return sum(reports for _, reports in self._recent) / min(max(now - self._recent[0][0], 1.0), _WINDOW)

    def conclude(self, seconds: float, phases: dict[str, int]) -> Results:
        """Return everything that was counted."""
        quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
        return Results(
            virtual_seconds=round(self.virtual, 3),
            seconds=round(seconds, 3),
            requests=self.latencies.count,
            reports=self.reports,
            reports_per_second=round(self.reports / seconds, 1) if seconds else 0.0,
            outcomes=_sorted(self.outcomes),
            discards=_sorted(self.discards),
            actions=_sorted(self.actions),
            errors=_sorted(self.errors),
            resynchronised=self.resynchronised,
            latency_ms={name: round(1000 * self.latencies.quantile(share), 2) for name, share in quantiles.items()},
            phases=phases,
        )


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))
