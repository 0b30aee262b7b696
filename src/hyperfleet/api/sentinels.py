"""`:due` and `:look`, and the members of sentinels: what a sentinel in another process needs.

A caller that is bound to tenants sees and moves resources of these tenants only, and shares them only with members
that have the same tenants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Problem, Refused, from_body, from_query
from hyperfleet.api.requests import parameters_of, read_json
from hyperfleet.api.responses import answer_made, answer_written
from hyperfleet.api.sentinel_bodies import NAME_RULE, is_name, read_looks
from hyperfleet.api.sentinel_shapes import (
    DueCounts,
    DueList,
    DueResourceAnswer,
    DueRuleAnswer,
    LookedAnswer,
    MemberList,
    RuleAnswer,
    SentinelAnswer,
    SentinelList,
)
from hyperfleet.documents.durations import format_duration
from hyperfleet.documents.wording import quote
from hyperfleet.events.looking import DEFAULT_SENTINEL, MAX_MEMBERS, MEMBERSHIP, Looking, Sentinel, Share
from hyperfleet.model.kind import Kind
from hyperfleet.ports import LookCounts, Scope
from hyperfleet.sentinel.rules import Rule
from hyperfleet.sentinel.scan import DuePage, DueResource
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.search import DEFAULT_LIMIT, MAX_LIMIT

DUE_PARAMETERS: Final = ("limit", "sentinel", "member")


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    handlers = _Sentinels(context)
    found = [
        Route("/sentinels", handlers.list, methods=["GET"]),
        Route("/sentinels/{name}/members/{member}", handlers.join, methods=["PUT"]),
        Route("/sentinels/{name}/members/{member}", handlers.leave, methods=["DELETE"]),
    ]
    for kind in context.kinds:
        due = _DueResources(context, kind)
        found += [
            Route(f"/{kind.plural}:due", due.list, methods=["GET"]),
            Route(f"/{kind.plural}:look", due.look, methods=["POST"]),
        ]
    return found


class _DueResources(Struct, frozen=True):
    """The handlers of one kind."""

    context: Context
    kind: Kind

    async def list(self, request: Request) -> Response:
        """Answer what is due; to a member of a sentinel, its part."""
        given = Parameters(parameters_of(request))
        given.refuse_unknown(DUE_PARAMETERS)
        limit = given.number("limit", MAX_LIMIT) or DEFAULT_LIMIT
        names = [self._read_name(given, name) for name in ("sentinel", "member")]
        if given.errors:
            raise Refused(from_query(given.errors))
        scope = caller_of(request).scope
        share = None if names[1] is None else await self._share(Sentinel(names[0] or DEFAULT_SENTINEL, scope), names[1])
        page = await _looking(self.context).due(self.kind.name, scope, limit, share)
        return answer_made(request, _present_page(page))

    async def look(self, request: Request) -> Response:
        """Publish what a sentinel decided, and schedule the next looks."""
        name, verdicts, errors = read_looks(await read_json(request, self.context.limits))
        if errors:
            raise Refused(from_body(tuple(errors)))
        sentinel = Sentinel(name, caller_of(request).scope)
        done = await _looking(self.context).look(self.kind.name, sentinel, verdicts)
        return answer_written(request, 200, msgspec.json.encode(LookedAnswer(done.published, done.skipped)))

    async def _share(self, sentinel: Sentinel, member: str) -> Share:
        members = await _looking(self.context).members(sentinel)
        if member not in members:
            message = f"{member} is not a member of the sentinel {sentinel.name}, or its membership has expired"
            raise Refused(Problem("UnknownMember", message))
        return Share(member, members)

    def _read_name(self, given: Parameters, name: str) -> str | None:
        value = given.one(name)
        if value is not None and not is_name(value):
            given.refuse(name, "BadFormat", f"{name} must have {NAME_RULE}")
            return None
        return value


class _Sentinels(Struct, frozen=True):
    """The handlers of sentinels."""

    context: Context

    async def list(self, request: Request) -> Response:
        """Answer all sentinels, the rules, and what is due."""
        scope, looking = caller_of(request).scope, _looking(self.context)
        return answer_made(
            request,
            SentinelList(
                tuple([SentinelAnswer(each.name, each.members) for each in await looking.sentinels(scope)]),
                tuple(map(_present_rule, looking.rules.rules.rules)),
                tuple([await self._count(kind, scope) for kind in self.context.kinds]),
            ),
        )

    async def join(self, request: Request) -> Response:
        """Make a member, or renew its membership."""
        sentinel, member = self._target(request)
        members = await _looking(self.context).join(sentinel, member)
        if members is None:
            message = f"the sentinel {sentinel.name} has {MAX_MEMBERS} members, and can have no more"
            raise Refused(Problem("TooManyMembers", message))
        return _answer_members(request, sentinel, members)

    async def leave(self, request: Request) -> Response:
        """End a membership."""
        sentinel, member = self._target(request)
        if not await _looking(self.context).leave(sentinel, member):
            raise Refused(Problem("NotFound", f"{member} is not a member of the sentinel {sentinel.name}"))
        return _answer_members(request, sentinel, await _looking(self.context).members(sentinel))

    async def _count(self, kind: Kind, scope: Scope) -> DueCounts:
        return _present_counts(kind.name, await _looking(self.context).count(kind.name, scope))

    def _target(self, request: Request) -> tuple[Sentinel, str]:
        name, member = (str(request.path_params[each]) for each in ("name", "member"))
        for value in (name, member):
            if not is_name(value):
                raise Refused(Problem("InvalidRequest", f"{quote(value[:128])} is not a valid name: {NAME_RULE}"))
        return Sentinel(name, caller_of(request).scope), member


def _looking(context: Context) -> Looking:
    looking = context.events.looking
    if looking is None:
        raise Refused(Problem("BrokerUnavailable", "the server is starting"))
    return looking


def _answer_members(request: Request, sentinel: Sentinel, members: Iterable[str]) -> Response:
    body = MemberList(sentinel.name, tuple(members), int(MEMBERSHIP.total_seconds()))
    return answer_written(request, 200, msgspec.json.encode(body))


def _present_page(page: DuePage) -> DueList:
    return DueList(tuple(map(_present, page.items)), page.now, page.next or UNSET)


def _present(due: DueResource) -> DueResourceAnswer:
    rules = [
        DueRuleAnswer(each.rule, each.state, each.age.total_seconds(), each.attempts, each.when or UNSET)
        for each in due.triggers
    ]
    return DueResourceAnswer(Raw(due.answer), tuple(rules), due.receipt, due.due_since)


def _present_rule(rule: Rule) -> RuleAnswer:
    after = UNSET if rule.after is None else format_duration(rule.after)
    return RuleAnswer(rule.name, rule.state, after, dict(rule.where) or UNSET, rule.when or UNSET)


def _present_counts(kind: str, counts: LookCounts) -> DueCounts:
    lag = 0.0 if counts.oldest is None else max((counts.now - counts.oldest).total_seconds(), 0.0)
    return DueCounts(kind, counts.due, lag, counts.next or UNSET)
