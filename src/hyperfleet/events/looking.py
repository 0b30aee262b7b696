"""The server's part of the sentinel: what is due, for which member; publishing what a sentinel decided; members.

The API calls this for sentinels elsewhere, and the sentinel of the server itself calls it directly. An event is
published before the next look is scheduled, so a crash in between repeats it. Members of a sentinel share what is due
by a hash; what a dead member leaves stays due, and belongs to the others as soon as its lease has expired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation import PolicySet
from hyperfleet.events.making import Origin, Sender, look_message
from hyperfleet.events.trace_context import with_traceparent
from hyperfleet.messaging import Broker, Message
from hyperfleet.ports import Lease, LookCounts, LookMove, LookPlan, ScheduledLook, Scope, Store
from hyperfleet.sentinel.decision import Trigger
from hyperfleet.sentinel.membership import rendezvous
from hyperfleet.sentinel.rules import Rule
from hyperfleet.sentinel.scan import DuePage, DueResource, LookResult, LookVerdict
from hyperfleet.sentinel.schedule import DueRule, LookedAt, after_look, due_rules, next_look
from hyperfleet.services.facets import facets_of
from hyperfleet.services.ids import new_uuid7
from hyperfleet.services.look_planning import SPREAD, LookRules
from hyperfleet.services.policies import PolicyRegistry

DEFAULT_SENTINEL: Final = "default"
MEMBERSHIP: Final = timedelta(seconds=15)  # after the last renewal a member's part goes to the others
MAX_MEMBERS: Final = 100  # of one sentinel
MAX_COUNTED: Final = 10_000  # resources that are due; more are not counted

_PREFIX: Final = "sentinel/"
_PAGE: Final = 200  # resources per read
_PAGES: Final = 20  # per request: the rest is due a moment later
_MAX_BYTES: Final = 4 * 1024 * 1024  # of the answers of one request, as for lists
_SPREAD_BATCH: Final = 1_000  # resources per transaction, so that other writes get their turn


class Sentinel(Struct, frozen=True):
    """A sentinel as a caller sees it. Only members with the same scope share what is due."""

    name: str
    scope: Scope

    def lease_of(self, member: str) -> str:
        """Return the name of the lease of a member."""
        return f"{self.prefix}{member}"

    @property
    def prefix(self) -> str:
        """Return how the names of the leases of all members begin."""
        return f"{_PREFIX}{self.name}/{_scope_key(self.scope)}/"


class SentinelState(Struct, frozen=True):
    """A sentinel and its members."""

    name: str
    members: tuple[str, ...]


class Looking:
    """What the server does for sentinels."""

    def __init__(
        self,
        store: Store,
        policies: PolicyRegistry,
        broker: Broker,
        make_origin: Callable[[str], Origin],
        rules: LookRules,
    ) -> None:
        """Use an open store; `make_origin` makes the origin of events from the id of the store."""
        self._store = store
        self._policies = policies
        self._broker = broker
        self._make_origin = make_origin
        self._origin: Origin | None = None
        self.rules = rules
        self.on_published: Callable[[str, int], None] | None = None  # called with a rule and a number of events

    # ── members ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def join(self, sentinel: Sentinel, member: str) -> tuple[str, ...] | None:
        """Make a member, or renew its membership; return all members. None: there are too many."""
        members = await self.members(sentinel)
        if member not in members and len(members) >= MAX_MEMBERS:
            return None
        await self._store.take_lease(sentinel.lease_of(member), member, MEMBERSHIP)
        return await self.members(sentinel)

    async def leave(self, sentinel: Sentinel, member: str) -> bool:
        """End a membership at once; False: there was none."""
        leases = await self._store.leases(sentinel.lease_of(member))
        own = [lease for lease in leases if lease.name == sentinel.lease_of(member)]
        for lease in own:
            await self._store.release_lease(lease)
        return bool(own)

    @property
    def policies(self) -> PolicySet:
        """Return the policies in force."""
        return self._policies.rules.policies

    async def members(self, sentinel: Sentinel) -> tuple[str, ...]:
        """Return the members that are alive, by name."""
        return tuple(lease.holder for lease in await self._store.leases(sentinel.prefix))

    async def sentinels(self, scope: Scope) -> tuple[SentinelState, ...]:
        """Return all sentinels with members that have the same scope; without tenants, all of them."""
        found: dict[str, list[str]] = {}
        for lease in await self._store.leases(_PREFIX):
            name, key = _name_and_scope(lease)
            if scope.tenants is None or key == _scope_key(scope):
                found.setdefault(name, []).append(lease.holder)
        return tuple(SentinelState(name, tuple(members)) for name, members in sorted(found.items()))

    # ── what is due ──────────────────────────────────────────────────────────────────────────────────────────────

    async def due(self, kind: str, scope: Scope, limit: int, share: Share | None = None) -> DuePage:
        """Return what is due, the longest first; with a share, only the resources that belong to its member."""
        own, now, is_whole = await self._read_due(kind, scope, limit, share)
        found = [(each, due_rules(self._looked_at(each), self.rules.rules, now)) for each in own]
        tokens = await self._read_tokens(found, scope)
        items = [self._present(each, due, tokens.get(each.resource.id, ()), now) for each, due in found]
        following = (await self._store.looks.count(kind, scope, 1)).next if is_whole else now
        return DuePage(tuple(items), now, following)

    async def count(self, kind: str, scope: Scope) -> LookCounts:
        """Count what is due."""
        return await self._store.looks.count(kind, scope, MAX_COUNTED)

    async def _read_due(
        self, kind: str, scope: Scope, limit: int, share: Share | None
    ) -> tuple[list[ScheduledLook], datetime, bool]:
        """Return the resources of a share, the time, and whether these are all that are due."""
        own: list[ScheduledLook] = []
        size, after = 0, None
        for _ in range(_PAGES):
            page = await self._store.looks.due(kind, scope, _PAGE, after)
            for each in page.looks:
                if share is not None and not share.owns(each.resource.id):
                    continue
                if len(own) >= limit or size > _MAX_BYTES:
                    return own, page.now, False
                own.append(each)
                size += len(each.answer)
            if len(page.looks) < _PAGE:
                return own, page.now, True
            last = page.looks[-1]
            after = (last.look.at or page.now, last.resource.id)
        return own, page.now, False

    async def _read_tokens(
        self, found: Sequence[tuple[ScheduledLook, tuple[DueRule, ...]]], scope: Scope
    ) -> Mapping[str, Collection[str]]:
        """Return the tokens of resources with a due rule that has a `where`. Few have, and tokens need reports."""
        filtered = self.rules.filters
        ids = [each.resource.id for each, due in found if any(one.rule.name in filtered for one in due)]
        records = await self._store.read_records(ids, scope) if ids else ()
        return {record.resource.id: facets_of(record) for record in records}

    def _present(
        self, scheduled: ScheduledLook, due: Sequence[DueRule], tokens: Collection[str], now: datetime
    ) -> DueResource:
        attempts = scheduled.look.history.attempts
        triggers = [
            Trigger(each.rule.name, each.rule.state, now - each.since, attempts, each.rule.when)
            for each in due
            if self.rules.admits(each.rule, tokens)
        ]
        look = scheduled.look
        id_, at = scheduled.resource.id, look.at or now
        return DueResource(id_, scheduled.answer, write_receipt(look), at, tuple(triggers))

    # ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────

    async def look(self, kind: str, sentinel: Sentinel, verdicts: Sequence[LookVerdict]) -> LookResult:
        """Publish the events that were decided on, then schedule the next look at each resource."""
        page = await self._store.looks.read(kind, {each.id for each in verdicts}, sentinel.scope)
        found = {each.resource.id: each for each in page.looks}
        current = [each for each in verdicts if each.id in found and _is_current(each, found[each.id].look)]
        await self._publish(sentinel.name, [(found[each.id], each) for each in current if each.rule], page.now)
        moves = [self._move(found[each.id], each.rule, page.now) for each in current]
        await self._store.looks.advance(moves)
        return LookResult(sum(each.rule is not None for each in current), len(verdicts) - len(current))

    async def _publish(self, name: str, wanted: Sequence[tuple[ScheduledLook, LookVerdict]], now: datetime) -> None:
        if not wanted:
            return
        if self._origin is None:
            self._origin = self._make_origin(await self._store.store_id())
        messages: list[Message] = []
        for scheduled, verdict in wanted:
            sender = Sender(self._origin, name, new_uuid7(), now)
            messages.append(look_message(scheduled.resource, verdict.rule or "", sender, verdict.data))
        await self._broker.publish(with_traceparent(messages))
        if self.on_published is not None:
            for _, verdict in wanted:
                self.on_published(self._known_name(verdict.rule or ""), 1)

    def _known_name(self, rule: str) -> str:
        """Return the name of a rule of ours; a metric must not get names from outside."""
        return rule if self.rules.rules.get(rule) is not None else "other"

    def _move(self, scheduled: ScheduledLook, rule: str | None, now: datetime) -> LookMove:
        looked_at, rules = self._looked_at(scheduled), self.rules.rules
        if rule is None:
            declined = frozenset(each.rule.name for each in due_rules(looked_at, rules, now))
            planned = next_look(looked_at, rules, now, declined)
        else:
            known = rules.get(rule) or Rule(rule, "any", None)
            planned = next_look(after_look(looked_at, known, now), rules, now)
        return LookMove(scheduled.resource.id, scheduled.look, LookPlan(planned.at, planned.history))

    def _looked_at(self, scheduled: ScheduledLook) -> LookedAt:
        policy = self.policies.select(scheduled.resource)
        return LookedAt(scheduled.resource, scheduled.status, policy, history=scheduled.look.history)

    # ── a look at everything ─────────────────────────────────────────────────────────────────────────────────────

    async def adopt_rules(self) -> bool:
        """If the times of the rules have changed, look at everything in the next minutes; tell whether they have."""
        if await self._store.looks.rules_digest() == self.rules.digest:
            return False
        await self._spread(forgets=False)
        return True

    async def plan_to_look_at_everything(self) -> None:
        """Make sure that everything is looked at, if not by `look_at_everything` then after the next start."""
        await self._store.looks.save_rules_digest("")

    async def look_at_everything(self) -> None:
        """Look at everything in the next minutes, as if it had not been looked at: events were lost."""
        await self.plan_to_look_at_everything()
        await self._spread(forgets=True)

    async def _spread(self, *, forgets: bool) -> None:
        last: str | None = ""
        while last is not None:
            last = await self._store.looks.spread(last, _SPREAD_BATCH, SPREAD, forgets=forgets)
        await self._store.looks.save_rules_digest(self.rules.digest)


class Share(Struct, frozen=True):
    """The part of one member."""

    member: str
    members: tuple[str, ...]

    def owns(self, id_: str) -> bool:
        """Tell whether a resource belongs to the member; nothing belongs to one that is not among the members."""
        if len(self.members) <= 1:
            return self.members == (self.member,)
        return rendezvous(id_, self.members) == self.member


def write_receipt(look: LookPlan) -> str:
    """Return what names the look at a resource that is stored now."""
    return hashlib.sha256(msgspec.json.encode(look)).hexdigest()[:16]


def _is_current(verdict: LookVerdict, look: LookPlan) -> bool:
    return not verdict.receipt or verdict.receipt == write_receipt(look)


def _scope_key(scope: Scope) -> str:
    if scope.tenants is None:
        return "all"
    return hashlib.sha256(msgspec.json.encode(sorted(scope.tenants))).hexdigest()[:16]


def _name_and_scope(lease: Lease) -> tuple[str, str]:
    _, name, key, _ = lease.name.split("/", 3)
    return name, key
