"""The tail of the log: every watcher gets everything once and in order, whatever is kept, read or away meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import pytest
from msgspec.structs import replace

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import HistoryPruned, Overloaded, StoreUnavailable
from hyperfleet.model.event import EventType
from hyperfleet.ports import EventPage, FacetChange, LoggedEvent
from hyperfleet.services import tail as module
from hyperfleet.services.tail import LogSegment, LogTail

NOW = datetime(2025, 10, 17, 12, tzinfo=UTC)
CHANGES: Final[tuple[EventType, ...]] = ("StatusChanged",)


class LogStore(MemoryStore):
    """A store of which only the log is asked for; it can be away, and forget."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.log: list[LoggedEvent] = []
        self.forgotten = 0
        self.is_away = False
        self.hangs = False
        self.reads = 0

    def add(self, *types: EventType) -> None:
        """Write events to the log."""
        for type_ in types:
            position = len(self.log) + 1
            id_ = f"cls-{position}"
            self.log.append(LoggedEvent(position, type_, "Cluster", id_, None, "", 1, NOW, b"{}", FacetChange()))

    async def position(self) -> int:
        """Return the last position."""
        self._look()
        return len(self.log)

    async def read_events(self, after: int, limit: int) -> EventPage:
        """Return a page of the log."""
        self._look()
        if self.hangs:
            await asyncio.Event().wait()
        if after < self.forgotten:
            raise HistoryPruned("pruned")
        return EventPage(tuple(self.log[after : after + limit]), len(self.log))

    def _look(self) -> None:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailable("away")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL", 0.005)
    monkeypatch.setattr(module, "_RETRY", 0.005)


@asynccontextmanager
async def following(store: LogStore, most: int = 10) -> AsyncIterator[LogTail]:
    """Follow the log of a store for the length of a block."""
    tail = LogTail(store, most)
    tail.loop.start()
    try:
        async with asyncio.timeout(10):
            yield tail
    finally:
        tail.close()
        await tail.loop.stop()


async def collect(tail: LogTail, start: int, upto: int) -> list[int]:
    """Return the positions of what a watcher gets after one position, up to another."""
    cursor, positions = start, []
    with tail.admit():
        while cursor < upto:
            stretch = await tail.read(cursor, 0.02)
            if stretch is not None:
                assert cursor == stretch.after
                positions += [entry.position for entry in stretch.entries]
                cursor = stretch.upto
            cursor = tail.known_until(cursor)
    return positions


def test_everybody_gets_everything_from_wherever_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 3)
    monkeypatch.setattr(module, "_CACHED_EVENTS", 5)  # so that some are behind what is kept

    async def scenario() -> None:
        store = LogStore()
        store.add(*CHANGES * 20)
        async with following(store) as tail:
            watchers = [asyncio.create_task(collect(tail, start, 40)) for start in (0, 5, 19, 20)]
            for _ in range(20):
                store.add("StatusChanged")
                tail.nudge()
                await asyncio.sleep(0.001)
            got = await asyncio.gather(*watchers)
        news = [entry.position for entry in store.log]
        assert got == [[each for each in news if each > start] for start in (0, 5, 19, 20)]

    asyncio.run(scenario())


def test_other_replicas_are_noticed_without_a_nudge() -> None:
    async def scenario() -> None:
        store = LogStore()
        async with following(store) as tail:
            watching = asyncio.create_task(collect(tail, 0, 2))
            await asyncio.sleep(0.01)
            store.add("Created", "StatusChanged")
            assert await watching == [1, 2]

    asyncio.run(scenario())


def test_those_who_are_abreast_share_what_they_make() -> None:
    async def scenario() -> None:
        store = LogStore()
        async with following(store) as tail:
            with tail.admit(), tail.admit():
                reading = [asyncio.create_task(tail.read(0, 5)) for _ in range(2)]
                await asyncio.sleep(0.02)
                store.add("Created")
                one, other = await asyncio.gather(*reading)
        assert one is not None
        assert one is other
        made = [one.share("view", object), one.share("view", object), one.share("another", object)]
        assert made[0] is made[1] is not made[2]

    asyncio.run(scenario())


