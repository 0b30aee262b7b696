"""Laws of heartbeats over random histories, on every store, through the real committer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.model.report import Report
from hyperfleet.ports import EVERYTHING, Record
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.reports import RetireAdapter
from hyperfleet.services.resources import Delete, Edit
from hyperfleet.services.results import Reported, ResourceEdit
from tests.contract.clocks import TestTime
from tests.contract.conftest import DURABLE
from tests.contract.ways import OrdinaryStore, Ways
from tests.unit.services.desk import accept_all, target_of
from tests.world import make_report

pytestmark = pytest.mark.long

SECOND: Final = timedelta(seconds=1)

POLICIES: Final = (
    "requiredAdapters: [dns, apply]\npolicies: {staleThreshold: 5m, staleAction: degraded}",
    "requiredAdapters: [dns, apply]\ndefaultBehavior: {timeout: 7m}\npolicies: {staleThreshold: 10m}",
    """
requiredAdapters: [dns]
policies: {staleThreshold: 20m}
clusterConditions:
  - {type: Fresh, evaluate: {expr: '!olderThan(adapters["dns"], "3m")'}}
  - {type: Lively, evaluate: {expr: '!all(allAdapters, olderThan(#, "2m"))'}}
  - {type: Fine, evaluate: {expr: 'all(requiredAdapters, .available == "True" && !olderThan(#, "4m"))'}}
""",
    """
requiredAdapters: [dns, apply]
clusterConditions:
  - {type: Ahead, evaluate: {expr: 'adapters["dns"].lastUpdated > adapters["apply"].lastUpdated'}}
""",
    """
requiredAdapters: [dns, apply]
policies: {staleThreshold: 5m}
flapping: {transitions: 3, window: 10m}
clusterConditions:
  - {type: Slow, goBadAfter: 2m, goGoodAfter: 3m, evaluate: {expr: 'adapters["dns"].available == "True"'}}
