"""The metrics of one process about its own work: requests, reports, writes, upkeep. Those of events: `event_measures`.

The composition root creates one and passes it to what is measured: it is the `CommitObserver` of the committer.
`api/metrics` renders it. Metrics about the fleet are in `fleet_figures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hyperfleet.errors import HyperFleetError
from hyperfleet.ports import Heartbeat, Loaded, RecordedHeartbeat, WriteSet
from hyperfleet.services.committer import Committer, RetryCause
from hyperfleet.services.event_measures import EventMeasures
from hyperfleet.services.instruments import QUICK, BoundedNames, Counter, Gauge, Histogram
from hyperfleet.services.loops import Loop
from hyperfleet.services.retention import Retention
from hyperfleet.services.tail import LogTail
from hyperfleet.services.transition_metrics import TransitionMetrics

DEFAULT_ADAPTERS: Final = 100  # of their own series; a fleet has dozens

_LAG: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)  # seconds
_BATCH: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)  # commands


class Measures:
    """Every instrument of a process."""

    def __init__(self, max_adapters: int = DEFAULT_ADAPTERS) -> None:
        """Start at zero; more than `max_adapters` adapters are counted as `other`."""
        self.requests = Counter(
            "hyperfleet_http_requests_total",
            "Finished requests by route template; code none: the caller left before the answer.",
            *("route", "method", "code"),
        )
        self.durations = Histogram(
            "hyperfleet_http_request_duration_seconds",
            "Time from the first byte of a request to the last byte of its answer; without watches and waits.",
            QUICK,
            *("route", "method"),
        )
        self.problems = Counter(
            "hyperfleet_problems_total",
            "Problem answers by code, such as InvalidToken or Overloaded; /compat has some codes of its own.",
            "code",
        )
        self.in_flight = Gauge("hyperfleet_http_requests_in_flight", "Requests being served now.")
        self.watches = Gauge("hyperfleet_watches_open", "Open watches and waits.")
        self.reports = Counter(
            "hyperfleet_reports_total",
            "Reports by adapter and outcome: aggregated, stored, replayed, or why they were discarded or rejected.",
            *("adapter", "outcome"),
        )
        self.heartbeats = Counter(
            "hyperfleet_heartbeats_total",
            "Reports recorded as heartbeats, by adapter. Far fewer than its reports: its reports change each time.",
            "adapter",
        )
        self.lag = Histogram(
            "hyperfleet_report_lag_seconds",
            "Time from an adapter's observation to our receipt of its report, by both clocks; only accepted reports.",
            _LAG,
            "adapter",
        )
        self.queued = Gauge("hyperfleet_write_queue_length", "Writes waiting for a transaction.")
        self.queue_capacity = Gauge(
            "hyperfleet_write_queue_capacity", "Writes that may wait; the next one is answered 503 Overloaded."
        )
        self.batches = Histogram(
            "hyperfleet_write_batch_size", "Writes per transaction; rises with the load, up to its limit.", _BATCH
        )
        self.commits = Histogram(
            "hyperfleet_commit_duration_seconds",
            "Duration of successful transactions, from the first lock to the flush.",
            QUICK,
        )
        self.retries = Counter(
            "hyperfleet_write_retries_total",
            "Transactions retried because of contention with other writers, or because the policy had changed.",
            "cause",
        )
        self.failures = Counter(
            "hyperfleet_write_failures_total", "Writes that were not committed, by error code.", "error"
        )
        self.loop_failures = Counter(
            "hyperfleet_loop_failures_total",
            "Failed turns of background loops, which are retried: deadlines, retention, relay, sentinel and others.",
            "loop",
        )
        self.pruned = Counter(
            "hyperfleet_pruned_rows_total", "Rows deleted because they were past their retention.", "log"
        )
        self.pruning_failures = Counter(
            "hyperfleet_pruning_failures_total", "Failed attempts to delete old rows: the disk fills.", "log"
        )
        self.dropped_readers = Counter(
            "hyperfleet_dropped_readers_total",
            "Named readers of the log dropped because they lagged too far behind; pruning no longer waits for them.",
            "reader",
        )
        self.events = EventMeasures()
        self.transitions = TransitionMetrics()
        self._adapters = BoundedNames(max_adapters)
        self._in_flight = 0
        self.in_flight.look = lambda: float(self._in_flight)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Return all counters."""
        reports = (self.requests, self.problems, self.reports, self.heartbeats)
        writes = (self.retries, self.failures, self.loop_failures)
        upkeep = (self.pruned, self.pruning_failures, self.dropped_readers)
        return (*reports, *writes, *upkeep, *self.events.counters, self.transitions.counter)

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """Return all histograms."""
        moved = (self.transitions.time_in_state, self.transitions.time_to_ready)
        return (self.durations, self.lag, self.batches, self.commits, self.events.sentinel_passes, *moved)

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        """Return all gauges."""
        return (self.in_flight, self.watches, self.queued, self.queue_capacity, *self.events.gauges)

    # what it observes

    def observe(self, committer: Committer, tail: LogTail) -> None:
        """Count what a committer writes, and show its queue and the open watches."""
        committer.observer = self
        self.queued.look = lambda: float(committer.waiting)
        self.queue_capacity.look = lambda: float(committer.capacity.queue)
        self.watches.look = lambda: float(tail.watchers)

    def observe_upkeep(self, loops: Iterable[Loop], retention: Retention) -> None:
        """Count failed turns of loops, and what retention deletes."""
        for loop in loops:
            loop.on_failure = self.loop_failures.add
        retention.on_pruned = lambda log, rows: self.pruned.add(log, amount=rows)
        retention.on_failure = self.pruning_failures.add
        retention.on_dropped = self.dropped_readers.add

    # requests

    def begin_request(self) -> None:
        """Count a request that started."""
        self._in_flight += 1

    def end_request(self) -> None:
        """Count a request that ended."""
        self._in_flight -= 1

    # writes

    def committed(self, loaded: Loaded, changes: WriteSet, commands: int, seconds: float) -> None:
        """Count a committed transaction and its reports."""
        self.batches.observe(commands)
        self.commits.observe(seconds)
        admit = self._adapters.admit
        for counts in changes.adapter_counts:
            adapter = admit(counts.adapter)
            for outcome, count in counts.counts.items():
                self.reports.add(adapter, outcome, amount=count)
        for logged in changes.log:
            observed = logged.stored.report.observed_time
            if observed is not None:
                lag = (logged.stored.last_heard - observed).total_seconds()
                self.lag.observe(max(lag, 0.0), admit(logged.stored.report.adapter))
        self.transitions.count(loaded, changes)

    def recorded(self, heartbeats: Sequence[tuple[Heartbeat, RecordedHeartbeat]], tried: int, seconds: float) -> None:
        """Count heartbeats that were recorded together."""
        if not heartbeats:
            return
        self.batches.observe(len(heartbeats))
        self.commits.observe(seconds)
        for sent, recorded in heartbeats:
            adapter = self._adapters.admit(sent.adapter)
            self.reports.add(adapter, "aggregated")
            self.heartbeats.add(adapter)
            if sent.observed_time is not None:
                self.lag.observe(max(-recorded.skew.total_seconds(), 0.0), adapter)

    def retried(self, cause: RetryCause) -> None:
        """Count a transaction that must be tried again."""
        self.retries.add(cause)

    def failed(self, error: Exception, commands: int) -> None:
        """Count writes that were not committed."""
        code = error.code if isinstance(error, HyperFleetError) else "InternalError"
        self.failures.add(code, amount=commands)
