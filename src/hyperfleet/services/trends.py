"""Counts the resources of each group at past times, starting from the present counts.

The API calls `read_moments` and `count_past` for summaries. Nothing is stored for this: the present counts belong to
one position of the log, and every event has the tokens of its resource before and after. The events since a past time
are undone, for many times in one pass.
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
from hyperfleet.ports import CurrentCounts, GroupCount, Query, Store, TokenMove, TokenQuery, TokenTerm
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.past import AT, read_moment, write_time
from hyperfleet.services.time_slices import TimeSlices
from hyperfleet.services.watch_filter import term_holds

TREND: Final = "trend"
STEP: Final = "step"
PARAMETERS: Final = (AT, TREND, STEP)
MAX_POINTS: Final = 200  # more than a chart shows
DEFAULT_POINTS: Final = 24  # steps of a trend: an hour each in a day

# Bounds the cost of one summary: all events since the earliest time are scanned, and those with relevant tokens read.
MAX_POSITIONS: Final = 200_000
_WINDOW: Final = 1_000  # positions read at once, in some milliseconds; requests run in between

Values = tuple[str | None, ...]


class Moments(Struct, frozen=True):
    """The times of a summary; without `at` it is the present."""

    at: datetime | None
    trend: tuple[datetime, ...] = ()  # those before, the oldest first


class PastCount(Struct, frozen=True):
    """The number of resources at a time, in total and by group, the largest first."""

    at: datetime
    total: int
    groups: tuple[GroupCount, ...]


class TooFar(Struct, frozen=True):
    """Too many events since that time; a summary can go back to `earliest`."""

    earliest: datetime


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_moments(given: Parameters, now: datetime) -> Moments:
    """Parse the times of a summary."""
    given.refuse_empty(PARAMETERS)
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
    """Count the resources of a query at each time, the oldest first; the last one is `moments.at`, or now.

    Raises `HistoryPruned` if events since then have been pruned.
    """
    counted = await store.count_now(query, prefixes)
    times = moments.trend if moments.at is None else (*moments.trend, moments.at)
    backward = _BackwardCount(query, prefixes, counted, times)
    if times:
        start = await store.position_before(times[0])
        if counted.position - start > MAX_POSITIONS:
            return TooFar(await _time_of(store, counted.position - MAX_POSITIONS))
        await _undo_since(store, backward, start, counted.position)
        await store.position_before(times[0])  # raises if something was pruned meanwhile
    counts = backward.counts()
    return counts if moments.at is not None else (*counts, PastCount(now, counted.total, counted.groups))


async def _undo_since(store: Store, backward: _BackwardCount, start: int, upto: int) -> None:
    slices = TimeSlices()
    for after in range(start, upto, _WINDOW):
        for move in await store.read_token_moves(backward.query_of(after, min(after + _WINDOW, upto))):
            backward.undo(move)
            await slices.yield_if_due()


async def _time_of(store: Store, position: int) -> datetime:
    """Return the time of an event and a margin: events are not exactly in order of time."""
    entries = (await store.read_events(position, 1)).entries
    return entries[0].time + timedelta(minutes=2)


class _BackwardCount:
    """Counts backwards from the present: an event later than a time does not count at that time."""

    def __init__(
        self, query: Query, prefixes: tuple[str, ...], counted: CurrentCounts, times: Sequence[datetime]
    ) -> None:
        self._query = query
        self._prefixes = prefixes
        self._counted = counted
        self._times = times
        # By the last time before an event: what to add for that time and all earlier ones.
        self._groups: list[Counter[Values]] = [Counter() for _ in times]
        self._totals = [0] * len(times)

    def query_of(self, after: int, upto: int) -> TokenQuery:
        """Return the query for the events of a range that can change the counts."""
        terms = (*(TokenTerm((prefix,), is_prefix=True) for prefix in self._prefixes), *self._query.terms)
        return TokenQuery(after, upto, self._times[0], self._query, terms)

    def undo(self, move: TokenMove) -> None:
        """Undo an event."""
        if move.facets is None:
            raise HistoryPruned(f"the tokens changed by event {move.position} were not kept")
        place = bisect_left(self._times, move.time) - 1  # at its own time it counts
        kept, gained, lost = move.facets.kept, move.facets.gained, move.facets.lost
        if move.type != "Removed":
            self._add(place, {*kept, *gained}, -1)
        if move.type != "Created":
            self._add(place, {*kept, *lost}, 1)

    def counts(self) -> tuple[PastCount, ...]:
        """Return the counts at each time, the oldest first."""
        groups = Counter({group.values: group.count for group in self._counted.groups})
        total = self._counted.total
        counts: list[PastCount] = []
        for place in reversed(range(len(self._times))):
            groups.update(self._groups[place])  # adds, also negative numbers
            total += self._totals[place]
            counts.append(PastCount(self._times[place], total, tuple(_in_order(groups))))
        return tuple(reversed(counts))

    def _add(self, place: int, tokens: Collection[str], number: int) -> None:
        if all(term_holds(term, tokens) for term in self._query.terms):
            self._totals[place] += number
            for values in product(*(_values(tokens, prefix) for prefix in self._prefixes)):
                self._groups[place][values] += number


def _values(tokens: Collection[str], prefix: str) -> list[str | None]:
    return [token.removeprefix(prefix) for token in tokens if token.startswith(prefix)] or [None]


def _in_order(groups: Counter[Values]) -> Iterator[GroupCount]:
    found = (GroupCount(values, count) for values, count in groups.items() if count)
    return iter(sorted(found, key=lambda group: group.rank))


def refuse_too_far(given: Parameters, moments: Moments, too_far: TooFar) -> None:
    """Refuse a time that is too long ago, with the earliest one."""
    name = TREND if moments.trend else AT
    message = (
        f"more than {MAX_POSITIONS} changes have happened since then; a summary goes back to "
        f"{write_time(too_far.earliest)} now"
    )
    given.refuse(name, "TooFar", message)