""",
)

ADAPTERS: Final = ("dns", "apply", "extra")
SAID: Final = ("True", "True", "False/Broken", "False/JobRunning", "Unknown")
LAGS: Final = (None, None, 0, 1, 90, 600, -60)  # seconds that an observed time is behind; None: there is none

_adapters = st.sampled_from(("dns", "dns", "apply", "extra"))
_resources = st.sampled_from((0, 0, 0, 0, 1, 2))  # enough happens to one of them
_lags = st.sampled_from(LAGS)
_report = st.tuples(st.just("report"), _resources, _adapters, st.sampled_from(SAID), _lags)
_again = st.tuples(st.just("again"), _resources, _adapters, st.sampled_from((None, None, None, 0, 1, 120)))
_steps = st.one_of(
    _report,
    _again,
    _again,
    _again,
    st.tuples(st.just("replay"), _resources, _adapters),
    st.tuples(st.just("bundle"), _resources, st.booleans()),
    st.tuples(st.just("batch"), _resources, _adapters),
    st.tuples(st.just("pass"), st.sampled_from((0, 1, 30, 100, 200, 299, 300, 301, 700))),
    st.tuples(st.just("silence"), _resources, _adapters, st.sampled_from((100, 179, 200, 299, 301, 400, 1_000))),
    st.tuples(st.just("silence"), _resources, _adapters, st.sampled_from((200, 301, 601))),
    st.tuples(st.just("late"), _resources, _adapters),
    st.tuples(st.just("edit"), _resources),
    st.tuples(st.just("finalize"), _resources),
    st.tuples(st.just("delete"), _resources),
    st.tuples(st.just("retire"), _resources, _adapters),
    st.tuples(st.just("policy"), st.integers(0, len(POLICIES) - 1)),
)
_histories = st.tuples(st.integers(0, len(POLICIES) - 1), st.lists(_steps, max_size=30))


class Player:
    """Plays a history on both ways, and knows what each adapter said last."""

    def __init__(self, ways: Ways) -> None:
        self.ways = ways
        self._last: dict[tuple[str, str], Report] = {}

    async def play(self, step: tuple[Any, ...]) -> None:
        """Do one step, a second after the one before."""
        await self.ways.pass_time(SECOND)
        await getattr(self, f"_{step[0]}")(*step[1:])

    async def generation(self, id_: str) -> int:
        """Return the generation of a resource; of one that has gone, the first."""
        record = await self.ways.ordinary.store.read_record(target_of(id_).kind.name, id_, EVERYTHING)
        return record.resource.generation if record else 1

    async def make(self, place: int, adapter: str, said: str = "True", lag: int | None = None, **more: Any) -> Report:
        """Make a report and remember it."""
        id_ = self.ways.ids[place]
        generation = more.pop("generation", None) or await self.generation(id_)
        report = make_report(adapter, said, generation=generation, **more)
        self._last[id_, adapter] = report = replace(report, observed_time=self._observed(lag))
        return report

    def repeat(self, place: int, adapter: str, lag: int | None = None) -> Report | None:
        """Make the report again that an adapter sent last, observed at another time."""
        last = self._last.get((self.ways.ids[place], adapter))
        return last and replace(last, observed_time=self._observed(lag))

    def _observed(self, lag: int | None) -> datetime | None:
        return None if lag is None else self.ways.time.now - lag * SECOND

    async def _send(self, place: int, *reports: Report | None) -> None:
        some = [report for report in reports if report is not None]
        if some:
            await self.ways.submit(self.ways.reporting(self.ways.ids[place], *some))

    async def _report(self, place: int, adapter: str, said: str, lag: int | None) -> None:
        await self._send(place, await self.make(place, adapter, said, lag))

    async def _again(self, place: int, adapter: str, lag: int | None) -> None:
        await self._send(place, self.repeat(place, adapter, lag))

    async def _replay(self, place: int, adapter: str) -> None:
        await self._send(place, self._last.get((self.ways.ids[place], adapter)))

    async def _finalize(self, place: int) -> None:
        for adapter in ADAPTERS[:2]:
            await self._send(place, await self.make(place, adapter, "True", extra={"Finalized": "True"}))

    async def _bundle(self, place: int, is_bad: bool) -> None:
        id_ = self.ways.ids[place]
        ahead = make_report("apply", "True", generation=await self.generation(id_) + 1)
        beat = self.repeat(place, "dns") or await self.make(place, "dns")
        await self._send(place, beat, ahead if is_bad else await self.make(place, "apply"))

    async def _batch(self, place: int, adapter: str) -> None:
        """Send a heartbeat, an edit and heartbeats behind it, all at once."""
        beat = self.repeat(place, adapter) or await self.make(place, adapter)
        id_, other = self.ways.ids[place], self.ways.ids[(place + 1) % 3]
        await self.ways.submit(
            self.ways.reporting(id_, beat),
            self.ways.reporting(other, self.repeat((place + 1) % 3, adapter) or beat),
            Edit(target_of(id_), ResourceEdit(spec={"batch": next(self.ways.numbers)}), ANONYMOUS, accept_all),
            self.ways.reporting(id_, beat),
            self.ways.reporting(other, make_report(adapter, "False/Broken")),
            self.ways.reporting(other, beat),
        )

    async def _pass(self, seconds: int) -> None:
        await self.ways.pass_time(seconds * SECOND)

    async def _late(self, place: int, adapter: str) -> None:
        """Send as from a clock that was set back, but not often enough to be believed; then be heard as before."""
        last = self.repeat(place, adapter)
        for _ in range(2):
            await self.ways.pass_time(20 * SECOND)
            await self._send(place, await self.make(place, adapter, "False/Broken", 900))
        if last is not None:
            self._last[self.ways.ids[place], adapter] = last
            await self._send(place, last)

    async def _silence(self, place: int, adapter: str, seconds: int) -> None:
        """Let an adapter be heard again after some time, then once more: it may have turned stale."""
        for pause in (seconds, 1):
            await self.ways.pass_time(pause * SECOND)
            await self._send(place, self.repeat(place, adapter))

    async def _edit(self, place: int) -> None:
        id_ = self.ways.ids[place]
        change = ResourceEdit(spec={"n": next(self.ways.numbers)})
        await self.ways.submit(Edit(target_of(id_), change, ANONYMOUS, accept_all))

    async def _delete(self, place: int) -> None:
        await self.ways.submit(Delete(target_of(self.ways.ids[place]), ANONYMOUS))

    async def _retire(self, place: int, adapter: str) -> None:
        await self.ways.submit(RetireAdapter(target_of(self.ways.ids[place]), adapter, ANONYMOUS))

    async def _policy(self, place: int) -> None:
        await self.ways.use(POLICIES[place])
        await self.ways.recompute()


Scenario = Callable[[Ways, Any], Coroutine[Any, Any, None]]


@pytest.fixture(params=["memory", *DURABLE])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path | str]:
    """Give the name of an engine, and a place for an empty database."""
    if request.param == "postgres":
        return "postgres", request.getfixturevalue("postgres_url")
    return request.param, tmp_path / "fleet.db"


def for_all(place: tuple[str, Path | str], histories: st.SearchStrategy[Any], scenario: Scenario) -> None:
    """Play each history with both ways, on resources of its own of one store."""
    with asyncio.Runner() as runner:
        time = TestTime()

        async def prepare() -> Ways:
            ways = Ways(time, await time.new_store(*place), OrdinaryStore(time.clock))
            await ways.ordinary.store.open()
            await ways.start()
            return ways

        ways = runner.run(prepare())

        @settings(max_examples=60 if place[0] == "memory" else 25, suppress_health_check=list(HealthCheck))
        @given(histories)
        def check(history: Any) -> None:
            runner.run(scenario(ways, history))

        try:
            check()
        finally:
            runner.run(ways.close())
            runner.run(time.close())
        assert ways.recorded > 0, "some of them took the short way"


def test_both_ways_tell_the_same_after_every_step(place: tuple[str, Path | str]) -> None:
    async def scenario(ways: Ways, history: tuple[int, list[tuple[Any, ...]]]) -> None:
        policy, steps = history
        await ways.begin(POLICIES[policy])
        player = Player(ways)
        for adapter in ADAPTERS:
            await player.play(("report", 0, adapter, "True", None))
        for step in steps:
            await player.play(step)
            await ways.compare()
        await ways.short.verify()

    for_all(place, _histories, scenario)


def test_a_heartbeat_moves_two_times_of_one_report_and_its_adapters_record(place: tuple[str, Path | str]) -> None:
    async def scenario(ways: Ways, history: tuple[int, list[tuple[Any, ...]]]) -> None:
        policy, steps = history
        await ways.begin(POLICIES[policy])
        player = Player(ways)
        for step in [("report", 0, "dns", "True", None), *steps]:
            await player.play(step)
            for adapter in ADAPTERS:
                await see_heartbeat(player, adapter)

    async def see_heartbeat(player: Player, adapter: str) -> None:
        ways, id_ = player.ways, player.ways.ids[0]
        report = player.repeat(0, adapter)
        before = await ways.short.store.read_record("Cluster", id_, EVERYTHING)
        if report is None or before is None:
            return
        await ways.time.advance(SECOND / 2)
        untouched = await everything_else(ways, id_)
        [result] = await ways.submit(ways.reporting(id_, report))
        if not isinstance(result, Reported) or result.heartbeat is None:
            return
        after = await ways.short.store.read_record("Cluster", id_, EVERYTHING)
        heard = replace(before.reports[adapter], effective_time=ways.time.now, last_heard=ways.time.now)
        assert after == replace(before, reports={**before.reports, adapter: heard})
        assert result.results[0].report_id == heard.id
        now = await everything_else(ways, id_)
        assert now.pop("adapters") == counted(untouched.pop("adapters"), adapter, ways.time.now)
        assert now == untouched

    async def everything_else(ways: Ways, id_: str) -> dict[str, Any]:
        store = ways.short.store
        others = [record for record in await ways.read_all(ways.short) if record.resource.id != id_]
        return {
            "answer": await store.read_answer("Cluster", id_, EVERYTHING),
            "position": await store.position(),
            "others": others,
            "adapters": {each.name: (each.last_seen, dict(each.counts)) for each in await store.adapters(EVERYTHING)},
        }

    def counted(adapters: dict[str, Any], adapter: str, now: datetime) -> dict[str, Any]:
        _, counts = adapters[adapter]
        return {**adapters, adapter: (now, {**counts, "aggregated": counts["aggregated"] + 1})}

    for_all(place, _histories, scenario)


_rough = st.lists(
    st.one_of(
        _report,
        _again,
        _again,
        st.tuples(st.just("set"), st.sampled_from((-3_600, -400, -61, -1, 1, 60, 299, 301, 900))),  # timers sleep
        st.tuples(st.just("wake")),
        st.tuples(st.just("edit"), _resources),
        st.tuples(st.just("policy"), st.integers(0, len(POLICIES) - 1)),
    ),
    max_size=30,
)


class RoughPlayer(Player):
    """Plays on one store, whose clock may be set back and whose timer may be late."""

    async def play(self, step: tuple[Any, ...]) -> None:
        """Do one step, at once."""
        await getattr(self, f"_{step[0]}")(*step[1:])

    async def _set(self, seconds: int) -> None:
        await self.ways.time.advance(seconds * SECOND)

    async def _wake(self) -> None:
        await self.ways.short.wake(self.ways.ids)

    async def _send(self, place: int, *reports: Report | None) -> None:
        ways = self.ways
        for report in [report for report in reports if report is not None]:
            before = await self._times(place, report.adapter)
            result = await ways.short.committer.submit(ways.reporting(ways.ids[place], report))
            assert isinstance(result, Reported)
            ways.recorded += result.heartbeat is not None
            after = await self._times(place, report.adapter)
            if before is not None and after is not None:
                assert after[1] >= before[1], "what was heard stays heard, however the clock is set"
                assert result.heartbeat is None or after[0] > before[0]

    async def _times(self, place: int, adapter: str) -> tuple[datetime, datetime] | None:
        id_ = self.ways.ids[place]
        record: Record | None = await self.ways.short.store.read_record(target_of(id_).kind.name, id_, EVERYTHING)
        stored = record.reports.get(adapter) if record else None
        return None if stored is None else (stored.effective_time, stored.last_heard)

    async def _edit(self, place: int) -> None:
        change = ResourceEdit(spec={"n": next(self.ways.numbers)})
        await self.ways.short.committer.submit(Edit(target_of(self.ways.ids[place]), change, ANONYMOUS, accept_all))

    async def _policy(self, place: int) -> None:
        await self.ways.short.use(POLICIES[place])
        if place % 2:
            await self.ways.short.recompute(self.ways.ids)


def test_whatever_clocks_and_timers_do_the_status_is_the_function_of_what_is_stored(
    place: tuple[str, Path | str],
) -> None:
    async def scenario(ways: Ways, steps: list[tuple[Any, ...]]) -> None:
        await ways.time.set(ways.time.now + timedelta(days=1))
        await ways.begin_alone(POLICIES[0])
        player = RoughPlayer(ways)
        for step in [("report", 0, "dns", "True", None), ("again", 0, "dns", None), *steps]:
            await ways.time.advance(SECOND)
            await player.play(step)
            await ways.short.verify()

    for_all(place, _rough, scenario)
