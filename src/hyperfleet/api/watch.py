"""Watches of a list or of one resource: its state, then everything that happens to it, as server-sent events.

`lists` and `resources` call this for `watch=true`. It sends `added` for each resource, `synced` with the position of
that state, then `added`, `modified` and `deleted` in the order of the log, each with its position as `id`. A client
that resumes with the last id it received gets what came after it, without a list.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace
from starlette.requests import Request

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_code, from_header, from_query, from_refusal
from hyperfleet.api.streams import HEARTBEAT, QUIET, EventStream, Frames, frame
from hyperfleet.api.wire import href_of
from hyperfleet.documents.wording import quote
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.ports import LoggedEvent, Query, Scope, StoredAnswer
from hyperfleet.services.field_masks import FieldMask, mask_answer
from hyperfleet.services.results import Target, not_found
from hyperfleet.services.tail import LogSegment, LogTail
from hyperfleet.services.watch_filter import WatchChange, WatchFilter

WATCH: Final = "watch"
AFTER: Final = "after"
PARAMETERS: Final = (WATCH, AFTER)

_RESUME: Final = "Last-Event-ID"
_POSITION: Final = re.compile(r"[0-9]{1,18}")
_POSITION_RULE: Final = "the id of an event of a watch: a whole number"
_PAGE: Final = 200  # resources per read of the initial list; a few milliseconds …
_PAGE_BYTES: Final = 128 * 1024  # … or fewer, if they are large: a page waits in memory until the watch takes it

_END_OF_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)

Page = tuple[StoredAnswer, ...]


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_watch(request: Request, without: Collection[str] = (), *, has_positions: bool = False) -> bool:
    """Return whether a request is for a watch; refuse parameters that make no sense for one.

    With `has_positions`, `after` is also allowed without a watch.
    """
    values = request.query_params.getlist(WATCH)
    if any(value not in ("true", "false") for value in values) or len(set(values)) > 1:
        raise Refused(from_query([BodyProblem(WATCH, "BadFormat", "watch is true or false")]))
    if "true" in values:
        odd = [name for name in without if name in request.query_params]
        message = "{} cannot be given with watch=true: a watch sends everything, in the order in which it happens"
    else:
        odd = [AFTER] if AFTER in request.query_params and not has_positions else []
        message = "{} is where a watch resumes; give it with watch=true"
    if odd:
        raise Refused(from_query([BodyProblem(name, "Exclusive", message.format(name)) for name in odd]))
    return "true" in values


async def read_start(request: Request, context: Context) -> int | None:
    """Return the position at which a watch resumes; None: it starts with a list. Raise `HistoryPruned` if pruned.

    The header takes precedence: a browser that reconnects sends it with the original URL.
    """
    headers, values = [*filter(None, request.headers.getlist(_RESUME))], request.query_params.getlist(AFTER)
    given = headers or values
    if not given:
        return None
    fault = ""
    if len(given) > 1:
        fault = f"it is given {len(given)} times; a watch resumes after one position"
    elif not _POSITION.fullmatch(given[0]):
        fault = f"{quote(given[0])} is not {_POSITION_RULE}"
    elif int(given[0]) > (head := (await context.store.read_events(int(given[0]), 1)).head):
        fault = f"position {given[0]} does not exist yet; the last event has {head}"
    if fault:
        problem = from_header(_RESUME, fault) if headers else from_query([BodyProblem(AFTER, "BadFormat", fault)])
        raise Refused(problem)
    return int(given[0])


# ── frames ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class DepartedResource(Struct, frozen=True):
    """The data of `deleted`: the resource was removed, or no longer matches the filters."""

    id: str
    type: str
    href: str
    reason: str
    object: Raw | UnsetType = UNSET


class LogFrames(Struct, frozen=True):
    """The frames of a part of the log for one view, and the position of the last frame; 0: no frames."""

    frames: bytes = b""
    last: int = 0


class LogView(Protocol):
    """What a watch sends of the log."""

    async def follow(self, segment: LogSegment) -> LogFrames:
        """Write the frames of a part of the log."""
        ...

    def is_over(self, segment: LogSegment) -> bool:
        """Return whether nothing can follow."""
        ...


class ResourceView(Struct, frozen=True):
    """What a watch of resources sends of the log. Equal views send the same, so they share the frames."""

    interest: WatchFilter
    kind: Kind
    kinds: Kinds
    mask: FieldMask

    def list(self, answers: Collection[StoredAnswer]) -> bytes:
        """Write the initial list."""
        return b"".join([frame("added", mask_answer(answer.body, self.mask)) for answer in answers])

    def catch_up(self, segment: LogSegment, listed: Mapping[str, int]) -> bytes:
        """Write what happened while the list was read, except what the list (id → revision) already includes."""
        return b"".join(
            [
                frame(move, self._render(entry, move))
                for entry in segment.entries
                if entry.position > listed.get(entry.resource_id, 0) and (move := self.interest.classify(entry))
            ]
        )

    async def follow(self, segment: LogSegment) -> LogFrames:
        """Write the frames of a part of the log, each with its position."""
        return segment.share(self, lambda: self._follow(segment))

    def is_over(self, segment: LogSegment) -> bool:
        """Return whether nothing can follow: the only watched resource was removed."""
        return self.interest.resource_id is not None and any(
            entry.type == "Removed" and self.interest.concerns(entry) for entry in segment.entries
        )

    def _follow(self, segment: LogSegment) -> LogFrames:
        moves = [(entry, move) for entry in segment.entries if (move := self.interest.classify(entry))]
        if not moves:
            return LogFrames()
        frames = [frame(move, self._render(entry, move), entry.position) for entry, move in moves]
        return LogFrames(b"".join(frames), moves[-1][0].position)

    def _render(self, entry: LoggedEvent, move: WatchChange) -> bytes:
        answer = mask_answer(entry.answer, self.mask) if entry.answer is not None else None
        if move != "deleted" and answer is not None:
            return answer
        departed = DepartedResource(
            entry.resource_id,
            self.kind.name,
            href_of(self.kind, entry.resource_id, entry.parent_id, self.kinds),
            "Removed" if answer is None else "NoLongerMatches",
            UNSET if answer is None else Raw(answer),
        )
        return msgspec.json.encode(departed)


# ── watches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def watch_list(request: Request, context: Context, kind: Kind, query: Query, mask: FieldMask) -> EventStream:
    """Answer with all resources of a query, then with changes."""
    view = ResourceView(WatchFilter.of(query), kind, context.kinds, mask)
    start = await read_start(request, context)
    if start is not None:
        return EventStream(context.tail, follow_log(context.tail, view, start))
    start = await context.store.position()
    # Read before the stream starts, so that an error gets a proper response.
    query = replace(query, limit=_PAGE, max_bytes=_PAGE_BYTES)
    first = [await context.store.find(query)]
    return EventStream(context.tail, _list_and_follow(context, view, start, _pages(context, query, first)))


async def watch_one(request: Request, context: Context, target: Target, scope: Scope, mask: FieldMask) -> EventStream:
    """Answer with one resource, then with changes until its removal."""
    interest = WatchFilter(target.kind.name, scope, target.parent_id, target.id)
    view = ResourceView(interest, target.kind, context.kinds, mask)
    start = await read_start(request, context)
    if start is not None:
        await _check_unfinished(context, target, scope, start)
        return EventStream(context.tail, follow_log(context.tail, view, start))
    start = await context.store.position()
    answer = await context.store.read_answer(target.kind.name, target.id, scope, target.parent_id)
    if answer is None:
        raise Refused(from_refusal(not_found(target)))
    return EventStream(context.tail, _list_and_follow(context, view, start, _only((answer,))))


async def _check_unfinished(context: Context, target: Target, scope: Scope, start: int) -> None:
    """Refuse a resource that does not exist and was not removed after `start`: the watch would never send anything."""
    if await context.store.read_answer(target.kind.name, target.id, scope, target.parent_id) is None:
        last = await context.store.read_version(target.kind.name, target.id, scope, _END_OF_TIME, target.parent_id)
        if last is None or last.position <= start:
            raise Refused(from_refusal(not_found(target)))


async def _only(page: Page) -> AsyncIterator[Page]:
    yield page


async def _pages(context: Context, query: Query, pages: list[Page]) -> AsyncIterator[Page]:
    """Yield all pages, each without keeping it: it may be large, and the watch may take long to read it."""
    while pages and (last := pages[0][-1:]):
        is_full = len(pages[0]) == _PAGE or sum(len(answer.body) for answer in pages[0]) >= _PAGE_BYTES
        after = (last[0].key, last[0].id)
        del last
        yield pages.pop()
        if is_full:
            pages.append(await context.store.find(replace(query, after=after)))


async def _list_and_follow(context: Context, view: ResourceView, start: int, pages: AsyncIterator[Page]) -> Frames:
    """Write a list as of one position, then follow the log from there.

    Nothing before that position has an id, because a watch cannot resume in the middle of a list.
    """
    listing = _Listing(context, view, start)
    async for frames in listing.write(pages):
        yield frames
    if not listing.is_over:
        async for frames in follow_log(context.tail, view, listing.position):
            yield frames


class _Listing:
    """The initial list of a watch. An object of its own, to free its memory afterwards: a watch may last for months."""

    def __init__(self, context: Context, view: ResourceView, start: int) -> None:
        self._context = context
        self._view = view
        self._start = start
        self.position = start  # the state of this position, once the list is complete
        self.is_over = False  # the watched resource was removed meanwhile

    async def write(self, pages: AsyncIterator[Page]) -> Frames:
        """Write all pages and what happened while they were read, so that the result is the state of one position."""
        listed: dict[str, int] = {}
        async for page in pages:
            listed |= {answer.id: answer.revision for answer in page if answer.revision > self._start}
            frames = [self._view.list(page)]
            del page
            yield frames.pop()
        upto = await self._context.store.position()
        while self.position < upto and not self.is_over:
            segment = await self._context.tail.catch_up(self.position)
            yield self._view.catch_up(segment, listed)
            self.position, self.is_over = segment.upto, self._view.is_over(segment)
        if not self.is_over:
            yield frame("synced", b"{}", self.position)


async def follow_log(tail: LogTail, view: LogView, start: int) -> Frames:
    """Write everything after a position; during silence, bookmarks of how far the log was read."""
    time = asyncio.get_running_loop().time
    cursor = sent = start
    last_sent = time()
    while not tail.is_closing:
        try:
            segment = await tail.read(cursor, last_sent + QUIET - time())
            written = await view.follow(segment) if segment else LogFrames()
        except HistoryPruned:
            yield frame("gone", msgspec.json.encode(from_code("Forgotten").document()))
            return
        cursor = segment.upto if segment else cursor
        frames, sent = written.frames, max(written.last, sent)
        if not frames and time() >= last_sent + QUIET:
            position = tail.known_until(cursor)
            frames, sent = (_bookmark(position), position) if position > sent else (HEARTBEAT, sent)
        if frames:
            yield frames
            last_sent = time()
        if segment and view.is_over(segment):
            return
    yield _bookmark(tail.known_until(cursor))


def _bookmark(position: int) -> bytes:
    return frame("bookmark", b"{}", position)
