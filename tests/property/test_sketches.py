"""A fleet lives through anything, in a file of which little is remembered and in memory, and is the same in both.

What is not remembered is drawn from its answer and its pulse where that is enough (`backends/sketches.py`): whatever
follows from such a sketch must be what follows from the whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from hyperfleet.backends.record_cache import Doubt
from hyperfleet.ports import EVERYTHING
from hyperfleet.services.callers import ANYBODY
from hyperfleet.services.commands import Command
from hyperfleet.services.reports import RetireAdapter
from hyperfleet.services.resources import Delete, Edit
from hyperfleet.services.results import Change
from tests.contract.stores import SettableClock
from tests.contract.twins import POLICY, SECOND, ForgetfulSqlite, Twins, open_twins
from tests.unit.services.desk import accept_all, target_of

IDS: Final = ("cls-a", "cls-b", "np-p")
ADAPTERS: Final = ("dns", "apply", "extra")

POOLS: Final = f"---{POLICY}appliesTo: {{kind: NodePool}}\n"
RULES: Final = (
    '{type: Rich, evaluate: {expr: \'adapters["dns"].data["n"] == 1\'}}',
    "{type: Silent, evaluate: {expr: 'any(allAdapters, {olderThan(#, \"50s\")})'}}",
    "{type: Pools, summary: {over: nodePools, type: Ready}}",
    '{type: Slow, goBadAfter: 40s, evaluate: {expr: \'adapters["dns"].health == "True"\'}}',
)
POLICIES: Final = (
    POLICY + POOLS,
    POLICY + POOLS.replace("[dns, apply]", "[dns]"),  # for clusters the same, and yet another version
    POLICY + POOLS + "---\nname: red\nappliesTo: {labels: {team: red}}\nrequiredAdapters: [dns]\n",
    POLICY + "defaultBehavior: {timeout: 1m}\n" + POOLS,
    POLICY.replace("{transitions: 0}", "{window: 40s, transitions: 2}") + POOLS,
    *[f"{POLICY}clusterConditions: [{rule}]\n{POOLS}" for rule in RULES],
)


class Say(Struct, frozen=True):
    """A report: what was said last, unless there are other words."""

    id: str
    adapter: str
    words: dict[str, Any] | None
    observed: int | None  # seconds before now; None: it does not say
    is_again: bool  # at the time that was said last
    is_brief: bool


class Do(Struct, frozen=True):
    """Anything else."""

    what: str
    id: str
    adapter: str


def _again(id_: str, adapter: str) -> Say:
    return Say(id_, adapter, None, None, is_again=False, is_brief=True)


class Turn(Struct, frozen=True):
    """Time that passes, and what is then done in one transaction; and before that, what nobody asks for."""

    seconds: int
    is_awake: bool
    policy: int | None
    orders: Sequence[Say | Do]


CHORUS: Final = [_again(id_, adapter) for id_ in IDS for adapter in ADAPTERS[:2]]

_WORDS: Final = st.fixed_dictionaries(
    {"available": st.sampled_from(["True", "True/Done/well", "False/JobRunning", "False/Broken", "Unknown"])},
    optional={
        "data": st.sampled_from([{"n": 1}, {"n": 1.0}, {"n": 1, "m": {"a": 1}}, {"m": {"a": 1}, "n": 1}]),
        "extra": st.sampled_from([{"More": "True"}, {"Finalized": "True"}]),
        "lag": st.sampled_from([0, 1, -1]),
    },
)
_SAY: Final = st.builds(
    Say,
    id=st.sampled_from(IDS),
    adapter=st.sampled_from(ADAPTERS),
    words=st.one_of(*[st.none()] * 6, _WORDS),
    observed=st.sampled_from([None, None, None, 0, 0, 30, -30]),
    is_again=st.sampled_from([False, False, False, True]),
    is_brief=st.sampled_from([True, True, True, True, False]),
)
_DO: Final = st.builds(
    Do,
    what=st.sampled_from(["edit", "edit", "relabel", "retire", "delete"]),
    id=st.sampled_from(IDS),
    adapter=st.sampled_from(ADAPTERS),
)
_ORDERS: Final = st.lists(st.one_of(*[_SAY] * 25, _DO), min_size=1, max_size=3)
_TURN: Final = st.builds(
    Turn,
    seconds=st.sampled_from([0, 0, 0, 0, 0, 0, 10, 10, 45, 301]),
    is_awake=st.booleans(),
    policy=st.sampled_from([None] * 40 + list(range(len(POLICIES))) + [0, 1] * 3),
    orders=_ORDERS | st.just(CHORUS),
)
REMEMBERED: Final = st.sampled_from([0, 0, 2500, 4500])  # bytes: of no record, of one, or of two
LIVES: Final = st.lists(_TURN, min_size=12, max_size=30)


class Life:
    """A fleet of two clusters and a node pool, and what was last said of them."""

    def __init__(self, twins: Twins) -> None:
        self.twins = twins
        self.said: dict[tuple[str, str], dict[str, Any]] = {}
        self.times: dict[tuple[str, str], str | None] = {}
        self.edits = 0

    async def begin(self) -> None:
        """Create them, and let two adapters repeat themselves."""
        await self.twins.create("a", labels={"team": "red"})
        await self.twins.create("b")
        await self.twins.create("p", "cls-b")
        for _ in range(2):
            await self.live(Turn(1, True, None, CHORUS))

    async def live(self, turn: Turn) -> None:
        """Live through a turn."""
        self.twins.clock.advance(turn.seconds * SECOND)
        if turn.is_awake:
            await self.twins.wake()
        if turn.policy is not None:
            await self.twins.use(POLICIES[turn.policy])
        generations = await self._generations()
        await self.twins.submit(*[self._command(order, generations) for order in turn.orders])
        await self.twins.compare()

    async def _generations(self) -> dict[str, int]:
        records = await self.twins.other.store.walk("", 10, EVERYTHING)
        return {record.resource.id: record.resource.generation for record in records}

    def _command(self, order: Say | Do, generations: dict[str, int]) -> Command[Any]:
        if isinstance(order, Say):
            return self._reporting(order, generations.get(order.id, 1))
        target = target_of(order.id)
        self.edits += 1
        commands: dict[str, Command[Any]] = {
            "edit": Edit(target, Change(spec={"edit": self.edits}), ANYBODY, accept_all),
            "relabel": Edit(target, Change(labels={"team": "red" if self.edits % 2 else "blue"}), ANYBODY, accept_all),
            "retire": RetireAdapter(target, order.adapter, ANYBODY),
            "delete": Delete(target, ANYBODY),
        }
        return commands[order.what]

    def _reporting(self, say: Say, generation: int) -> Command[Any]:
        key = say.id, say.adapter
        if say.words is not None or key not in self.said:
            words = dict(say.words or {"available": "True"})
            self.said[key] = {**words, "generation": max(1, generation - words.pop("lag", 0))}
            self.said[key].pop("lag", None)
        time = self.times.get(key) if say.is_again else self._observed(say)
        self.times[key] = time
        more = self.said[key] if time is None else {**self.said[key], "observedTime": time}
        return self.twins.reporting(say.id, say.adapter, **more, is_brief=say.is_brief)

    def _observed(self, say: Say) -> str | None:
        if say.observed is None:
            return None
        observed: datetime = self.twins.clock.now() - timedelta(seconds=say.observed)
        return observed.isoformat()


async def live(turns: Sequence[Turn], remembered: int) -> int:
    """Let a fleet live through turns; return how many transactions could do with a sketch."""
    clock = SettableClock()
    with TemporaryDirectory() as directory:
        store = ForgetfulSqlite(Path(directory, "fleet.db"), clock, remembered)
        async with open_twins(store, clock, POLICIES[0]) as twins:
            life = Life(twins)
            await life.begin()
            for turn in turns:
                await life.live(turn)
            await twins.verify()
            return twins.tries.sketched


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(turns=LIVES, remembered=REMEMBERED)
def test_what_follows_from_a_sketch_follows_from_the_whole(
    turns: list[Turn], remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Doubt, "allows", lambda _: True)  # it only says how often to try
    asyncio.run(live(turns, remembered))
