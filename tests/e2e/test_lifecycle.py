"""Starting, stopping, starting again: nothing begun is dropped, nothing due forgotten, nothing foreign touched."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from hyperfleet.backends.rows import from_micros
from tests.e2e.audit import auditing, query
from tests.e2e.server import PATIENCE, Server, await_state, migrated, run_command, running
from tests.servers import PostgresServer
from tests.world import body

POLICY: Final = """
requiredAdapters: [dns]
clusterConditions:
  - type: {condition}
    evaluate: {{expr: 'all(requiredAdapters, .state == "Completed")'}}
phases: {{ready: {{requiredConditions: [{{type: {condition}, status: "True"}}]}}}}
policies: {{staleThreshold: {threshold}, staleAction: degraded}}
"""

DOUBTFUL: Final = """
requiredAdapters: [dns]
clusterConditions:
  - type: Haunted
    evaluate: {{expr: 'adapters["{ghost}"].state == "Completed"'}}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Give a policy file."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(condition="Done", threshold="1h"))
    return file


@pytest.fixture
def shared_database(postgres_url: str) -> str:
    """Give an empty database that several replicas can use."""
    return migrated(postgres_url)


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_address_may_be_a_name(tmp_path: Path) -> None:
    with running(tmp_path, "memory:", listen="localhost:0") as server:
        assert server.http.get("/clusters").status_code == 200


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stopping_server_finishes_what_was_begun(tmp_path: Path, database: str) -> None:
    with running(tmp_path, database) as server:
        must_finish_what_was_begun(server)


def test_several_workers_finish_what_was_begun(tmp_path: Path, shared_database: str) -> None:
    with running(tmp_path, shared_database, workers="2") as server:
        must_finish_what_was_begun(server)


def must_finish_what_was_begun(server: Server) -> None:
    """Stop a server that is in the middle of requests; then look whether they were done."""
    writes = [SlowWrite(server, "/clusters", f'{{"name": "slow-{number}", "spec": {{}}}}') for number in range(8)]
    server.terminate()
    await_state(lambda: not is_listening(server))
    assert not server.is_ready()
    assert server.is_running()
    assert [write.finish() for write in writes] == [201] * len(writes)
    assert server.wait() == 0
    assert "Traceback" not in server.log
    server.start()
    assert len(server.http.get("/clusters").json()["items"]) == len(writes)


def test_a_stopping_server_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", drain_timeout="100ms") as server:
        endless = SlowWrite(server, "/clusters", '{"name": "endless", "spec": {}}')
        assert server.stop() == 0
        assert "some requests were not complete after 100ms" in server.log
        endless.give_up()


# ── several workers ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bad_policy_costs_no_worker(tmp_path: Path, shared_database: str, policy: Path) -> None:
    with running(tmp_path, shared_database, workers="2", policy=str(policy)) as server:
        before = workers(server)
        policy.write_text("requiredAdapters: 5\n")
        server.reload()
        await_state(lambda: "the policy was not reloaded" in server.log)
        policy.write_text(POLICY.format(condition="Finished", threshold="1h"))
        server.reload()
        await_state(lambda: "the policy was reloaded: version 2 is in force" in server.log)
        assert [condition_of(server, create(server, f"a-{number}")) for number in range(8)] == ["Finished"] * 8
        await_state(lambda: server.log.count("is in force instead of policy version 1 ") == 2)  # each of them knows
        assert workers(server) == before
        assert server.stop() == 0


def test_a_worker_that_dies_is_replaced(tmp_path: Path, shared_database: str, policy: Path) -> None:
    with running(tmp_path, shared_database, workers="2", policy=str(policy)) as server:
        first, second = workers(server)
        policy.write_text("requiredAdapters: 5\n")  # nobody asked for it to be read
        os.kill(second, signal.SIGKILL)
        await_state(lambda: workers(server)[1] != second)
        await_state(lambda: f"process {workers(server)[1]} accepts requests" in server.log)
        assert f"worker 2 (process {second}) was killed by signal 9" in server.log
        assert workers(server)[0] == first
        assert server.stop() == 0


def test_workers_die_with_their_supervisor(tmp_path: Path, shared_database: str) -> None:
    with running(tmp_path, shared_database, workers="2") as server:
        orphans = workers(server)
        server.kill9()
        await_state(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans))
        assert not is_listening(server)


