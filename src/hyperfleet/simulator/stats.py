"""The statistics of a simulation: what was sent, latencies, outcomes of reports, errors.

The driver fills them; `sim` and `demo` show them.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from msgspec import Struct

_FIRST_BUCKET: Final = 0.0001  # seconds: upper bound of the first bucket
_STEP: Final = 1.1  # width of a bucket relative to the one before: quantiles are right to within 10 %
_WINDOW: Final = 10.0  # seconds over which the current rate is measured


class LatencyHistogram:
    """Latencies of responses, in buckets that grow exponentially."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._buckets: Counter[int] = Counter()
        self.count = 0

    def record(self, seconds: float) -> None:
        """Count one response."""
        bucket, edge = 0, _FIRST_BUCKET
        while edge < seconds:
            bucket, edge = bucket + 1, edge * _STEP
        self._buckets[bucket] += 1
        self.count += 1

    def quantile(self, share: float) -> float:
        """Return the latency that this share of the responses did not exceed; 0 before the first."""
        left = share * self.count
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return float(_FIRST_BUCKET * _STEP**bucket)
        return 0.0


class SimulationResults(Struct, frozen=True, rename="camel"):
    """The statistics of a finished simulation, as `--output json` shows them."""

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


class SimulationStats:
    """The counters of one simulation."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.outcomes: Counter[str] = Counter()  # aggregated, stored, discarded, gone, refused
        self.discards: Counter[str] = Counter()  # by cause
        self.actions: Counter[str] = Counter()  # created, changed, deleted …
        self.errors: Counter[str] = Counter()  # unexpected refusals, by code
        self.resynchronised = 0  # times that the server's state was not what the plan expected
        self.latencies = LatencyHistogram()
        self.virtual = 0.0  # seconds of the plan so far
        self._recent: deque[tuple[float, int]] = deque()  # when, and how many reports

    @property
    def reports(self) -> int:
        """Return the number of reports that were answered."""
        return self.outcomes.total()

    def record_response(self, seconds: float, reports: int, now: float) -> None:
        """Count a response at a time, whatever it was."""
        self.latencies.record(seconds)
        self._recent.append((now, reports))

    def rate(self, now: float) -> float:
        """Return the current reports per second."""
        while self._recent and self._recent[0][0] < now - _WINDOW:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        return sum(reports for _, reports in self._recent) / min(max(now - self._recent[0][0], 1.0), _WINDOW)

    def summarize(self, seconds: float, phases: dict[str, int]) -> SimulationResults:
        """Return the final statistics."""
        quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
        return SimulationResults(
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
