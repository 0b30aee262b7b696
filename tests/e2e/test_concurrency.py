"""Many adapters at once, from several processes, through several replicas: no report is lost, none counts twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.e2e.audit import auditing
from tests.e2e.lanes import BASE, Channel, Lane, Plan
from tests.e2e.server import PATIENCE, ROOT, Server, run_command, running

pytestmark = pytest.mark.long

ADAPTERS: Final = [f"adapter-{number:02}" for number in range(1, 13)]
PROCESSES: Final = 3
POLICY: Final = f"""
requiredAdapters: [{", ".join(ADAPTERS)}]
clusterConditions:
  - type: AllDone
    evaluate: {{expr: 'all(requiredAdapters, .state == "Completed")'}}
  - type: SomeFailed
    evaluate: {{expr: 'any(requiredAdapters, .state == "Failed")'}}
phases:
  ready: {{requiredConditions: [{{type: AllDone, status: "True"}}]}}
  failed: {{requiredConditions: [{{type: SomeFailed, status: "True"}}]}}
"""


def test_a_hot_cluster_on_sqlite(tmp_path: Path) -> None:
    database = f"sqlite:{tmp_path / 'fleet.db'}"
    with running(tmp_path, database, policy=write_policy(tmp_path)) as server:
        lanes = report(create_clusters(server, 1), [server], rounds=150)
        must_have_counted(server, lanes)
        assert server.stop() == 0
    must_be_stored(database, lanes)


def test_a_thousand_clusters_on_sqlite(tmp_path: Path) -> None:
    database = f"sqlite:{tmp_path / 'fleet.db'}"
    with running(tmp_path, database, policy=write_policy(tmp_path)) as server:
        lanes = report(create_clusters(server, 1_000), [server], at_once=8)
        must_have_counted(server, lanes)
        assert server.stop() == 0
    must_be_stored(database, lanes)


def test_a_hot_cluster_of_two_replicas_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    assert run_command("db", "migrate", database=postgres_url).returncode == 0
    policy = write_policy(tmp_path)
    with running(tmp_path, postgres_url, policy=policy) as one, running(tmp_path, postgres_url, policy=policy) as other:
        lanes = report(create_clusters(one, 1), [one, other], rounds=100)
        must_have_counted(other, lanes)
        assert [one.stop(), other.stop()] == [0, 0]
    must_be_stored(postgres_url, lanes)


def test_a_thousand_clusters_of_two_replicas_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    assert run_command("db", "migrate", database=postgres_url).returncode == 0
    policy = write_policy(tmp_path)
    with running(tmp_path, postgres_url, policy=policy) as one, running(tmp_path, postgres_url, policy=policy) as other:
        lanes = report(create_clusters(one, 1_000), [one, other], at_once=8)
        must_have_counted(other, lanes)
        assert [one.stop(), other.stop()] == [0, 0]
    must_be_stored(postgres_url, lanes)


def write_policy(directory: Path) -> str:
    """Write the policy that requires all twelve adapters; return the path."""
    file = directory / "policy.yaml"
    file.write_text(POLICY)
    return str(file)


def create_clusters(server: Server, number: int) -> list[str]:
    """Create clusters, several at once, and return their ids."""
    names = iter(range(number))

    async def create_some() -> list[str]:
        channel = Channel(lambda: server.port)
        bodies = ({"name": f"busy-{name}", "spec": {}} for name in names)
        answers = [await channel.request("POST", f"{BASE}/clusters", body) for body in bodies]
        channel.close()
        return [answer["id"] for _, answer in answers]

    async def create_all() -> list[str]:
        return [id_ for ids in await asyncio.gather(*(create_some() for _ in range(16))) for id_ in ids]

    return asyncio.run(create_all())


def report(clusters: list[str], servers: Iterable[Server], *, rounds: int = 1, at_once: int = 1) -> list[Lane]:
    """Let every adapter report on all clusters, the adapters spread over processes; return what they remember."""
    ports = [server.port for server in servers]
    plans = [Plan(ports, ADAPTERS[each::PROCESSES], clusters, rounds, at_once) for each in range(PROCESSES)]
    processes = [_begin(plan) for plan in plans]
    answers = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return [lane for answer in answers for lane in msgspec.json.decode(answer, type=list[Lane])]


def _begin(plan: Plan) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.lanes"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(plan))
    process.stdin.close()
    process.stdin = None  # `communicate` would close it once more
    return process


def must_have_counted(server: Server, lanes: Sequence[Lane]) -> None:
    """Compare what was sent with what the fleet's books say of each adapter."""
    assert {status for lane in lanes for status in lane.answers} == {200}
    sent = {adapter: sum(lane.sent for lane in lanes if lane.adapter == adapter) for adapter in ADAPTERS}
    items = server.http.get("/adapters").raise_for_status().json()["items"]
    assert {item["name"]: item["reports"]["aggregated"] for item in items} == sent


def must_be_stored(database: str, lanes: Sequence[Lane]) -> None:
    """Audit a database that nobody writes to any more; of each lane the last report must be the one that counts."""
    assert all(lane.last == lane.sent for lane in lanes)

    async def audit() -> list[str]:
        async with auditing(database) as books:
            return await books.find_faults(lanes)

    faults = asyncio.run(audit())
    assert not faults, "\n".join(faults[:20])