def test_a_worker_that_hangs_is_killed(tmp_path: Path, shared_database: str) -> None:
    with running(tmp_path, shared_database, workers="2", drain_timeout="100ms") as server:
        _, second = workers(server)
        os.kill(second, signal.SIGSTOP)
        assert server.stop() == 1
        assert f"worker 2 (process {second}) did not stop within 5.1s: it was killed" in server.log
        assert not Path(f"/proc/{second}").exists()


@pytest.mark.parametrize("count", ["1", "3"])
def test_what_keeps_workers_from_starting_is_told_once(postgres_url: str, count: str) -> None:
    refused = run_command("serve", database=postgres_url, listen="127.0.0.1:0", workers=count)
    assert refused.returncode == 2
    assert refused.stderr.count("Error: ") == 1
    assert "run: hyperfleet db migrate" in refused.stderr
    migrated(postgres_url)
    refused = run_command("serve", database=postgres_url, listen="127.0.0.1:0", workers=count, policy="none.yaml")
    assert refused.returncode == 2
    assert refused.stderr.count("Error: ") == 1
    assert "none.yaml: policy: No such file or directory" in refused.stderr


@pytest.mark.parametrize("is_shared", [False, True])
def test_workers_share_their_address_with_nobody_else(shared_database: str, is_shared: bool) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=is_shared) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run_command("serve", database=shared_database, listen=address, workers="2")
    assert refused.returncode == 69
    assert f"{address} is in use by another program" in refused.stderr


# ── deadlines ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deadline_that_passed_while_nobody_ran_is_kept(tmp_path: Path, database: str, policy: Path) -> None:
    policy.write_text(POLICY.format(condition="Done", threshold="2s"))
    with running(tmp_path, database, policy=str(policy)) as server:
        cluster = kill_before_the_deadline(server, database)
        await_state(lambda: deadline(database, cluster) < datetime.now(UTC))
        server.start()
        await_state(lambda: read(server, cluster)["status"]["phase"] == "Degraded")
        assert read(server, cluster)["status"]["adapters"][0]["stale"] is True
        assert server.stop() == 0
    assert phases(database, cluster) == ["Pending", "Ready", "Degraded"]
    must_be_in_order(database)


def kill_before_the_deadline(server: Server, database: str) -> str:
    """Kill a server while a deadline is still to come, however slow the machine is; return whose it is."""
    for number in range(10):
        cluster = create(server, f"sleeper-{number}")
        report(server, cluster)
        server.kill9()
        if phases(database, cluster) == ["Pending", "Ready"]:
            return cluster
        server.start()
    raise TimeoutError("the deadline came before the kill ten times in a row")


def test_of_two_replicas_one_keeps_each_deadline(tmp_path: Path, shared_database: str, policy: Path) -> None:
    policy.write_text(POLICY.format(condition="Done", threshold="1s"))
    with replicas(tmp_path, shared_database, policy) as (one, other):
        clusters = [create(one, f"sleeper-{number}") for number in range(30)]
        for cluster in clusters:
            report(one, cluster)
        await_state(lambda: all(read(other, cluster)["status"]["phase"] == "Degraded" for cluster in clusters))
        assert [one.stop(), other.stop()] == [0, 0]
    for cluster in clusters:
        assert phases(shared_database, cluster) == ["Pending", "Ready", "Degraded"]
    must_be_in_order(shared_database)


# ── policies ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_policy_at_the_start_is_applied_to_everything(tmp_path: Path, database: str, policy: Path) -> None:
    with running(tmp_path, database, policy=str(policy)) as server:
        clusters = [create(server, f"old-{number}") for number in range(150)]  # more than are computed together
        assert server.stop() == 0
        policy.write_text(POLICY.format(condition="Finished", threshold="1h"))
        server.start()
        assert server.http.get("/policy").json()["version"] == 2
        await_state(lambda: remaining(server) == 0)
        assert {condition_of(server, cluster) for cluster in clusters} == {"Finished"}
        assert server.stop() == 0
    must_be_in_order(database)


def test_a_reloaded_policy_is_in_force_on_every_replica(tmp_path: Path, shared_database: str, policy: Path) -> None:
    with replicas(tmp_path, shared_database, policy) as (one, other):
        old = [create(one, f"old-{number}") for number in range(10)]
        policy.write_text(POLICY.format(condition="Finished", threshold="1h"))
        assert one.http.post("/policy:reload").json()["version"] == 2
        assert condition_of(other, create(other, "new")) == "Finished"
        for replica in (one, other):
            assert f"{policy}) is in force instead of policy version 1 (digest " in replica.log
        await_state(lambda: remaining(other) == 0)
        assert {condition_of(other, cluster) for cluster in old} == {"Finished"}
        assert [one.stop(), other.stop()] == [0, 0]
    must_be_in_order(shared_database)


