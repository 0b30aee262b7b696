"""Transitions of all resources of the fleet, in pages or as a stream that can be resumed."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_query
from hyperfleet.api.requests import parameters_of
from hyperfleet.api.responses import answer_made
from hyperfleet.api.shapes import HistoryCause, MovedSubjectBody, ResourceTransitionsBody, TransitionPage
from hyperfleet.api.streams import EventStream, Frames, frame
from hyperfleet.api.watch import AFTER, LogFrames, follow_log, is_watch, read_start
from hyperfleet.api.wire import BASE, href_of
from hyperfleet.documents.durations import format_duration
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import LoggedChange, RecordedTransition
from hyperfleet.services.facets import phase_in
from hyperfleet.services.tail import LogSegment
from hyperfleet.services.transitions import (
    TransitionSearch,
    changes_in,
    encode_place,
    find_transitions,
    read_transition_query,
    tokens_after,
)

_PATH: Final = "/transitions"
_FOR_PAGES_ONLY: Final = ("limit", "continue", "order", "until")
_EVENT: Final = "transitions"
_PAGE: Final = 200  # changes per read before a watch follows the tail; a few milliseconds


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    return [Route(_PATH, _Transitions(context).read, methods=["GET"])]


class _Transitions(Struct, frozen=True):
    """The handler."""

    context: Context

    async def read(self, request: Request) -> Response:
        """Answer one page of transitions; with `watch=true`, follow them."""
        does_watch = is_watch(request, without=_FOR_PAGES_ONLY, has_positions=True)
        after = await read_start(request, self.context) if does_watch or AFTER in request.query_params else None
        scope, kinds, now = caller_of(request).scope, self.context.kinds, self.context.clock.now()
        search = read_transition_query(parameters_of(request), scope, kinds, after, now)
        if search.errors:
            raise Refused(from_query(search.errors))
        if does_watch:
            return await self._watch(search)
        return answer_made(request, await self._find(search))

    async def _find(self, search: TransitionSearch) -> TransitionPage:
        found = await find_transitions(self.context.store, search)
        return TransitionPage(
            BASE + _PATH,
            tuple([_present(change, self.context.kinds) for change in found.changes]),
            found.head,
            UNSET if found.is_last else encode_place(search, found),
        )

    async def _watch(self, search: TransitionSearch) -> EventStream:
        """Start after the given position, else with the transitions since a time, else now.

        A client that resumes sends both: the original time and the position that it has reached.
        """
        view, query = _View(self.context, search), search.query
        if query.since is None or query.after is not None:
            start = await self.context.store.position() if query.after is None else query.after
            return EventStream(self.context.tail, self._follow(view, start))
        first = replace(search, query=replace(query, is_descending=False, limit=_PAGE))
        await self.context.store.read_changes(
            replace(first.query, limit=1)
        )  # raises `HistoryPruned` before the stream starts
        return EventStream(self.context.tail, self._catch_up(view, first))

    async def _catch_up(self, view: _View, search: TransitionSearch) -> Frames:
        """Write the transitions since a time, then follow the log."""
        is_last = False
        while not is_last:
            found = await find_transitions(self.context.store, search)
            yield b"".join(map(view.write, found.changes))
            search = replace(search, query=replace(search.query, after=found.position))
            is_last = found.is_last
        async for frames in self._follow(view, found.position):
            yield frames

    async def _follow(self, view: _View, start: int) -> Frames:
        yield frame("synced", b"{}", start)
        async for frames in follow_log(self.context.tail, view, start):
            yield frames


class _View:
    """What a watch of transitions sends of the log."""

    def __init__(self, context: Context, search: TransitionSearch) -> None:
        self._context = context
        # The start position replaces these two. Without them, equal searches share what they write.
        self._search = replace(search, query=replace(search.query, after=None, since=None), digest="")

    async def follow(self, segment: LogSegment) -> LogFrames:
        """Write the transitions of a segment of the log."""
        changes = await changes_in(self._context.store, segment)
        return segment.share((_EVENT, self._search), lambda: self._write_all(changes))

    def is_over(self, segment: LogSegment) -> bool:
        """Never end."""
        return False

    def write(self, change: LoggedChange) -> bytes:
        """Write one change."""
        data = msgspec.json.encode(_present(change, self._context.kinds))
        return frame(_EVENT, data, change.position)

    def _write_all(self, changes: tuple[LoggedChange, ...]) -> LogFrames:
        chosen = [each for change in changes if (each := self._search.select(change))]
        if not chosen:
            return LogFrames()
        return LogFrames(b"".join(map(self.write, chosen)), chosen[-1].position)


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _present(change: LoggedChange, kinds: Kinds) -> ResourceTransitionsBody:
    kind = kinds.get(change.kind)
    if kind is None:
        raise ValueError(f"{change.resource_id} is a {change.kind}, which is not a known kind")
    first = change.transitions[0]
    return ResourceTransitionsBody(
        position=change.position,
        time=change.time,
        event=change.type,
        kind=change.kind,
        id=change.resource_id,
        name=change.name or UNSET,
        href=href_of(kind, change.resource_id, change.parent_id, kinds),
        tenant=change.tenant or UNSET,
        generation=change.generation,
        phase=None if change.type == "Removed" else phase_in(tokens_after(change)),
        cause=HistoryCause(first.cause.kind, first.cause.ref or UNSET),
        policy=first.policy,
        transitions=tuple([_present_move(each) for each in change.transitions]),
    )


def _present_move(recorded: RecordedTransition) -> MovedSubjectBody:
    moved = recorded.transition
    lasted = format_duration(moved.time - recorded.since) if recorded.since else UNSET
    return MovedSubjectBody(moved.subject, moved.before, moved.after, moved.reason, moved.message, lasted)
