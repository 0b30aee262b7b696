"""Counting: instruments, names that are bounded, and workers that add up what they counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import AdapterCounts, Loaded, Needs, Pruning, WriteSet
from hyperfleet.services.instruments import OTHER, BoundedNames, Histogram
from hyperfleet.services.loops import Loop
from hyperfleet.services.measures import Measures
from hyperfleet.services.retention import Retention
from hyperfleet.services.worker_totals import ProcessFigure, WorkerTotals
from tests.contract.stores import make_draft, make_resource
from tests.unit.services.desk import HandClock

NOW = datetime(2025, 10, 17, 12, 0, tzinfo=UTC)
NOTHING = Loaded(NOW, 1, {}, {}, {}, {})


class Wall:
    """A board in this process; `slots` is what workers wrote."""

    def __init__(self, slots: list[bytes], slot: int) -> None:
        self._slots = slots
        self.slot = slot
        self.dead: set[int] = set()

    def write(self, text: bytes) -> bool:
        """Write, unless it is too long for a slot."""
        if len(text) > 100_000:
            return False
        self._slots[self.slot] = text
        return True

    def read(self) -> Sequence[bytes]:
        """Return all slots."""
        return self._slots

    def is_taken(self, slot: int) -> bool:
        """Tell whether the worker of a slot is running."""
        return bool(self._slots[slot]) and slot not in self.dead


def look() -> list[ProcessFigure]:
    """Tell one figure of a process."""
    return [ProcessFigure("process_threads", "gauge", "Threads.", [({}, 3.0)])]


def report(measures: Measures, adapter: str, count: int = 1) -> None:
    """Count reports of an adapter."""
    tally = AdapterCounts("", adapter, NOW, timedelta(), {"stored": count})
    measures.committed(NOTHING, WriteSet(adapter_counts=[tally]), 1, 0.01)


def test_a_value_counts_in_the_first_bucket_that_holds_it() -> None:
    histogram = Histogram("h", "", (1.0, 5.0), "a")
    for value in (0.5, 1.0, 1.1, 5.0, 9.0):
        histogram.observe(value, "x")
    assert histogram.series == {("x",): [2, 2, 1, 16.6]}


def test_the_number_of_names_is_bounded() -> None:
    names = BoundedNames(2)
    assert [names.admit(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]


def test_adapters_beyond_the_limit_are_counted_together() -> None:
    measures = Measures(max_adapters=2)
    for number in range(1_000):
        report(measures, f"adapter-{number}")
    assert measures.reports.values == {
        ("adapter-0", "stored"): 1,
        ("adapter-1", "stored"): 1,
        (OTHER, "stored"): 998,
    }


def test_workers_add_up() -> None:
    slots = [b"", b""]
    first, second = Measures(), Measures()
    report(first, "dns", 2)
    report(second, "dns", 3)
    wall = Wall(slots, 0)
    WorkerTotals(second, look, Wall(slots, 1)).total()
    total = WorkerTotals(first, look, wall).total()
    assert total.counters["hyperfleet_reports_total"] == {("dns", "stored"): 5}
    assert total.histograms["hyperfleet_write_batch_size"][()][0] == 2
    assert [worker for worker, _ in total.process] == ["1", "2"]
    wall.dead.add(1)
    total = WorkerTotals(Measures(), look, wall).total()
    assert total.counters["hyperfleet_reports_total"] == {("dns", "stored"): 5}, "the dead are counted, too"
    assert [worker for worker, _ in total.process] == ["1"]


def test_a_replacement_worker_continues_from_the_counts_of_its_slot() -> None:
    slots = [b""]
    dead, successor = Measures(), Measures()
    report(dead, "dns", 2)
    WorkerTotals(dead, look, Wall(slots, 0)).total()
    totals = WorkerTotals(successor, look, Wall(slots, 0))
    report(successor, "dns", 1)
    assert totals.total().counters["hyperfleet_reports_total"] == {("dns", "stored"): 3}


def test_metrics_that_do_not_fit_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    measures = Measures(max_adapters=10_000)
    for number in range(5_000):
        report(measures, f"an-adapter-with-a-long-name-{number}")
    totals = WorkerTotals(measures, look, Wall([b""], 0))
    totals.total()
    totals.total()
    assert caplog.text.count("do not fit into shared memory") == 1


def test_what_could_not_be_written_is_counted() -> None:
    measures = Measures()
    measures.failed(StoreUnavailable("away"), 3)
    measures.failed(ValueError("ours"), 1)
    measures.retried("contention")
    assert measures.failures.values == {("StoreUnavailable",): 3, ("InternalError",): 1}
    assert measures.retries.values == {("contention",): 1}


def test_a_reader_that_lags_too_far_is_dropped_loudly(caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> tuple[Measures, MemoryStore]:
        clock = HandClock()
        store, measures = MemoryStore(clock), Measures()
        await store.open()
        await store.open_reader("relay")
        draft = make_draft(make_resource(), time=clock.now())
        await store.transact(Needs(), lambda _: WriteSet(events=[draft]))
        clock.pass_time(timedelta(hours=2))
        retention = Retention(store, [], timedelta(hours=1))
        measures.observe_upkeep([retention.loop], retention)
        retention.loop.start()
        while not measures.dropped_readers.values:
            await asyncio.sleep(0.01)
        await retention.loop.stop()
        return measures, store

    measures, store = asyncio.run(live())
    assert measures.dropped_readers.values == {("relay",): 1}
    assert [each.dropped_time is not None for each in asyncio.run(store.readers())] == [True]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "reader relay is dropped: it has read up to position 0" in record.getMessage()


def test_what_goes_wrong_beside_the_requests_is_counted() -> None:
    class PruningStore(MemoryStore):
        """A store with some rows to prune, and one log that cannot be."""

        left = 3

        async def prune(self, task: Pruning, limit: int) -> int:
            if task.log == "reports":
                raise StoreUnavailable("away")
            pruned, self.left = self.left, 0
            return pruned

    async def fail() -> float:
        raise StoreUnavailable("away")

    async def live() -> Measures:
        store, measures = PruningStore(HandClock()), Measures()
        await store.open()
        retention = Retention(store, [Pruning("events", timedelta()), Pruning("reports", timedelta())])
        loop = Loop("deadlines", fail)
        measures.observe_upkeep([loop, retention.loop], retention)
        for each in (loop, retention.loop):
            each.start()
        while not measures.loop_failures.values or not measures.pruning_failures.values:
            await asyncio.sleep(0.01)
        for each in (loop, retention.loop):
            await each.stop()
        return measures

    measures = asyncio.run(live())
    assert measures.loop_failures.values["deadlines",] >= 1
    assert measures.pruned.values == {("events",): 3}
    assert measures.pruning_failures.values == {("reports",): 1}