def test_a_policy_with_problems_changes_nothing(tmp_path: Path, policy: Path) -> None:
    with running(tmp_path, "memory:", policy=str(policy)) as server:
        policy.write_text("requiredAdapters: [dns]\nclusterConditions: [{type: A, evaluate: {expr: 'all('}}]\n")
        answer = server.http.post("/policy:reload")
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["line"] == 2
        server.reload()
        await_state(lambda: "the policy was not reloaded" in server.log)
        assert server.http.get("/policy").json()["version"] == 1
        assert condition_of(server, create(server, "a")) == "Done"


def test_a_signal_reloads_the_policy(tmp_path: Path, policy: Path) -> None:
    with running(tmp_path, "memory:", policy=str(policy)) as server:
        cluster = create(server, "a")
        policy.write_text(POLICY.format(condition="Finished", threshold="1h"))
        server.reload()
        await_state(lambda: condition_of(server, cluster) == "Finished")


def test_who_has_no_policy_file_goes_on_with_the_policy_in_force(tmp_path: Path, database: str, policy: Path) -> None:
    with running(tmp_path, database, policy=str(policy)) as server:
        create(server, "a")
        assert server.stop() == 0
    with running(tmp_path, database) as server:
        assert f"no policy file is configured: the policy from {policy} stays in force" in server.log
        assert server.http.post("/policy:reload").json()["version"] == 1
        assert condition_of(server, create(server, "b")) == "Done"
        assert server.stop() == 0


def test_what_is_likely_wrong_with_a_policy_is_logged(tmp_path: Path, policy: Path) -> None:
    policy.write_text(DOUBTFUL.format(ghost="ghost"))
    with running(tmp_path, "memory:", policy=str(policy)) as server:
        await_state(lambda: "names the adapter ghost" in server.log)
        policy.write_text(DOUBTFUL.format(ghost="spectre"))
        server.reload()
        await_state(lambda: "names the adapter spectre" in server.log)
        assert {each["code"] for each in server.http.get("/policy").json()["warnings"]} >= {"UnconfiguredAdapter"}


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_brought_up_to_date_by_the_server(tmp_path: Path) -> None:
    database = f"sqlite:{tmp_path / 'fleet.db'}"
    assert run_command("db", "version", database=database).stdout == "0\n"
    with running(tmp_path, database) as server:
        assert server.stop() == 0
    assert int(run_command("db", "version", database=database).stdout) >= 1


def test_postgresql_is_brought_up_to_date_by_command(postgres_url: str) -> None:
    refused = run_command("serve", database=postgres_url, listen="127.0.0.1:0")
    assert refused.returncode == 2
    assert "run: hyperfleet db migrate" in refused.stderr
    with ThreadPoolExecutor(3) as people:
        done = list(people.map(lambda _: run_command("db", "migrate", database=postgres_url), range(3)))
    assert [each.returncode for each in done] == [0, 0, 0]
    applied = [each.stdout.splitlines() for each in done]
    assert sorted(map(bool, applied)) == [False, False, True]  # by one of them, whoever it was
    assert run_command("db", "migrate", database=postgres_url).stdout == ""


def test_tables_of_a_newer_version_are_left_alone(tmp_path: Path, database: str) -> None:
    migrated(database)
    future = "insert into schema_migrations select 9999, '9999_future', min(applied_time) from schema_migrations"
    asyncio.run(query(database, future))
    refused = run_command("serve", database=database, listen="127.0.0.1:0")
    assert refused.returncode == 2
    assert "the database has schema version 9999" in refused.stderr
    assert "Traceback" not in refused.stderr


# ── when something is missing ────────────────────────────────────────────────────────────────────────────────────


def test_a_server_does_not_start_without_its_database(postgres_server: PostgresServer) -> None:
    migrated(postgres_server.url())
    postgres_server.stop()
    refused = run_command("serve", database=postgres_server.url(), listen="127.0.0.1:0")
    assert refused.returncode == 69
    assert "cannot connect to PostgreSQL" in refused.stderr
    assert "Traceback" not in refused.stderr


# ── what the tests do ────────────────────────────────────────────────────────────────────────────────────────────