def test_those_who_are_behind_by_the_same_read_once() -> None:
    async def scenario() -> None:
        store = LogStore()
        store.add(*CHANGES * 20)
        async with following(store) as tail:
            with tail.admit():
                await tail.read(20, 0.01)
                before = tail.reads
                pages = await asyncio.gather(*(tail.read(3, 5) for _ in range(50)))
                assert tail.reads - before <= module._CATCHING_UP + 2  # those under way at once, and a look or two
                page = pages[-1]
                assert page is not None
                assert page.share("view", object) is page.share("view", object)
                assert (await tail.catch_up(20)).upto == 20
                store.add("StatusChanged")
                assert (await tail.catch_up(20)).upto == 21  # what was empty is looked for again

    asyncio.run(scenario())


def test_what_late_comers_make_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.0)

    async def scenario() -> None:
        store = LogStore()
        async with following(store) as tail:
            with tail.admit():
                stretches: list[LogSegment | None] = []
                while len(stretches) < 6:
                    reading = asyncio.create_task(tail.read(len(stretches), 5))
                    await asyncio.sleep(0.01)
                    store.add("StatusChanged")
                    stretches.append(await reading)
                    assert stretches[-1] is not None
                    stretches[-1].share("in time", object)
                first = await tail.read(0, 5)
                assert first is stretches[0]
                assert first is not None
                assert first.share("late", object) is not first.share("late", object)
        assert [len(each.results) for each in stretches if each] == [0, 0, 1, 1, 1, 1]

    asyncio.run(scenario())


def test_tokens_count_as_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_BYTES", 10_000)
    tokens = FacetChange(tuple([f"w:{number}" for number in range(100)]))

    async def scenario() -> None:
        store = LogStore()
        async with following(store) as tail:
            with tail.admit():
                await asyncio.sleep(0.01)
                for position in range(1, 6):
                    store.add("StatusChanged")
                    store.log[-1] = replace(store.log[-1], facets=tokens)
                    await tail.read(position - 1, 5)
                before = store.reads
                assert await tail.read(4, 5) is not None  # the last one is kept
                assert store.reads == before
                assert await tail.read(0, 5) is not None  # the first one must be read again
                assert store.reads > before

    asyncio.run(scenario())


def test_nobody_is_asked_while_nobody_watches() -> None:
    async def scenario() -> None:
        store = LogStore()
        async with following(store) as tail:
            assert await collect(tail, 0, 0) == []
            await asyncio.sleep(0.03)
            before = store.reads
            store.add("Created")
            tail.nudge()
            await asyncio.sleep(0.03)
            assert store.reads == before
            assert await collect(tail, 0, 1) == [1]

    asyncio.run(scenario())


def test_a_store_that_is_away_is_waited_for() -> None:
    async def scenario() -> None:
        store = LogStore()
        store.add("Created")
        async with following(store) as tail:
            watching = asyncio.create_task(collect(tail, 0, 2))
            await asyncio.sleep(0)
            store.is_away = True
            await asyncio.sleep(0.05)
            store.is_away = False
            store.add("StatusChanged")
            tail.loop.nudge()
            assert await watching == [1, 2]

    asyncio.run(scenario())


def test_who_is_behind_need_not_wait_for_a_store_that_hangs() -> None:
    async def scenario() -> None:
        store = LogStore()
        store.add(*CHANGES * 5)
        async with following(store) as tail:
            with tail.admit():
                await tail.read(5, 0.02)
                store.hangs = True
                assert await asyncio.gather(*(tail.read(2, 0.02) for _ in range(20))) == [None] * 20
                store.hangs = False
                stretch = await tail.read(2, 5)
                assert stretch is not None
                assert [entry.position for entry in stretch.entries] == [3, 4, 5]

    asyncio.run(scenario())


def test_what_is_forgotten_is_told() -> None:
    async def scenario() -> None:
        store = LogStore()
        store.add(*CHANGES * 5)
        store.forgotten = 3
        async with following(store) as tail:
            with pytest.raises(HistoryPruned):
                await collect(tail, 2, 5)
            assert await collect(tail, 3, 5) == [4, 5]

    asyncio.run(scenario())


def test_seats_and_the_end() -> None:
    async def scenario() -> None:
        async with following(LogStore(), most=1) as tail:
            with tail.admit():
                with pytest.raises(Overloaded, match="1 watches are open"), tail.admit():
                    pass
                reading = asyncio.create_task(tail.read(0, 60))
                await asyncio.sleep(0.02)
                tail.close()
                assert await reading is None
            with pytest.raises(Overloaded, match="stopping"), tail.admit():
                pass

    asyncio.run(scenario())
