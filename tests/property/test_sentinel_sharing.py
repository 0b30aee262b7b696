"""Members of a sentinel share the fleet while they join, die, freeze and leave: no gap ever, and no event twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import datetime, timedelta

import pytest
from msgspec import Struct, field

from hyperfleet.api.wire import present
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.looking import MEMBERSHIP, Looking, Sentinel, Share
from hyperfleet.events.making import Origin
from hyperfleet.messaging import Subscription
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import EVERYTHING, LookPlan
from hyperfleet.sentinel.rules import Backoff, Rule, RuleSet
from hyperfleet.sentinel.scan import DuePage, LookVerdict
from hyperfleet.sentinel.schedule import LookHistory
from hyperfleet.services.look_planning import LookRules
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from tests.contract.stores import SettableClock, created, make_record, make_resource, write

RESOURCES = 40
STEPS = 300
STEP = timedelta(seconds=4)  # an upper bound
NIGHT = Sentinel("night", EVERYTHING)
RULES = LookRules(RuleSet([Rule("not-ready", "notReady", timedelta(seconds=20), Backoff(max=timedelta(minutes=1)))]))
POLICY = "name: p\nappliesTo: {kind: Cluster}\nrequiredAdapters: [dns]"


class Member(Struct):
    """A process that takes part. It asks what is due in one step, and sends its decisions in a later one."""

    name: str
    frozen_until: datetime
    asked: list[DuePage] = field(default_factory=list)


class Simulation:
    """A store with some resources, and members that come and go."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = SettableClock()
        self.store = MemoryStore(self.clock)
        policies = PolicyRegistry(self.store, Kinds(), present, lambda: PolicyText(POLICY, "p.yaml"))
        self.broker = InProcessBroker(self.store, self.clock)
        self.looking = Looking(self.store, policies, self.broker, _origin, RULES)
        self.members: list[Member] = []
        self.names = iter(range(10_000))
        self.idle = self.clock.now()  # since when all members that are alive are at work
        self.published: Counter[tuple[str, int]] = Counter()  # by resource and attempt

    async def run(self) -> None:
        """Live for a while, and check at each step."""
        await self.store.open()
        await self.store.queues.subscribe(Subscription("dns"))
        looks = LookPlan(self.clock.now() + timedelta(seconds=20))
        records = [make_record(make_resource(f"cls-{number:02}"), look=looks) for number in range(RESOURCES)]
        await write(self.store, created(*records))
        for _ in range(STEPS):
            self.clock.advance(STEP * self.random.random())
            await self._act()
            await self._check()

    async def _act(self) -> None:
        now = self.clock.now()
        if self.random.random() < 0.1 and len(self.members) < 5:
            self.members.append(Member(f"m-{next(self.names)}", now))
        for member in list(self.members):
            chance = self.random.random()
            if chance < 0.03:
                self.members.remove(member)  # it dies without a word
            elif chance < 0.05:
                member.frozen_until = now + 3 * MEMBERSHIP * self.random.random()
            elif chance < 0.06:
                self.members.remove(member)
                await self.looking.leave(NIGHT, member.name)
            elif member.frozen_until <= now:
                await self._work(member)

    async def _work(self, member: Member) -> None:
        """Send decisions on what was due when it last asked, which may be long ago; then ask again."""
        for page in member.asked:
            verdicts = [LookVerdict(each.id, each.triggers[0].rule, each.receipt) for each in page.items]
            before = {each.id: await self._history(each.id) for each in page.items}
            if verdicts:
                await self.looking.look("Cluster", NIGHT, verdicts)
            for id_, history in before.items():
                if await self._history(id_) != history:
                    self.published[id_, history.attempts] += 1
        await self.looking.join(NIGHT, member.name)
        members = await self.looking.members(NIGHT)
        member.asked = [await self.looking.due("Cluster", EVERYTHING, 10, Share(member.name, members))]

    async def _history(self, id_: str) -> LookHistory:
        (found,) = (await self.store.looks.read("Cluster", [id_], EVERYTHING)).looks
        return found.look.history

    async def _check(self) -> None:
        """What is due is not due for longer than it takes to notice a dead member, if any is at work."""
        now = self.clock.now()
        is_covered = any(member.frozen_until <= now for member in self.members)
        alive = set(await self.looking.members(NIGHT))
        at_work = {member.name for member in self.members if member.frozen_until <= now}
        if not is_covered or alive - at_work:
            self.idle = now
        counts = await self.store.looks.count("Cluster", EVERYTHING, RESOURCES)
        if counts.oldest is not None and now - self.idle > MEMBERSHIP + 20 * STEP:
            late = now - max(counts.oldest, self.idle)
            assert late <= MEMBERSHIP + 20 * STEP, f"a gap of {late} with {sorted(at_work)} at work"


def _origin(store_id: str) -> Origin:
    return Origin(store_id, lambda kind, id_, _: f"/{kind}/{id_}", lambda _: None)


@pytest.mark.parametrize("seed", range(12))
def test_no_gap_and_no_event_twice(seed: int) -> None:
    simulation = Simulation(seed)
    asyncio.run(simulation.run())

    async def drain() -> list[str]:
        taken = await simulation.store.queues.take("dns", 100_000, timedelta(minutes=1), 3)
        return [each.message.partition_key for each in taken]

    events = asyncio.run(drain())
    assert set(events) == {f"cls-{number:02}" for number in range(RESOURCES)}, "every resource got its turn"
    assert len(events) > 3 * RESOURCES, "again and again"
    assert len(events) == sum(simulation.published.values()), "each event belongs to one look"
    assert set(simulation.published.values()) == {1}, "a late decision publishes nothing"


def test_without_a_hand_over_each_resource_belongs_to_one_member() -> None:
    members = tuple(f"m-{number}" for number in range(7))
    shares = [Share(member, members) for member in members]
    owners = Counter(sum(share.owns(f"cls-{number}") for share in shares) for number in range(2_000))
    assert owners == {1: 2_000}
    sizes = [sum(share.owns(f"cls-{number}") for number in range(2_000)) for share in shares]
    assert min(sizes) > 200, "the shares are about the same"


def test_nothing_belongs_to_one_that_is_not_a_member() -> None:
    for members in ((), ("a",), ("a", "b")):
        assert not Share("other", members).owns("cls-1")
    assert Share("a", ("a",)).owns("cls-1")
