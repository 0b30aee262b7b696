"""The tail of the event log: read once by each process, shared by everybody who watches.

One reader follows the log, after our own commits at once and a few times a second for those of other replicas, and
keeps what it found for a while. Watchers have nothing of their own but a position: they come for the stretch after it
when they are ready for more, so a slow one costs nobody anything. Who is further behind than what is kept reads the
log itself, a page at a time. While nobody watches, nothing is read at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from hyperfleet.errors import HistoryPruned, Overloaded, StoreError, TooManyWatches
from hyperfleet.ports import Entries, Entry, Store
from hyperfleet.services.loops import Loop

DEFAULT_WATCHERS: Final = 1_000

_POLL: Final = 0.25  # seconds between looks for commits of other replicas
_ASLEEP: Final = 3_600.0  # seconds; whoever comes first wakes us
_RETRY: Final = 1.0  # seconds that a watcher waits when the store is away, and that a page has at least to come
# A pause after each look, for a fleet whose heartbeats are committed a hundred times a second and are no news. Waking
# one watcher and sending it something costs about 50 µs. With this more after each stretch they take no more than a
# third of our time; the more of them there are, the larger the stretches become.
_PAUSE: Final = 0.01
_PAUSE_PER_WATCHER: Final = 0.000_15
_PAGE: Final = 500  # events read at once …
_PAGE_BYTES: Final = 4 * 1024 * 1024  # … or fewer, if they are large
_ENTRY_BYTES: Final = 200  # that an entry takes beside its answer, and …
_TOKEN_BYTES: Final = 70  # … each token of its resource
_KEPT_ENTRIES: Final = 20_000
_KEPT_BYTES: Final = 32 * 1024 * 1024
_FRESH: Final = 4  # stretches of which is kept what was made of them; later comers make it anew
_SHARED: Final = 16  # different things made of one stretch that are kept
_CATCHING_UP: Final = 4  # watchers that read the log themselves, at once
_PAGES: Final = 4  # that they read last; those of a replica that stopped come together, and behind by the same

T = TypeVar("T")


class Stretch(Struct, eq=False):
    """Part of the log: what happened after one position and up to another. Heartbeats are no news and left out."""

    after: int
    upto: int
    entries: tuple[Entry, ...]
    is_fresh: bool = False  # many are about to come for it
    made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        return sum(map(_size_of, self.entries))

    def beyond(self, position: int) -> Stretch:
        """Return the rest of it, for somebody who knows its beginning."""
        return Stretch(position, self.upto, tuple([entry for entry in self.entries if entry.position > position]))

    def share(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of it under this key; while it is fresh, the first to ask makes it for all."""
        if key in self.made:
            return self.made[key]  # type: ignore[no-any-return]  # whoever has the key knows the type
        made = make()
        if self.is_fresh and len(self.made) < _SHARED:
            self.made[key] = made
        return made

    def grow_old(self) -> None:
        """Let go of what was made of it: few come so late, and they would fill the memory with it again."""
        self.is_fresh = False
        self.made.clear()


