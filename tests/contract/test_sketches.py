"""Heartbeats of records that a store does not remember: done with a sketch or with the whole, they come to the same."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec
import pytest
from msgspec import Struct

from hyperfleet.backends.record_cache import Doubt
from hyperfleet.ports import EVERYTHING, Cause
from hyperfleet.services.callers import ANYBODY
from hyperfleet.services.reports import RetireAdapter, Submission, TakeReports
from hyperfleet.services.resources import Delete, Edit
from hyperfleet.services.results import Change, Refusal, Reported
from hyperfleet.services.upkeep import Recompute
from tests.contract.conftest import DURABLE
from tests.contract.stores import SettableClock, must_read
from tests.contract.twins import POLICY, SECOND, Forgetful, ForgetfulPostgres, ForgetfulSqlite, Twins, open_twins
from tests.unit.services.desk import accept_all, target_of
from tests.world import make_report

pytestmark = pytest.mark.anyio

MINUTE: Final = timedelta(minutes=1)
SKETCH: Final = [True]  # one was enough
WHOLE: Final = [False]  # none was tried
BOTH: Final = [True, False]  # one was tried and not enough

WORDS: Final[dict[str, Any]] = {"data": {"a": 1, "b": {"c": 2, "d": [3]}}, "metadata": {"x": "1", "y": "2"}}

Rewrite = Callable[[Callable[[bytes], bytes]], Awaitable[bytes]]  # give the pulse of cls-1 another; return what it was


class Fleet(Struct, frozen=True):
    """Twins, and the way to the rows of the one that forgets."""

    twins: Twins
    rewrite: Rewrite


class Ground(Struct, frozen=True):
    """What a fleet is made of."""

    clock: SettableClock
    store: Forgetful
    rewrite: Rewrite


@pytest.fixture(params=DURABLE)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """Give a store of each kind that remembers nothing."""
    clock = SettableClock()
    if request.param == "sqlite":
        path = tmp_path / "fleet.db"
        return Ground(clock, ForgetfulSqlite(path, clock), _rewriting_file(path))
    url: str = request.getfixturevalue("postgres_url")
    return Ground(clock, ForgetfulPostgres(url, clock), _rewriting_database(url))


@pytest.fixture
async def fleet(ground: Ground, monkeypatch: pytest.MonkeyPatch, anyio_backend: str) -> AsyncIterator[Fleet]:
    """Give a cluster of which two adapters have repeated themselves, so that the next time a sketch is enough."""
    monkeypatch.setattr(Doubt, "allows", lambda _: True)  # it only says how often to try
    async with open_twins(ground.store, ground.clock) as twins:
        await twins.create("1", labels={"team": "red"})
        await settle(twins)
        yield Fleet(twins, ground.rewrite)
        await twins.compare()
        await twins.verify()


@pytest.fixture
def twins(fleet: Fleet) -> Twins:
    """Give the twins alone."""
    return fleet.twins


async def settle(twins: Twins, id_: str = "cls-1") -> None:
    """Let two adapters repeat themselves."""
    for _ in range(2):
        for adapter in ("dns", "apply"):
            await twins.report(id_, adapter, **WORDS)


async def beat(twins: Twins, adapter: str = "dns", id_: str = "cls-1", **more: Any) -> list[bool]:
    """Let an adapter repeat itself, see that all is well, and return what was tried."""
    result = await twins.report(id_, adapter, **(WORDS | more))
    tries = twins.tries.last
    assert isinstance(result, Reported)
    await twins.compare()
    return tries


def observed(twins: Twins, duration: timedelta = timedelta()) -> str:
    """Return a time before the next report."""
    return (twins.clock.now() + SECOND - duration).isoformat()


# ── one report ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_of_a_heartbeat_no_more_than_a_sketch_is_read(twins: Twins) -> None:
    for adapter in ("dns", "apply", "dns", "dns"):
        assert await beat(twins, adapter) == SKETCH
    assert await beat(twins, observedTime=observed(twins)) == SKETCH


@pytest.mark.parametrize(
    ("more", "tries"),
    [
        pytest.param({"data": {"b": {"d": [3], "c": 2}, "a": 1}}, SKETCH, id="keys in another order"),
        pytest.param({"metadata": {"y": "2", "x": "1"}}, SKETCH, id="also of what is beside the data"),
        pytest.param({"data": {"a": 1, "b": {"c": 2, "d": [4]}}}, WHOLE, id="other data"),
        pytest.param({"data": {"a": 1.0, "b": {"c": 2, "d": [3]}}}, WHOLE, id="a number that Python calls equal"),
        pytest.param({"data": {"a": True, "b": {"c": 2, "d": [3]}}}, WHOLE, id="a truth that Python calls equal"),
        pytest.param({"metadata": {"x": "1"}}, WHOLE, id="less beside the data"),
        pytest.param({"available": "True/Done"}, WHOLE, id="another reason"),
        pytest.param({"available": "True//well"}, WHOLE, id="another message"),
        pytest.param({"available": "False/Broken"}, WHOLE, id="another status"),
        pytest.param({"available": "Unknown"}, WHOLE, id="nothing is known any more"),
        pytest.param({"extra": {"More": "True"}}, WHOLE, id="one more condition"),
        pytest.param({"health": "False"}, WHOLE, id="another status of another condition"),
        pytest.param({"adapter": "extra"}, WHOLE, id="somebody new"),
        pytest.param({"adapter": "apply"}, SKETCH, id="the other one"),
    ],
)
async def test_only_what_says_the_same_is_known_again(twins: Twins, more: dict[str, Any], tries: list[bool]) -> None:
    assert await beat(twins, **more) == tries
    assert await beat(twins) == SKETCH if tries == SKETCH else WHOLE
    await beat(twins, **more)
    await beat(twins, **more)
    assert await beat(twins, "apply") == SKETCH


async def test_conditions_in_another_order_are_other_words(twins: Twins) -> None:
    report = make_report("dns", "True", **WORDS)
    turned = msgspec.structs.replace(report, conditions=report.conditions[::-1])
    await twins.submit(TakeReports(target_of("cls-1"), (Submission(turned, "rpt-turned"),), ANYBODY, is_brief=True))
    assert twins.tries.last == WHOLE
    await twins.compare()


async def test_of_a_generation_that_is_not_there_nothing_is_kept(twins: Twins) -> None:
    assert isinstance(await twins.report("cls-1", generation=2, **WORDS), Refusal)
    await twins.compare()
    assert await beat(twins) == SKETCH


async def test_what_cannot_be_there_is_not(twins: Twins) -> None:
    for id_ in ("cls-\0", "cls-none"):
        result = await twins.report(id_, **WORDS)
        assert isinstance(result, Refusal)
        assert result.code == "NotFound"


async def test_words_of_an_older_generation_are_repeated(twins: Twins) -> None:
    await twins.edit("cls-1", region="eu")
    assert await beat(twins) == SKETCH
    assert await beat(twins, generation=2) == WHOLE
    result = await twins.report("cls-1", **WORDS)
    assert isinstance(result, Reported)
    assert (twins.tries.last, result.verdicts[0].cause) == (WHOLE, "StaleGeneration")
    assert await beat(twins, generation=2) == SKETCH


async def test_what_comes_too_late_is_counted(twins: Twins) -> None:
    await beat(twins, observedTime=observed(twins))
    for expected in ("OutOfOrder", "OutOfOrder", "OutOfOrder", ""):  # then the adapter's clock was set back
        late = observed(twins, 5 * MINUTE)
        result = await twins.report("cls-1", **WORDS, observedTime=late)
        assert isinstance(result, Reported)
        assert (twins.tries.last, result.verdicts[0].cause) == (SKETCH, expected)
        await twins.compare()


async def test_a_replay_is_known_again(twins: Twins) -> None:
    first, second = observed(twins), observed(twins, -SECOND)
    await beat(twins, observedTime=first)
    await beat(twins, observedTime=second)
    for time in (second, first, second):
        result = await twins.report("cls-1", **WORDS, observedTime=time)
        assert isinstance(result, Reported)
        assert (twins.tries.last, result.verdicts[0].is_replay) == (SKETCH, True)
        await twins.compare()


async def test_who_knows_nothing_again_and_again_moves_the_clock_of_the_missing(twins: Twins) -> None:
    await beat(twins, "extra", available="Unknown")
    await beat(twins, "extra", available="Unknown")
    assert await beat(twins, "extra", available="Unknown") == BOTH


async def test_who_was_retired_is_new(twins: Twins) -> None:
    await twins.retire("cls-1", "dns")
    await twins.compare()
    assert await beat(twins, "apply") == SKETCH
    assert await beat(twins) == WHOLE


# ── the record ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_resource_that_is_being_deleted_is_read_whole(twins: Twins) -> None:
    await twins.delete("cls-1")
    assert await beat(twins) == WHOLE
    for adapter in ("dns", "apply"):
        result = await twins.report("cls-1", adapter, generation=2, extra={"Finalized": "True"})
        assert isinstance(result, Reported)
        assert result.is_gone == (adapter == "apply")
        await twins.compare()
    assert isinstance(await twins.report("cls-1", **WORDS), Refusal)


async def test_where_an_adapter_is_stale_everything_is_read(twins: Twins) -> None:
    twins.clock.advance(6 * MINUTE)
    await twins.wake()
    assert await beat(twins) == WHOLE
    assert await beat(twins) == WHOLE
    assert await beat(twins, "apply") == WHOLE
    assert await beat(twins) == SKETCH


async def test_a_deadline_that_has_come_is_not_missed(twins: Twins) -> None:
    twins.clock.advance(6 * MINUTE)
    assert await beat(twins) == BOTH


async def test_an_alarm_that_rang_too_early_is_set_anew(twins: Twins) -> None:
    """The alarm stays when the deadline moves back; the heartbeat after it writes more than times."""
    twins.clock.advance(2 * MINUTE)
    for available in ("False/Broken", "True"):
        for adapter in ("dns", "apply"):
            await beat(twins, adapter, available=available)
    await beat(twins)
    twins.clock.advance(3 * MINUTE)
    assert await beat(twins) == BOTH
    assert await beat(twins) == SKETCH


async def test_what_moved_lately_is_read_whole_and_later_no_more(twins: Twins) -> None:
    await twins.use(POLICY.replace("{transitions: 0}", "{window: 2m, transitions: 3}"))
    await twins.submit(Recompute("cls-1", Cause("policy")))
    for available in ("False/Broken", "True") * 3:
        await beat(twins, available=available)
    record = (await twins.other.store.walk("", 1, EVERYTHING))[0]
    assert record.status.flapping
    assert await beat(twins) == WHOLE
    for _ in range(4):
        twins.clock.advance(MINUTE)
        await twins.wake()
        await beat(twins)
        await beat(twins, "apply")
    assert await beat(twins) == SKETCH


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_another_policy_of_another_kind_is_written_down(twins: Twins) -> None:
    """Of the status nothing changes but which version of all policies it is of, which also is more than times."""
    await twins.use(POLICY + "---\nappliesTo: {kind: NodePool}\nrequiredAdapters: [dns]\n")
    assert await beat(twins) == BOTH
    assert await beat(twins) == SKETCH


async def test_by_another_policy_everything_is_computed(twins: Twins) -> None:
    await twins.use(POLICY.replace("[dns, apply]", "[dns]"))
    assert await beat(twins) == BOTH
    assert await beat(twins) == SKETCH


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param('{type: Rich, evaluate: {expr: \'adapters["dns"].data["a"] == 1\'}}', id="data"),
        pytest.param("{type: Old, evaluate: {expr: 'any(allAdapters, {olderThan(#, \"1m\")})'}}", id="times"),
        pytest.param("{type: Pools, summary: {over: nodePools, type: Ready}}", id="children"),
        pytest.param(
            '{type: Slow, goBadAfter: 2m, evaluate: {expr: \'adapters["dns"].available == "True"\'}}', id="slow"
        ),
        pytest.param("{type: Dns, mirror: {adapter: dns}}", id="a mirror"),
    ],
)
async def test_whatever_a_policy_looks_at(twins: Twins, rule: str) -> None:
    await twins.use(f"{POLICY}clusterConditions: [{rule}]\n")
    pool = await twins.create("p", "cls-1")
    for passing in (0, 30, 45, 80, 10, 200):
        for more in ({}, {"id_": pool}, {"adapter": "apply"}, {}, {"id_": pool}):
            await beat(twins, **more)
        twins.clock.advance(passing * SECOND)
        await beat(twins, data={"a": passing})
        await twins.wake()
        await twins.compare()


async def test_a_policy_that_selects_by_labels_needs_to_see_them(twins: Twins) -> None:
    await twins.use(f"{POLICY}---\nname: red\nappliesTo: {{labels: {{team: red}}}}\nrequiredAdapters: [apply]\n")
    for _ in range(3):
        assert await beat(twins) == WHOLE
    blue = await twins.create("2", labels={"team": "blue"})
    await settle(twins, blue)
    assert await beat(twins, id_=blue) == WHOLE


# ── several ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_moves_that_no_longer_count_are_forgotten_in_passing(twins: Twins) -> None:
    await twins.use("requiredAdapters: [dns, apply]\nflapping: {transitions: 3, window: 2m}\n")
    await twins.report("cls-1", available="False/Broken")
    await settle(twins)
    assert "phase" in (await must_read(twins.forgetful.store, "cls-1")).status.memory.flips
    twins.clock.advance(3 * MINUTE)
    assert await beat(twins) == SKETCH
    assert not (await must_read(twins.forgetful.store, "cls-1")).status.memory.flips


async def test_a_kind_that_no_policy_is_for_is_drawn_too(twins: Twins) -> None:
    pool = await twins.create("p", "cls-1")
    await settle(twins, pool)
    assert await beat(twins, id_=pool) == SKETCH


async def test_a_node_pool_is_drawn_beside_its_cluster(twins: Twins) -> None:
    await twins.use(f"{POLICY}---{POLICY}appliesTo: {{kind: NodePool}}\n")
    pool = await twins.create("p", "cls-1")
    await settle(twins, pool)
    await settle(twins)
    assert await beat(twins, id_=pool) == SKETCH
    again = [twins.reporting(id_, adapter, **WORDS) for id_ in (pool, "cls-1") for adapter in ("dns", "apply")]
    await twins.submit(*again)
    assert twins.tries.last == SKETCH
    await twins.compare()


async def test_a_child_that_moved_makes_its_parent_whole(twins: Twins) -> None:
    await twins.use(f"{POLICY}clusterConditions: [{{type: Pools, summary: {{over: nodePools, type: Ready}}}}]\n")
    await twins.submit(Recompute("cls-1", Cause("policy")))
    pool = await twins.create("p", "cls-1")
    await settle(twins)
    await settle(twins, pool)
    for available in ("False/Broken", "True"):
        await twins.submit(twins.reporting("cls-1", **WORDS), twins.reporting(pool, available=available))
        await twins.compare()
        await twins.submit(twins.reporting(pool, available=available), twins.reporting("cls-1", **WORDS))
        await twins.compare()


@pytest.mark.parametrize(
    ("second", "tries"),
    [
        pytest.param({"adapter": "apply"}, SKETCH, id="two adapters"),
        pytest.param({}, SKETCH, id="the same again"),
        pytest.param({"data": {"a": 2}}, SKETCH, id="then other data, which no rule looks at"),
        pytest.param({"available": "True/Done"}, BOTH, id="then other words"),
        pytest.param({"available": "Unknown"}, SKETCH, id="then nothing, which is not believed"),
        pytest.param({"adapter": "apply", "is_brief": False}, WHOLE, id="one of which more is told"),
        pytest.param({"adapter": "apply", "available": "False/Broken"}, WHOLE, id="one that says something new"),
        pytest.param({"adapter": "extra"}, WHOLE, id="one that is new"),
    ],
)
async def test_several_reports_in_one_transaction(twins: Twins, second: dict[str, Any], tries: list[bool]) -> None:
    for _ in range(2):
        await twins.submit(twins.reporting("cls-1", **WORDS), twins.reporting("cls-1", **(WORDS | second)))
        assert twins.tries.last == tries
        await twins.compare()
        await beat(twins)
        await beat(twins, "apply")
        await beat(twins)
        await beat(twins, "apply")


async def test_since_when_conditions_are_what_they_are_is_kept(twins: Twins) -> None:
    """What a sketch knows of a report is written when other data come with the heartbeat."""
    for health in ("False", "True", "True"):
        await beat(twins, health=health)
    await twins.submit(twins.reporting("cls-1", **WORDS), twins.reporting("cls-1", data={"a": 2}))
    assert twins.tries.last == SKETCH
    await twins.compare()


async def test_several_reports_of_one_request(twins: Twins) -> None:
    for words in (WORDS, {}):
        reports = [make_report("dns", "True", **WORDS), make_report("apply", "True", **words)]
        submissions = tuple(Submission(report, f"rpt-{report.adapter}") for report in reports)
        await twins.submit(TakeReports(target_of("cls-1"), submissions, ANYBODY, is_brief=True))
        assert twins.tries.last == (SKETCH if words else WHOLE)
        await twins.compare()


async def test_some_need_the_whole_and_others_do_not(twins: Twins) -> None:
    other = await twins.create("2")
    await settle(twins, other)
    await twins.submit(twins.reporting("cls-1", **WORDS), twins.reporting(other, available="False/Broken"))
    assert twins.tries.last == SKETCH
    await twins.compare()
    await twins.submit(twins.reporting("cls-1", **WORDS), twins.reporting(other, **WORDS, is_brief=False))
    assert twins.tries.last == SKETCH
    await twins.compare()


async def test_what_others_do_to_it_in_the_same_transaction(twins: Twins) -> None:
    target = target_of("cls-1")
    for command in (
        Edit(target, Change(spec={"region": "eu"}), ANYBODY, accept_all),
        Edit(target, Change(labels={"team": "blue"}), ANYBODY, accept_all),
        RetireAdapter(target, "apply", ANYBODY),
        Recompute("cls-1", Cause("deadline")),
        Delete(target, ANYBODY),
    ):
        await twins.submit(twins.reporting("cls-1", **WORDS), command, twins.reporting("cls-1", **WORDS))
        assert twins.tries.last == WHOLE
        await twins.compare()
        await settle(twins)


# ── pulses of others ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_version_without_pulses_wrote_is_believed_rather_than_the_pulse(fleet: Fleet) -> None:
    """It leaves the pulse as it is, with the gists of reports that are no longer stored."""
    twins = fleet.twins
    pulse = await fleet.rewrite(lambda raw: raw)
    await twins.report("cls-1", available="False/Broken", data={"other": 1})
    await fleet.rewrite(lambda _: pulse)
    await twins.compare()
    assert await beat(twins) == WHOLE
    for adapter in ("apply", "dns", "apply", "dns"):
        await beat(twins, adapter)
    assert await beat(twins) == SKETCH


async def test_times_that_a_version_without_pulses_wrote_are_not_those_of_the_pulse(fleet: Fleet) -> None:
    """The words are those of the gist again, but since when they are true is not what the pulse says."""
    twins = fleet.twins
    pulse = await fleet.rewrite(lambda raw: raw)
    for available in ("False/Broken", "True"):
        await twins.report("cls-1", available=available, **WORDS)
    await fleet.rewrite(lambda _: pulse)
    for adapter in ("dns", "apply"):
        assert await beat(twins, adapter) == WHOLE
    assert await beat(twins) == SKETCH


async def test_pulses_of_the_version_before_are_read(fleet: Fleet) -> None:
    await fleet.rewrite(_as_before)
    await fleet.twins.compare()
    for adapter in ("dns", "apply"):
        assert await beat(fleet.twins, adapter) == WHOLE
    assert await beat(fleet.twins) == SKETCH


async def test_the_version_before_reads_ours(fleet: Fleet) -> None:
    raw = await fleet.rewrite(lambda raw: raw)
    pulse = msgspec.msgpack.decode(raw, type=_PulseBefore)
    record = (await fleet.twins.other.store.walk("", 1, EVERYTHING))[0]
    assert pulse.written_time == record.status.memory.written_time
    assert pulse.heard == tuple(adapter.last_updated for adapter in record.status.adapters)
    assert {beat.adapter: beat.id for beat in pulse.beats} == {
        adapter: stored.id for adapter, stored in record.reports.items()
    }


class _BeatBefore(Struct, array_like=True):
    """A beat as the version before knows it."""

    adapter: str
    observed_time: datetime | None
    effective_time: datetime
    last_heard: datetime
    accepted: tuple[str, ...]
    out_of_order: int
    has_verdict: bool
    last_unknown: datetime | None
    id: str


class _PulseBefore(Struct, array_like=True):
    """A pulse as the version before knows it."""

    written_time: datetime | None
    last_updated: datetime | None
    heard: tuple[datetime, ...]
    beats: tuple[_BeatBefore, ...]


def _as_before(raw: bytes) -> bytes:
    """Write a pulse as the version before does."""
    return msgspec.msgpack.encode(msgspec.msgpack.decode(raw, type=_PulseBefore))


def _rewriting_file(path: Path) -> Rewrite:
    async def rewrite(change: Callable[[bytes], bytes]) -> bytes:
        with closing(sqlite3.connect(path)) as connection, connection:
            [(pulse,)] = connection.execute("select pulse from resources where id = 'cls-1'")
            connection.execute("update resources set pulse = ? where id = 'cls-1'", (change(pulse),))
        return bytes(pulse)

    return rewrite


def _rewriting_database(url: str) -> Rewrite:
    async def rewrite(change: Callable[[bytes], bytes]) -> bytes:
        connection = await asyncpg.connect(url)
        pulse = await connection.fetchval("select pulse from resources where id = 'cls-1'")
        await connection.execute("update resources set pulse = $1 where id = 'cls-1'", change(pulse))
        await connection.close()
        return bytes(pulse)

    return rewrite
