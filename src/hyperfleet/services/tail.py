"""The tail of the event log: read once by each process, shared by all watches.

One loop follows the log, at once after our own commits and a few times a second for those of other replicas, and caches
the newest segments. A watch has no state but its position: it takes the next segment when its connection is ready, so a
slow one costs nothing. A watch behind the cache reads the log itself, a page at a time. Without watches, nothing is
read at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from hyperfleet.errors import HistoryPruned, Overloaded, StoreError, TooManyWatches
from hyperfleet.ports import EventPage, LoggedEvent, Store
from hyperfleet.services.loops import Loop

DEFAULT_WATCHERS: Final = 1_000  # of one process; waking all of them takes about 50 ms

_POLL: Final = 0.25  # seconds between checks for commits of other replicas
_IDLE: Final = 3_600.0  # seconds; the first watch nudges the loop
_RETRY: Final = 1.0  # seconds that a watch waits when the store is away, and that reading a page may take at least
# A pause after each read, so that frequent commits share one. Waking one watch and sending it something costs about
# 50 µs. With this extra pause after each segment, watches take no more than a third of the process's time; the more of
# them there are, the larger the segments become.
_PAUSE: Final = 0.01
_PAUSE_PER_WATCHER: Final = 0.000_15
_PAGE: Final = 500  # events read at once, in some milliseconds …
_PAGE_BYTES: Final = 4 * 1024 * 1024  # … or fewer, if they are large
_EVENT_BYTES: Final = 200  # memory of an event beside its answer, and …
_TOKEN_BYTES: Final = 70  # … of each token of its resource
_CACHED_EVENTS: Final = 20_000  # some minutes of a busy fleet: a watch that reconnects finds its position here …
_CACHED_BYTES: Final = 32 * 1024 * 1024  # … if they fit
_FRESH: Final = 4  # newest segments whose derived results are cached; most watches take a segment at once
_SHARED: Final = 16  # cached results of one segment: different filters that many watches share
_CATCHING_UP: Final = 4  # watches that read the log themselves at the same time; the pool has ten connections
_PAGES: Final = 4  # cached pages of those: the watches of a replica that stopped arrive together at one position

T = TypeVar("T")


class LogSegment(Struct, eq=False):
    """A segment of the log: the events after one position and up to another."""

    after: int
    upto: int
    entries: tuple[LoggedEvent, ...]
    is_fresh: bool = False  # most watches have yet to take it
    results: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return roughly how many bytes it takes."""
        return sum(map(_size_of, self.entries))

    def beyond(self, position: int) -> LogSegment:
        """Return the rest of it after a position."""
        return LogSegment(position, self.upto, tuple([event for event in self.entries if event.position > position]))

    def share(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make` for this key; while the segment is fresh, it is computed once for all."""
        if key in self.results:
            return self.results[key]  # type: ignore[no-any-return]  # the key determines the type
        made = make()
        if self.is_fresh and len(self.results) < _SHARED:
            self.results[key] = made
        return made

    def expire(self) -> None:
        """Drop the cached results: few watches take it this late, and memory is better used for new segments."""
        self.is_fresh = False
        self.results.clear()


class LogTail:
    """The newest segments of the log, and the watches that wait for the next one."""

    def __init__(self, store: Store, limit: int = DEFAULT_WATCHERS, limit_per_caller: int | None = None) -> None:
        """Follow the log of `store` for up to `limit` watches, of one caller `limit_per_caller`; runs in `loop`."""
        self._store = store
        self._limit = limit
        self._limit_per_caller = limit if limit_per_caller is None else limit_per_caller
        self._watchers = 0
        self._by_caller: Counter[str] = Counter()  # by caller
        self._segments: dict[int, LogSegment] = {}  # by the position before them, the oldest first, without gaps
        self._fresh: deque[LogSegment] = deque(maxlen=_FRESH)
        self._pages: deque[LogSegment] = deque(maxlen=_PAGES)
        self._entries = self._bytes = 0
        self._begin: int | None = None  # the position before the first segment; None: unknown
        self._end = 0  # the last position of the last segment
        self._reached = 0  # the last position that was read
        self._news = asyncio.Event()  # a new one for each segment
        self._is_nudged = False
        self._ready_at = 0.0
        self._page = _PAGE
        self._catching_up = asyncio.Semaphore(_CATCHING_UP)
        self._closing = asyncio.Event()
        self.reads = 0  # of the store
        self.loop = Loop("watch", self._turn)

    @property
    def watchers(self) -> int:
        """Return the number of open watches."""
        return self._watchers

    @property
    def is_closing(self) -> bool:
        """Tell whether all watches are to end."""
        return self._closing.is_set()

    # for watches

    @contextlib.contextmanager
    def admit(self, caller: str = "") -> Iterator[None]:
        """Count one more watch of a caller for the length of a block; raises if there are too many."""
        if self.is_closing:
            raise Overloaded("the server is stopping")
        if self._watchers >= self._limit:
            raise Overloaded(f"{self._limit} watches are open already")
        if self._by_caller[caller] >= self._limit_per_caller:
            raise TooManyWatches(f"{caller} has {self._limit_per_caller} watches open already")
        self._watchers += 1
        self._by_caller[caller] += 1
        if self._watchers == 1:
            self.loop.nudge()
        try:
            yield
        finally:
            self._watchers -= 1
            self._by_caller[caller] -= 1
            if not self._by_caller[caller]:
                del self._by_caller[caller]

    async def read(self, after: int, timeout: float) -> LogSegment | None:
        """Wait for the next segment after a position; None: none came within `timeout` seconds, or the server stops.

        Raises `HistoryPruned` if what comes after the position has been pruned.
        """
        limit = asyncio.get_running_loop().time() + timeout
        while not self.is_closing:
            if (segment := self._find(after)) is not None:
                return segment
            if self._begin is not None and after < self._begin:
                return await self._catch_up_until(limit, after)
            news = self._news
            try:
                async with asyncio.timeout_at(limit):
                    await news.wait()
            except TimeoutError:
                return None
        return None

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until all watches are to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def catch_up(self, after: int) -> LogSegment:
        """Read what comes after a position from the store, for a watch that is behind or cannot wait for the loop."""
        async with self._catching_up:
            page = next((page for page in self._pages if page.after == after), None)
            if page is None:
                page = _make_segment(after, await self._fetch(after))
                if page.upto > after:  # an empty page is not cached: the next watch must read again
                    _add_fresh(self._pages, page)
            return page

    def known_until(self, position: int) -> int:
        """Return the position up to which there is known to be nothing new after a position."""
        return max(self._reached, position) if position >= self._end and self._begin is not None else position

    # for the server

    def nudge(self) -> None:
        """Read the log now: something was committed."""
        if self._watchers:
            self._is_nudged = True
            self.loop.nudge()

    def close(self) -> None:
        """End all watches, so that they reconnect to another replica."""
        self._closing.set()
        self._news.set()

    # steps

    async def _turn(self) -> float:
        if not self._watchers:
            self._clear()
            return _IDLE
        await asyncio.sleep(max(self._ready_at - asyncio.get_running_loop().time(), 0.0))
        try:
            await self._read_on()
        except HistoryPruned:  # there was no watch for longer than the log is kept
            self._clear()
        return _POLL

    async def _read_on(self) -> None:
        if self._begin is None:
            self._begin = self._end = self._reached = await self._read_position()
            self._wake_watches()
        elif self._is_nudged or await self._read_position() > self._reached:
            self._is_nudged = False
            while self._append(await self._fetch(self._reached)):
                pass

    async def _read_position(self) -> int:
        self.reads += 1
        return await self._store.position()

    async def _fetch(self, after: int) -> EventPage:
        """Read a page of the log; of large events, fewer."""
        self.reads += 1
        found = await self._store.read_events(after, self._page)
        if found.entries:
            size = sum(map(_size_of, found.entries)) // len(found.entries)
            self._page = min(_PAGE, max(1, _PAGE_BYTES // size))
        return found

    def _append(self, found: EventPage) -> bool:
        """Cache what was read; tell whether there is more."""
        segment = _make_segment(self._end, found)
        self._reached = max(segment.upto, self._reached)
        pause = _PAUSE
        if segment.entries:
            self._keep(segment)
            self._wake_watches()
            pause += self._watchers * _PAUSE_PER_WATCHER
        self._ready_at = asyncio.get_running_loop().time() + pause
        return found.head > self._reached

    def _keep(self, segment: LogSegment) -> None:
        _add_fresh(self._fresh, segment)
        self._segments[segment.after] = segment
        self._end = segment.upto
        self._entries += len(segment.entries)
        self._bytes += segment.size
        while len(self._segments) > 1 and (self._entries > _CACHED_EVENTS or self._bytes > _CACHED_BYTES):
            oldest = self._segments.pop(next(iter(self._segments)))
            self._begin = oldest.upto
            self._entries -= len(oldest.entries)
            self._bytes -= oldest.size

    def _wake_watches(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _find(self, after: int) -> LogSegment | None:
        """Return the cached segment after a position; if the position is inside one, the rest of it."""
        if after in self._segments:
            return self._segments[after]
        if self._begin is None or not self._begin <= after < self._end:
            return None
        return next(each for each in self._segments.values() if after < each.upto).beyond(after)

    async def _catch_up_until(self, limit: float, after: int) -> LogSegment | None:
        """Catch up; None: the store is away, or others go first, and the watch must send a keep-alive."""
        try:
            # A minimum however little time is left: otherwise a watch with a short timeout would never advance.
            async with asyncio.timeout_at(max(limit, asyncio.get_running_loop().time() + _RETRY)):
                return await self.catch_up(after)
        except HistoryPruned:
            raise
        except TimeoutError:
            return None
        except StoreError:
            await self.pause(_RETRY)
            return None

    def _clear(self) -> None:
        self._segments.clear()
        self._fresh.clear()
        self._pages.clear()
        self._entries = self._bytes = 0
        self._begin = None


def _make_segment(after: int, found: EventPage) -> LogSegment:
    """Make a segment of a page of the log; it ends at the last position of the page."""
    upto = found.entries[-1].position if found.entries else max(found.head, after)
    return LogSegment(after, upto, found.entries)


def _add_fresh(segments: deque[LogSegment], segment: LogSegment) -> None:
    """Add a segment to the fresh ones; the oldest of them expires."""
    if len(segments) == segments.maxlen:
        segments[0].expire()
    segment.is_fresh = True
    segments.append(segment)


def _size_of(event: LoggedEvent) -> int:
    """Return roughly how many bytes an event takes."""
    facets = event.facets
    tokens = len(facets.kept) + len(facets.gained) + len(facets.lost) if facets else 0
    return len(event.answer or b"") + _EVENT_BYTES + tokens * _TOKEN_BYTES
