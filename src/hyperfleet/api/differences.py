"""Differences between two versions of a resource, or between two resources of a kind, as JSON or text."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.difference_text import render
from hyperfleet.api.difference_wire import Side, find_differences
from hyperfleet.api.past import answer_of
from hyperfleet.api.problems import Refused, from_query, from_refusal
from hyperfleet.api.requests import checked_target, parameters_of, target_of
from hyperfleet.api.responses import JSON, TEXT, answer_in, prefers_text
from hyperfleet.api.wire import path_of
from hyperfleet.documents.wording import quote
from hyperfleet.model.kind import Kind
from hyperfleet.ports import Scope
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.past import find_version, read_moment
from hyperfleet.services.results import Refusal, Target, not_found

_PARAMETERS: Final = ("from", "to", "against", "times")
_WORDS: Final = {"true": True, "false": False}


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    return [
        Route(f"{path_of(kind, context.kinds)}/{{id}}:diff", _Differences(context, kind).diff, methods=["GET"])
        for kind in context.kinds
    ]


class _Comparison(Struct, frozen=True):
    """What to compare: two moments of a resource, or it with another one."""

    before: datetime | None
    after: datetime | None  # None: now
    against: str | None
    with_times: bool


class _Differences(Struct, frozen=True):
    """The handler of one kind."""

    context: Context
    kind: Kind

    async def diff(self, request: Request) -> Response:
        """Answer the differences."""
        target, scope = target_of(request, self.kind), caller_of(request).scope
        asked = _read_comparison(Parameters(parameters_of(request)), self.context.clock.now())
        other = checked_target(Target(self.kind, asked.against)) if asked.against else target
        before = await self._read_side(target, scope, asked.before)
        after = await self._read_side(other, scope, asked.after)
        differences = await asyncio.to_thread(find_differences, before, after, with_times=asked.with_times)
        if prefers_text(request):
            return answer_in(request, render(differences, with_times=asked.with_times).encode(), TEXT)
        return answer_in(request, msgspec.json.encode(differences), JSON)

    async def _read_side(self, target: Target, scope: Scope, at: datetime | None) -> Side:
        """Return a resource as it was, or as it is."""
        store = self.context.store
        if at is None:
            answer = await store.read_answer(target.kind.name, target.id, scope, target.parent_id)
            if answer is not None:
                return Side(answer.body, answer.revision)
        entry = await find_version(store, target, scope, at or self.context.clock.now())
        if isinstance(entry, Refusal):
            raise Refused(from_refusal(entry))
        if at is None:  # it was removed meanwhile
            raise Refused(from_refusal(not_found(target)))
        return Side(answer_of(entry), entry.position, at)


def _read_comparison(given: Parameters, now: datetime) -> _Comparison:
    """Read what to compare: two times, or two resources."""
    given.refuse_unknown(_PARAMETERS)
    asked = _Comparison(
        read_moment(given, "from", now), read_moment(given, "to", now), given.one("against"), _read_times(given)
    )
    if asked.against is not None:
        for name in ("from", "to"):
            if given.all(name):
                message = f"{name} cannot be given with against, which compares two resources as they are now"
                given.refuse(name, "Exclusive", message)
    elif not given.all("from"):
        given.refuse("from", "MissingParameter", "give a time as from, or the id of another resource as against")
    elif asked.before and asked.after and asked.before > asked.after:
        given.refuse("from", "Reversed", "from is later than to")
    if given.errors:
        raise Refused(from_query(given.errors))
    return asked


def _read_times(given: Parameters) -> bool:
    text = given.one("times") or "false"
    if text not in _WORDS:
        given.refuse("times", "NotAllowed", f"times is true or false, not {quote(text)}")
    return _WORDS.get(text, False)
