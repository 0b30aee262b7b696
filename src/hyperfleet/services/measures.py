"""What one process counts of its own work: requests, reports, writes, transitions, upkeep.

The composition root makes one of these and hands it to what is measured: it is the `CommitObserver` of the committer.
`api/metrics` shows it; what the store knows of the fleet is in `fleet_figures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hyperfleet.errors import HyperFleetError
from hyperfleet.ports import Changes, Heard, Heartbeat, Loaded
from hyperfleet.services.committer import Committer, Hindrance
from hyperfleet.services.instruments import Counter, Gauge, Histogram, Names
from hyperfleet.services.loops import Loop
from hyperfleet.services.movements import Movements
from hyperfleet.services.retention import Retention
from hyperfleet.services.tail import Tail

DEFAULT_ADAPTERS: Final = 100

_QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_LAG: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)  # seconds
_BATCH: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)  # commands


class Measures:
    """Every instrument of a process."""

    def __init__(self, most_adapters: int = DEFAULT_ADAPTERS) -> None:
        """Begin with nothing; tell at most so many adapters apart."""
        self.requests = Counter(
            "hyperfleet_http_requests_total",
            "Requests that ended, by the template of their path; code none: the caller left before an answer.",
            *("route", "method", "code"),
        )
        self.durations = Histogram(
            "hyperfleet_http_request_duration_seconds",
            "How long requests took from their first byte to the last of the answer; without watches and waits.",
            _QUICK,
            *("route", "method"),
        )
        self.problems = Counter(
            "hyperfleet_problems_total",
            "Problems answered, by code, such as InvalidToken or Overloaded; what only /compat has, by its own codes.",
            "code",
        )
        self.in_flight = Gauge("hyperfleet_http_requests_in_flight", "Requests that are being served now.")
        self.watches = Gauge("hyperfleet_watches_open", "Watches and waits that are open now.")
        self.reports = Counter(
            "hyperfleet_reports_total",
            "Reports by adapter and what became of them: aggregated, stored, replayed, or why they were not taken in.",
            *("adapter", "outcome"),
        )
        self.heartbeats = Counter(
            "hyperfleet_heartbeats_total",
            "Reports recorded as heartbeats, by adapter. Far fewer than its reports: it sends something new each time.",
            "adapter",
        )
        self.lag = Histogram(
            "hyperfleet_report_lag_seconds",
            "Time from what an adapter observed until we had its report, by both clocks; only of accepted reports.",
            _LAG,
            "adapter",
        )
        self.queued = Gauge("hyperfleet_write_queue_length", "Writes that wait for a transaction.")
        self.queue_capacity = Gauge(
            "hyperfleet_write_queue_capacity", "Writes that may wait; the next one is answered 503 Overloaded."
        )
        self.batches = Histogram(
            "hyperfleet_write_batch_size", "Writes committed together: rises with the load, up to its limit.", _BATCH
        )
        self.commits = Histogram(
            "hyperfleet_commit_duration_seconds",
            "How long transactions took, from the first lock to the flush; of those that succeeded.",
            _QUICK,
        )
        self.retries = Counter(
            "hyperfleet_write_retries_total",
            "Transactions tried again because of contention with other writers, or because the policy had changed.",
            "cause",
        )
        self.failures = Counter(
            "hyperfleet_write_failures_total", "Writes that were not committed, by the code of the error.", "error"
        )
        self.loop_failures = Counter(
            "hyperfleet_loop_failures_total",
            "Turns of background work that failed and are tried again: deadlines, recomputation, retention, watch.",
            "loop",
        )
        self.pruned = Counter(
            "hyperfleet_pruned_rows_total", "Rows forgotten because they were past their time.", "log"
        )
        self.pruning_failures = Counter(
            "hyperfleet_pruning_failures_total", "Attempts to forget old rows that failed: the disk fills.", "log"
        )
        self.dropped_readers = Counter(
            "hyperfleet_dropped_readers_total",
            "Times that a named reader of the log lagged too far behind, so that pruning no longer waits for it.",
            "reader",
        )
        self.movements = Movements()
        self._adapters = Names(most_adapters)
        self._in_flight = 0
        self.in_flight.look = lambda: float(self._in_flight)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Return everything that is counted."""
        reports = (self.requests, self.problems, self.reports, self.heartbeats)
        writes = (self.retries, self.failures, self.loop_failures)
        upkeep = (self.pruned, self.pruning_failures, self.dropped_readers)
        return (*reports, *writes, *upkeep, self.movements.transitions)

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """Return everything that is measured."""
        moved = (self.movements.time_in_state, self.movements.time_to_ready)
        return (self.durations, self.lag, self.batches, self.commits, *moved)

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        """Return everything that can be looked at."""
        return (self.in_flight, self.watches, self.queued, self.queue_capacity)

    # whom it looks at

    def attend(self, committer: Committer, tail: Tail) -> None:
        """Count what a committer writes, and look at its queue and at who watches."""
        committer.observer = self
        self.queued.look = lambda: float(committer.waiting)
        self.queue_capacity.look = lambda: float(committer.capacity.queue)
        self.watches.look = lambda: float(tail.watchers)

    def attend_upkeep(self, loops: Iterable[Loop], retention: Retention) -> None:
        """Count what goes wrong in loops, and what is forgotten."""
        for loop in loops:
            loop.on_failure = self.loop_failures.add
        retention.on_pruned = lambda log, rows: self.pruned.add(log, amount=rows)
        retention.on_failure = self.pruning_failures.add
        retention.on_dropped = self.dropped_readers.add

    # what it is told of requests

    def begin_request(self) -> None:
        """Count a request that came."""
        self._in_flight += 1

    def end_request(self) -> None:
        """Count a request that ended."""
        self._in_flight -= 1

    # what it is told of writes

    def committed(self, loaded: Loaded, changes: Changes, commands: int, seconds: float) -> None:
        """Count a transaction that was committed, and all that came with it."""
        self.batches.observe(commands)
        self.commits.observe(seconds)
        admit = self._adapters.admit
        for tally in changes.tallies:
            adapter = admit(tally.adapter)
            for outcome, count in tally.counts.items():
                self.reports.add(adapter, outcome, amount=count)
        for logged in changes.log:
            observed = logged.stored.report.observed_time
            if observed is not None:
                lag = (logged.stored.last_heard - observed).total_seconds()
                self.lag.observe(max(lag, 0.0), admit(logged.stored.report.adapter))
        self.movements.count(loaded, changes)

    def recorded(self, heartbeats: Sequence[tuple[Heartbeat, Heard]], tried: int, seconds: float) -> None:
        """Count heartbeats that were recorded together."""
        if not heartbeats:
            return
        self.batches.observe(len(heartbeats))
        self.commits.observe(seconds)
        for sent, heard in heartbeats:
            adapter = self._adapters.admit(sent.adapter)
            self.reports.add(adapter, "aggregated")
            self.heartbeats.add(adapter)
            if sent.observed_time is not None:
                self.lag.observe(max(-heard.skew.total_seconds(), 0.0), adapter)

    def hindered(self, cause: Hindrance) -> None:
        """Count a transaction that must be tried again."""
        self.retries.add(cause)

    def failed(self, error: Exception, commands: int) -> None:
        """Count writes that were not committed."""
        code = error.code if isinstance(error, HyperFleetError) else "InternalError"
        self.failures.add(code, amount=commands)
