"""How many resources of each sort there were at moments of the past, counted back from the present.

The API calls `read_moments` and `count_past` for summaries. Nothing is stored for this: the counts of now belong to one
position of the log, and every later event says which tokens its resource had before and after. What happened since a
moment is undone, for many moments in one pass.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Final

from msgspec import Struct

from hyperfleet.documents.durations import format_duration, parse_duration
from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import Counted, Group, Query, Store, Term, TokenMove, TokenQuery
from hyperfleet.services.pacing import Pace
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.past import AT, read_moment, write_time
from hyperfleet.services.watching import holds

TREND: Final = "trend"
STEP: Final = "step"
PARAMETERS: Final = (AT, TREND, STEP)
MAX_POINTS: Final = 200
DEFAULT_POINTS: Final = 24  # from one point to the next: a point for every hour of a day

# What one summary may cost: the events between the moment and now are all passed, and those that matter are read.
MAX_POSITIONS: Final = 200_000
_WINDOW: Final = 1_000  # positions read at once; between two of them others have their turn

Values = tuple[str | None, ...]


class Moments(Struct, frozen=True):
    """Which moments a summary is asked for; without `at` it is of now."""

    at: datetime | None
    trend: tuple[datetime, ...] = ()  # those before, the oldest first


class PastCount(Struct, frozen=True):
    """How many resources there were at a moment, in all and by groups, the largest first."""

    at: datetime
    total: int
    groups: tuple[Group, ...]


class TooFar(Struct, frozen=True):
    """Too much has happened since: a summary can be asked for from `earliest` on."""

    earliest: datetime


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_moments(given: Parameters, now: datetime) -> Moments:
    """Read of which moments a summary is asked for."""
    at = read_moment(given, AT, now)
    trend, step = _read_duration(given, TREND), _read_duration(given, STEP)
    if trend is None:
        if given.all(STEP):
            given.refuse(STEP, "Exclusive", f"{STEP} is the time between two points of a trend; give it with {TREND}")
        return Moments(at)
    step = step or trend / DEFAULT_POINTS
    if trend / step > MAX_POINTS - 1:
        shortest = format_duration(trend / (MAX_POINTS - 1))
        given.refuse(STEP, "TooMany", f"a trend has at most {MAX_POINTS} points; {STEP} must be at least {shortest}")
        return Moments(at)
    end = now if at is None else at
    try:
        return Moments(at, tuple(end - step * number for number in range(trend // step, 0, -1)))
    except OverflowError:
        given.refuse(TREND, "OutOfRange", f"{format_duration(trend)} before {write_time(end)} there was no time")
        return Moments(at)


def _read_duration(given: Parameters, name: str) -> timedelta | None:
    text = given.one(name)
    if text is None:
        return None
    try:
        duration = parse_duration(text)
    except ValueError as error:
        given.refuse(name, "BadFormat", str(error))
        return None
    if not duration:
        given.refuse(name, "OutOfRange", f"{name} must be longer than 0s")
        return None
    return duration


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def count_past(
    store: Store, query: Query, prefixes: tuple[str, ...], moments: Moments, now: datetime
) -> tuple[PastCount, ...] | TooFar:
    """Count the resources of a query at moments, the oldest first; the last one is `moments.at`, or now.

    Raises `HistoryPruned` if what happened since is no longer all kept.
    """
    counted = await store.count_now(query, prefixes)
    times = moments.trend if moments.at is None else (*moments.trend, moments.at)
    undoing = _Undoing(query, prefixes, counted, times)
    if times:
        start = await store.position_before(times[0])
        if counted.position - start > MAX_POSITIONS:
            return TooFar(await _time_of(store, counted.position - MAX_POSITIONS))
        await _undo_since(store, undoing, start, counted.position)
        await store.position_before(times[0])  # nothing of it was pruned while it was read
    counts = undoing.counts()
    return counts if moments.at is not None else (*counts, PastCount(now, counted.total, counted.groups))


async def _undo_since(store: Store, undoing: _Undoing, start: int, upto: int) -> None:
    pace = Pace()
    for after in range(start, upto, _WINDOW):
        for move in await store.read_token_moves(undoing.query_of(after, min(after + _WINDOW, upto))):
            undoing.undo(move)
            await pace.keep()


async def _time_of(store: Store, position: int) -> datetime:
    """Return the time of an event, with a minute to spare: they are not quite in the order of time."""
    entries = (await store.read_events(position, 1)).entries
    return entries[0].time + timedelta(minutes=2)


class _Undoing:
    """Counts on their way back from the present. An event later than a moment did not count at that moment yet."""

    def __init__(self, query: Query, prefixes: tuple[str, ...], counted: Counted, times: Sequence[datetime]) -> None:
        self._query = query
        self._prefixes = prefixes
        self._counted = counted
        self._times = times
        # By the last moment before an event: what is to be added for that moment and all that come before it.
        self._groups: list[Counter[Values]] = [Counter() for _ in times]
        self._totals = [0] * len(times)

    def query_of(self, after: int, upto: int) -> TokenQuery:
        """Ask for the events of a range that can change the counts."""
        terms = (*(Term((prefix,), is_prefix=True) for prefix in self._prefixes), *self._query.terms)
        return TokenQuery(after, upto, self._times[0], self._query, terms)

    def undo(self, move: TokenMove) -> None:
        """Take back what an event did."""
        if move.facets is None:
            raise HistoryPruned(f"what event {move.position} changed of filters was not kept")
        place = bisect_left(self._times, move.time) - 1  # at its own time it has happened
        kept, gained, lost = move.facets.kept, move.facets.gained, move.facets.lost
        if move.type != "Removed":
            self._add(place, {*kept, *gained}, -1)
        if move.type != "Created":
            self._add(place, {*kept, *lost}, 1)

    def counts(self) -> tuple[PastCount, ...]:
        """Return what there was at each moment, the oldest first."""
        groups = Counter({group.values: group.count for group in self._counted.groups})
        total = self._counted.total
        counts: list[PastCount] = []
        for place in reversed(range(len(self._times))):
            groups.update(self._groups[place])  # adds, also what is negative
            total += self._totals[place]
            counts.append(PastCount(self._times[place], total, tuple(_in_order(groups))))
        return tuple(reversed(counts))

    def _add(self, place: int, tokens: Collection[str], number: int) -> None:
        if all(holds(term, tokens) for term in self._query.terms):
            self._totals[place] += number
            for values in product(*(_values(tokens, prefix) for prefix in self._prefixes)):
                self._groups[place][values] += number


def _values(tokens: Collection[str], prefix: str) -> list[str | None]:
    return [token.removeprefix(prefix) for token in tokens if token.startswith(prefix)] or [None]


def _in_order(groups: Counter[Values]) -> Iterator[Group]:
    found = (Group(values, count) for values, count in groups.items() if count)
    return iter(sorted(found, key=lambda group: group.rank))


def refuse_too_far(given: Parameters, moments: Moments, too_far: TooFar) -> None:
    """Note that a moment is too long ago, and how far one can go."""
    name = TREND if moments.trend else AT
    message = (
        f"more than {MAX_POSITIONS} changes have happened since then; a summary goes back to "
        f"{write_time(too_far.earliest)} now"
    )
    given.refuse(name, "TooFar", message)
