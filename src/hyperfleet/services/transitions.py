"""Transitions of the whole fleet: parses query parameters into a search of the log, and runs it.

The API calls `read_transition_query`, then `find_transitions` for a page, or `changes_in` for a watch. Filters of lists
apply to a resource right after a change, or before it if the change removed the resource: the log keeps those tokens
with each event, so the result does not depend on the time of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.condition import STATUSES
from hyperfleet.model.kind import Kinds
from hyperfleet.model.phase import PHASES
from hyperfleet.ports import (
    CauseKind,
    ChangeQuery,
    LoggedChange,
    RecordedTransition,
    Scope,
    Store,
    TokenTerm,
    TransitionFilter,
)
from hyperfleet.services.continuation import PageToken, digest_query, encode_token, read_token
from hyperfleet.services.filters import FILTERS, read_terms
from hyperfleet.services.history_query import read_subjects
from hyperfleet.services.parameters import Parameters, split_list
from hyperfleet.services.search import DEFAULT_LIMIT, MAX_LIMIT
from hyperfleet.services.tail import LogSegment
from hyperfleet.services.watch_filter import term_holds

PARAMETERS: Final = (
    "kind",
    "subject",
    "movedFrom",
    "movedTo",
    "cause",
    *FILTERS,
    "since",
    "until",
    "order",
    "limit",
    "continue",
)
CAUSES: Final = get_args(CauseKind)
VALUES: Final = (*PHASES, *STATUSES)

# Positions that one read of the store searches, and the reads of one request: then the page ends, full or not. A
# request must not search a whole log for something rare, and one read must not occupy a connection for long.
_SPAN: Final = 5_000
_MAX_SPANS: Final = 10

_Position = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Time = Annotated[datetime, Meta(tz=True)]


class _Token(PageToken, frozen=True):
    """The content of the token of a search."""

    since: _Time | None
    until: _Time | None
    position: _Position  # where the last page ended
    head: _Position  # that the first page had reached


class TransitionSearch(Struct, frozen=True):
    """Which changes, and which of their transitions; or the errors of the parameters."""

    query: ChangeQuery
    terms: tuple[TokenTerm, ...]
    digest: str
    head: int | None = None  # that the first page had reached; None: this is the first page
    errors: tuple[BodyProblem, ...] = ()

    def select(self, change: LoggedChange) -> LoggedChange | None:
        """Return a change with the matching transitions; None: the change does not match."""
        query = self.query
        moved = _moves_of(change, query.moves)
        if not moved or not query.scope.admits(change.tenant) or (query.kinds and change.kind not in query.kinds):
            return None
        if query.since is not None and change.time < query.since:
            return None
        return replace(change, transitions=moved) if self._hold(change) else None

    def _hold(self, change: LoggedChange) -> bool:
        if not self.terms:
            return True
        if change.facets is None:
            raise HistoryPruned(f"the tokens changed by event {change.position} were not kept")
        tokens = tokens_after(change)
        return all(term_holds(term, tokens) for term in self.terms)


class TransitionsFound(Struct, frozen=True):
    """One page: the changes, the head of the log at the first page, and where the next page starts."""

    changes: tuple[LoggedChange, ...]
    head: int
    position: int  # where the next page begins
    is_last: bool


def tokens_after(change: LoggedChange) -> frozenset[str]:
    """Return the tokens of a resource right after a change; of one that was removed, those before."""
    facets = change.facets
    if facets is None:
        return frozenset()
    return frozenset((*facets.kept, *(facets.lost if change.type == "Removed" else facets.gained)))


def _moves_of(change: LoggedChange, moves: TransitionFilter | None) -> tuple[RecordedTransition, ...]:
    return tuple(each for each in change.transitions if moves is None or moves.admits(each))


# ── searching ────────────────────────────────────────────────────────────────────────────────────────────────────


async def find_transitions(store: Store, search: TransitionSearch) -> TransitionsFound:
    """Find one page. It ends early when many positions have been searched: rare transitions may be far apart."""
    query, limit = replace(search.query, span=_SPAN), search.query.limit
    found: list[LoggedChange] = []
    head, place, is_last = search.head, 0, False
    for _ in range(_MAX_SPANS):
        page = await store.read_changes(query)
        found += [chosen for change in page.changes if (chosen := search.select(change))]
        is_last, place = page.is_last, page.after if query.is_descending else page.upto
        if head is None or not query.is_descending:
            head = page.upto
        if len(found) > limit:
            last = found[limit - 1].position
            is_last, place = False, last - 1 if query.is_descending else last
        if is_last or len(found) >= limit:
            break
        query = replace(query, upto=place) if query.is_descending else replace(query, after=place)
    return TransitionsFound(tuple(found[:limit]), head or 0 if query.is_descending else place, place, is_last)


async def changes_in(store: Store, segment: LogSegment) -> tuple[LoggedChange, ...]:
    """Return the changes of a segment that have transitions; all watches share one read of the store."""
    if not segment.entries:
        return ()
    task = segment.share(changes_in, lambda: asyncio.create_task(_read_segment(store, segment)))
    try:
        return await asyncio.shield(task)  # a watch that ends must not cancel it for the others
    except Exception:
        segment.results.pop(changes_in, None)  # the next watch tries again
        raise


async def _read_segment(store: Store, segment: LogSegment) -> tuple[LoggedChange, ...]:
    span = segment.upto - segment.after
    query = ChangeQuery(after=segment.after, upto=segment.upto, moves=TransitionFilter(), limit=span + 1)
    return (await store.read_changes(query)).changes


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_transition_query(
    parameters: Mapping[str, Sequence[str]], scope: Scope, kinds: Kinds, after: int | None, now: datetime
) -> TransitionSearch:
    """Parse the parameters; `after` and those of a watch are parsed elsewhere."""
    given = Parameters(parameters)
    given.refuse_unknown((*PARAMETERS, "after", "watch"))
    moves = TransitionFilter(
        read_subjects(given),
        _read_choice(given, "movedFrom", VALUES),
        _read_choice(given, "movedTo", VALUES),
        _read_choice(given, "cause", CAUSES),
    )
    query = ChangeQuery(
        after=after,
        since=given.instant("since", now),
        until=given.instant("until", now),
        scope=scope,
        kinds=_read_choice(given, "kind", [kind.name for kind in kinds]),
        moves=moves,
        is_descending=_read_order(given, is_descending=after is None),
        limit=given.number("limit", MAX_LIMIT) or DEFAULT_LIMIT,
    )
    terms = read_terms(given)
    search = TransitionSearch(query, terms, _digest(query, terms, given))
    search = _resume(given, search)
    return replace(search, errors=tuple(given.errors))


def _read_choice(given: Parameters, name: str, choices: Collection[str]) -> frozenset[str]:
    words = [word for text in given.all(name) for word in split_list(text)]
    for at, word in words:
        if word not in choices:
            guess = suggest(word, tuple(choices))
            message = f"found {quote(word)}, expected one of {', '.join(choices)}{guess}"
            given.refuse(name, "NotAllowed", message, at)
    return frozenset(word for _, word in words)


def _read_order(given: Parameters, *, is_descending: bool) -> bool:
    """Return whether the newest come first: as in history, unless `after` is given."""
    chosen = _read_choice(given, "order", ("asc", "desc"))
    if len(chosen) > 1:
        given.refuse("order", "Repeated", "order is asc or desc, not both")
    return is_descending if not chosen else "desc" in chosen


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_place(search: TransitionSearch, found: TransitionsFound) -> str:
    """Return the token for the next page."""
    query = search.query
    return encode_token(_Token(1, search.digest, query.since, query.until, found.position, found.head))


def _resume(given: Parameters, search: TransitionSearch) -> TransitionSearch:
    """Continue at the token's position, if one was given and belongs to this query."""
    token = read_token(given, _decoder, search.digest)
    if token is None:
        return search
    query = replace(search.query, since=token.since, until=token.until)
    place: dict[str, Any] = {"upto" if query.is_descending else "after": token.position}
    return replace(search, query=replace(query, **place), head=token.head)


def _digest(query: ChangeQuery, terms: Sequence[TokenTerm], given: Parameters) -> str:
    """Return a digest of the query, with times as they were written: durations move with the clock."""
    moves = query.moves or TransitionFilter()
    sets = (query.kinds, moves.subjects, moves.before, moves.after, moves.causes)
    times = (given.all("since"), given.all("until"))
    asked = (list(map(sorted, sets)), terms, times, query.is_descending, query.after)
    return digest_query(asked)


_decoder: Final = msgspec.json.Decoder(_Token)
