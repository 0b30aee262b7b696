"""Two replicas that remember nothing write the same clusters at once: nothing is lost, and nothing is made up."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import anyio
import pytest

from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.record_cache import Doubt
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.model.kind import CLUSTER
from hyperfleet.ports import EVERYTHING
from hyperfleet.services.callers import ANYBODY
from hyperfleet.services.reports import Submission, TakeReports
from hyperfleet.services.resources import Create
from hyperfleet.services.results import Reported
from hyperfleet.services.verification import Verification
from tests.contract.conftest import DURABLE, NewStore
from tests.contract.stores import START, must_read
from tests.contract.twins import POLICY, Writer
from tests.unit.services.desk import accept_all, target_of
from tests.world import make_report

pytestmark = pytest.mark.anyio

IDS: Final = tuple(f"cls-{number}" for number in range(6))
ROUNDS: Final = 40


@pytest.fixture(params=DURABLE)
def new_forgetful(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Give what makes stores of one database that remember nothing."""
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "fleet.db", remembered=0)
    url: str = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url, remembered=0)


class Reporter:
    """Sends reports to one replica, most of which repeat what was said, and keeps which were accepted."""

    def __init__(self, writer: Writer, name: str) -> None:
        self.writer = writer
        self.accepted: list[tuple[str, str, str]] = []  # resource, adapter, report
        self.tally: Counter[str] = Counter()  # by adapter
        self._name = name
        self._random = random.Random(name)

    async def run(self) -> None:
        """Send what this replica is given."""
        for number in range(ROUNDS):
            commands = [
                self._reporting(id_, adapter, f"rpt-{self._name}-{number}-{place}-{adapter}")
                for place, id_ in enumerate(self._random.sample(IDS, 2))
                for adapter in (self._name, "shared")
            ]
            for command, result in zip(commands, await self.writer.committer.submit_all(commands), strict=True):
                assert isinstance(result, Reported), result
                [verdict] = result.verdicts
                self.tally[verdict.adapter] += 1
                if not verdict.is_replay:
                    self.accepted.append((command.target.id, verdict.adapter, verdict.report_id))

    def _reporting(self, id_: str, adapter: str, report_id: str) -> TakeReports:
        available = self._random.choice(["True"] * 9 + ["False/Broken"])
        submission = Submission(make_report(adapter, available, data={"n": 1}), report_id)
        return TakeReports(target_of(id_), (submission,), ANYBODY, is_brief=self._random.random() < 0.9)


async def test_two_replicas_lose_nothing(new_forgetful: NewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubt, "allows", lambda _: True)  # they get into each other's way, and yet go on trying
    stores = [new_forgetful(), new_forgetful()]
    await stores[0].migrate()
    async with AsyncExitStack() as stack:
        reporters = []
        for store, name in zip(stores, ("dns", "apply"), strict=True):
            writer = Writer(store)
            await store.open()
            stack.push_async_callback(store.close)
            await writer.use(POLICY)
            writer.committer.start()
            stack.push_async_callback(writer.committer.close)
            reporters.append(Reporter(writer, name))
        for id_ in IDS:
            await reporters[0].writer.committer.submit(
                Create(kind=CLUSTER, id=id_, name=id_, spec={}, labels={}, caller=ANYBODY, check_spec=accept_all)
            )
        async with anyio.create_task_group() as group:
            for reporter in reporters:
                group.start_soon(reporter.run)
        await assert_nothing_is_lost(reporters)


async def assert_nothing_is_lost(reporters: list[Reporter]) -> None:
    """See that all that was accepted is there, each once, and what follows from it too."""
    writer = reporters[0].writer
    store = writer.store
    logs = {id_: await store.read_report_log(id_, EVERYTHING, START) for id_ in IDS}
    logged = [(id_, each.report.adapter, each.id) for id_, log in logs.items() for each in log]
    assert sorted(logged) == sorted(each for reporter in reporters for each in reporter.accepted)
    tallies = {each.name: sum(each.counts.values()) for each in await store.adapters(EVERYTHING)}
    assert tallies == sum((reporter.tally for reporter in reporters), Counter())
    events = (await store.read_events(0, 10_000)).entries
    assert [each.position for each in events] == list(range(1, await store.position() + 1))
    for id_, log in logs.items():
        record = await must_read(store, id_)
        assert {name: each.id for name, each in record.reports.items()} == {
            each.report.adapter: each.id for each in log
        }
        assert record.revision == max(each.position for each in events if each.resource_id == id_)
    assert [str(finding) async for finding in Verification(store, writer.policies.rules).run()] == []