class Tail:
    """The newest stretches of the log, and those who wait for the next one."""

    def __init__(self, store: Store, most: int = DEFAULT_WATCHERS, most_each: int | None = None) -> None:
        """Follow the log of `store` for up to `most` watchers, and of one caller `most_each`; `loop` sets it going."""
        self._store = store
        self._most = most
        self._most_each = most if most_each is None else most_each
        self._watchers = 0
        self._shares: Counter[str] = Counter()  # by caller
        self._stretches: dict[int, Stretch] = {}  # by the position before them, the oldest first, without a gap
        self._fresh: deque[Stretch] = deque(maxlen=_FRESH)
        self._pages: deque[Stretch] = deque(maxlen=_PAGES)
        self._entries = self._bytes = 0
        self._begin: int | None = None  # the position before the first stretch; None: we do not know where we are
        self._end = 0  # the last position of the last stretch
        self._reached = 0  # the last position that was read; beyond `_end` there were only heartbeats
        self._news = asyncio.Event()  # another one for each stretch
        self._is_nudged = False
        self._ready_at = 0.0
        self._page = _PAGE
        self._catching_up = asyncio.Semaphore(_CATCHING_UP)
        self._closing = asyncio.Event()
        self.reads = 0  # how often the store was asked
        self.loop = Loop("watch", self._turn)

    @property
    def watchers(self) -> int:
        """Return how many watch."""
        return self._watchers

    @property
    def is_closing(self) -> bool:
        """Tell whether everybody is to go."""
        return self._closing.is_set()

    # for watchers

    @contextlib.contextmanager
    def seat(self, caller: str = "") -> Iterator[None]:
        """Let one more watch for the length of a block; `caller` is whose watch it is."""
        if self.is_closing:
            raise Overloaded("the server is stopping")
        if self._watchers >= self._most:
            raise Overloaded(f"{self._most} watches are open already")
        if self._shares[caller] >= self._most_each:
            raise TooManyWatches(f"{caller} has {self._most_each} watches open already")
        self._watchers += 1
        self._shares[caller] += 1
        if self._watchers == 1:
            self.loop.nudge()
        try:
            yield
        finally:
            self._watchers -= 1
            self._shares[caller] -= 1
            if not self._shares[caller]:
                del self._shares[caller]

    async def read(self, after: int, patience: float) -> Stretch | None:
        """Return the next stretch after a position, when there is one; None: not for so many seconds, or we stop.

        Raises `HistoryPruned` if what comes after the position has been pruned.
        """
        limit = asyncio.get_running_loop().time() + patience
        while not self.is_closing:
            if (stretch := self._find(after)) is not None:
                return stretch
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
        """Wait for a while, or until everybody is to go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def catch_up(self, after: int) -> Stretch:
        """Read what comes after a position from the store, for somebody who cannot wait for the others or is behind."""
        async with self._catching_up:
            page = next((page for page in self._pages if page.after == after), None)
            if page is None:
                page = _make_stretch(after, await self._fetch(after))
                if page.upto > after:  # or else the next one to come must look again
                    _freshen(self._pages, page)
            return page

    def place_after(self, position: int) -> int:
        """Return how far the log is known to hold nothing but heartbeats after a position."""
        return max(self._reached, position) if position >= self._end and self._begin is not None else position

    # for the server

    def nudge(self) -> None:
        """Look for news now: something was committed."""
        if self._watchers:
            self._is_nudged = True
            self.loop.nudge()

    def close(self) -> None:
        """Send everybody away, so that they come back to another replica."""
        self._closing.set()
        self._news.set()

    # steps

    async def _turn(self) -> float:
        if not self._watchers:
            self._forget()
            return _ASLEEP
        await asyncio.sleep(max(self._ready_at - asyncio.get_running_loop().time(), 0.0))
        try:
            await self._read_on()
        except HistoryPruned:  # we were away for longer than the log is kept
            self._forget()
        return _POLL

    async def _read_on(self) -> None:
        if self._begin is None:
            self._begin = self._end = self._reached = await self._look()
            self._tell()
        elif self._is_nudged or await self._look() > self._reached:
            self._is_nudged = False
            while self._append(await self._fetch(self._reached)):
                pass

    async def _look(self) -> int:
        self.reads += 1
        return await self._store.position()

    async def _fetch(self, after: int) -> Entries:
        """Read a page of the log; the larger the events are, the fewer."""
        self.reads += 1
        found = await self._store.read_events(after, self._page)
        if found.entries:
            size = sum(map(_size_of, found.entries)) // len(found.entries)
            self._page = min(_PAGE, max(1, _PAGE_BYTES // size))
        return found

    def _append(self, found: Entries) -> bool:
        """Keep what was read; tell whether there is more."""
        stretch = _make_stretch(self._end, found)
        self._reached = max(stretch.upto, self._reached)
        pause = _PAUSE
        if stretch.entries:
            self._keep(stretch)
            self._tell()
            pause += self._watchers * _PAUSE_PER_WATCHER
        self._ready_at = asyncio.get_running_loop().time() + pause
        return found.head > self._reached

    def _keep(self, stretch: Stretch) -> None:
        _freshen(self._fresh, stretch)
        self._stretches[stretch.after] = stretch
        self._end = stretch.upto
        self._entries += len(stretch.entries)
        self._bytes += stretch.size
        while len(self._stretches) > 1 and (self._entries > _KEPT_ENTRIES or self._bytes > _KEPT_BYTES):
            oldest = self._stretches.pop(next(iter(self._stretches)))
            self._begin = oldest.upto
            self._entries -= len(oldest.entries)
            self._bytes -= oldest.size

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _find(self, after: int) -> Stretch | None:
        """Return the stretch after a position; of one that the position is in the midst of, the rest."""
        if after in self._stretches:
            return self._stretches[after]
        if self._begin is None or not self._begin <= after < self._end:
            return None
        return next(each for each in self._stretches.values() if after < each.upto).beyond(after)

    async def _catch_up_until(self, limit: float, after: int) -> Stretch | None:
        """Catch up; None: the store is away, or many who are behind go first, and our watcher must hear of us."""
        try:
            # However little time is left: who never had enough of it would never get on.
            async with asyncio.timeout_at(max(limit, asyncio.get_running_loop().time() + _RETRY)):
                return await self.catch_up(after)
        except HistoryPruned:
            raise
        except TimeoutError:
            return None
        except StoreError:
            await self.pause(_RETRY)
            return None

    def _forget(self) -> None:
        self._stretches.clear()
        self._fresh.clear()
        self._pages.clear()
        self._entries = self._bytes = 0
        self._begin = None


def _make_stretch(after: int, found: Entries) -> Stretch:
    """Make a stretch of a page of the log; it reaches to the last position on it."""
    upto = found.entries[-1].position if found.entries else max(found.head, after)
    return Stretch(after, upto, found.entries)


def _freshen(stretches: deque[Stretch], stretch: Stretch) -> None:
    """Make a stretch one of those that are fresh; the oldest of them no longer is."""
    if len(stretches) == stretches.maxlen:
        stretches[0].grow_old()
    stretch.is_fresh = True
    stretches.append(stretch)


def _size_of(entry: Entry) -> int:
    """Return about how many bytes an entry takes."""
    facets = entry.facets
    tokens = len(facets.kept) + len(facets.gained) + len(facets.lost) if facets else 0
    return len(entry.answer or b"") + _ENTRY_BYTES + tokens * _TOKEN_BYTES