class SlowWrite:
    """A write that the server has begun to read; its body is still to come."""

    def __init__(self, server: Server, path: str, body: str) -> None:
        head = (
            f"POST /v1{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        )
        self._body = body.encode()
        self._socket = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        self._socket.sendall(f"{head}Content-Length: {len(self._body)}\r\n\r\n".encode())
        assert self._socket.recv(100).startswith(b"HTTP/1.1 100 ")  # it waits for the body

    def finish(self) -> int:
        """Send the body; return the status of the answer, after which the server must hang up."""
        self._socket.sendall(self._body)
        with closing(self._socket), self._socket.makefile("rb") as answer:
            return int(answer.read().split()[1])

    def give_up(self) -> None:
        """Hang up."""
        self._socket.close()


@contextmanager
def replicas(directory: Path, database: str, policy: Path) -> Iterator[tuple[Server, Server]]:
    """Run two servers on one database."""
    with (
        running(directory, database, policy=str(policy)) as one,
        running(directory, database, policy=str(policy)) as other,
    ):
        yield one, other


def workers(server: Server) -> list[int]:
    """Return the processes of a server's workers, by the number of each."""
    said = re.findall(r"worker (\d+) \(process (\d+)\) started", server.log)
    return [pid for _, pid in sorted({int(number): int(pid) for number, pid in said}.items())]


def is_listening(server: Server) -> bool:
    """Tell whether a server takes connections."""
    try:
        socket.create_connection(("127.0.0.1", server.port), PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def try_to_create(server: Server, name: str) -> httpx.Response:
    """Ask for a cluster."""
    return server.http.post("/clusters", json={"name": name, "spec": {}})


def create(server: Server, name: str) -> str:
    """Create a cluster and return its id."""
    return str(try_to_create(server, name).raise_for_status().json()["id"])


def report(server: Server, cluster: str) -> None:
    """Let the adapter say that all is well."""
    conditions = [{"type": type_, "status": "True"} for type_ in ("Available", "Applied", "Health")]
    sent = {"adapter": "dns", "observedGeneration": 1, "conditions": conditions}
    answer = server.http.post(f"/clusters/{cluster}/statuses", json=sent).raise_for_status().json()
    assert (answer["outcome"], answer["phase"]) == ("aggregated", "Ready")


def read(server: Server, cluster: str) -> dict[str, Any]:
    """Read a cluster."""
    found: dict[str, Any] = server.http.get(f"/clusters/{cluster}").raise_for_status().json()
    return found


def condition_of(server: Server, cluster: str) -> str:
    """Return the type of the condition that the policy's only rule makes."""
    return str(read(server, cluster)["status"]["conditions"][-1]["type"])


def remaining(server: Server) -> int:
    """Return how many resources still wait to be computed under the policy in force."""
    return int(server.http.get("/policy").json()["recomputation"]["remaining"])


def phases(database: str, cluster: str) -> list[str]:
    """Return the phases that a cluster went through, as history tells them."""
    statement = "select after from transitions where resource_id = $1 and subject = 'phase' order by position"
    return [str(after) for (after,) in asyncio.run(query(database, statement, cluster))]


def deadline(database: str, cluster: str) -> datetime:
    """Return when time alone will change the status of a cluster."""
    ((instant,),) = asyncio.run(query(database, "select wake_at from resources where id = $1", cluster))
    return from_micros(instant) if isinstance(instant, int) else instant


def must_be_in_order(database: str) -> None:
    """Audit a database that nobody writes to."""

    async def audit() -> list[str]:
        async with auditing(database) as books:
            return await books.find_faults([])

    assert asyncio.run(audit()) == []


# ── the fast lanes ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_usual_takes_the_fast_lanes(tmp_path: Path) -> None:
    """The lanes answer as the ordinary way does, but for a header: only so can it be seen that a server lets them."""
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}") as server:
        cluster = create(server, "a")
        path = f"/clusters/{cluster}/statuses"
        for compression in ("identity", "gzip, zstd"):
            headers = {"Accept-Encoding": compression}
            reported = server.http.post(path, json=body("dns", "True"), headers=headers)
            put = server.http.put(f"{path}/adapters/dns", json=body("dns", "True"), headers=headers)
            assert [(each.status_code, "vary" in each.headers) for each in (reported, put)] == [(200, False)] * 2
        ordinary = server.http.post(path, json=body("dns", "True"), headers={"Prefer": "return=minimal"})
        assert "vary" in ordinary.headers
