"""The policy at run time, with real processes: every replica follows, a restart undoes nothing, a changed file wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.e2e.server import Server, await_state, migrated, run_command, running
from tests.e2e.test_lifecycle import POLICY, condition_of, create, must_be_in_order, remaining, replicas

APPLIED: Final = POLICY.format(condition="Applied", threshold="1h")
NEWER: Final = POLICY.format(condition="Newer", threshold="1h")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a policy file."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(condition="Done", threshold="1h"))
    return file


def put(server: Server, text: str, version: int) -> httpx.Response:
    """Put a policy in force in place of a version."""
    headers = {"If-Match": f'"{version}"', "Content-Type": "application/yaml"}
    return server.http.put("/policy", content=text, headers=headers)


def in_force(server: Server) -> dict[str, Any]:
    """Return the policy in force."""
    found: dict[str, Any] = server.http.get("/policy").raise_for_status().json()
    return found


def test_a_policy_that_one_replica_takes_is_in_force_on_all(tmp_path: Path, postgres_url: str, file: Path) -> None:
    database = migrated(postgres_url)
    with replicas(tmp_path, database, file) as (one, other):
        old = [create(one, f"old-{number}") for number in range(100)]  # more than are computed together
        assert put(one, APPLIED, 1).raise_for_status().json()["version"] == 2
        assert condition_of(other, create(other, "new")) == "Applied"
        await_state(lambda: remaining(other) == 0)
        assert {condition_of(other, cluster) for cluster in old} == {"Applied"}
        assert "applied by anonymous) is in force instead of policy version 1 (digest " in other.log
        assert put(other, NEWER, 1).status_code == 412
        assert other.http.post("/policy:rollback", json={"version": 1}, headers={"If-Match": '"2"'}).status_code == 200
        assert condition_of(one, create(one, "newer")) == "Done"
        await_state(lambda: remaining(one) == 0)
        assert {condition_of(one, cluster) for cluster in old} == {"Done"}
        assert [one.stop(), other.stop()] == [0, 0]
    must_be_in_order(database)


def test_a_replica_that_nobody_writes_to_follows_by_itself(tmp_path: Path, postgres_url: str, file: Path) -> None:
    with replicas(tmp_path, migrated(postgres_url), file) as (one, other):
        put(one, APPLIED, 1).raise_for_status()
        await_state(lambda: "policy version 2 (digest " in other.log)


def test_a_restart_undoes_nothing_and_a_changed_file_wins(tmp_path: Path, database: str, file: Path) -> None:
    with running(tmp_path, database, policy=str(file)) as server:
        cluster = create(server, "a")
        put(server, APPLIED, 1).raise_for_status()
        assert server.stop() == 0
        server.start()
        assert (in_force(server)["version"], in_force(server)["source"]) == (2, "api")
        assert f"the policy in {file} is not in force" in server.log
        await_state(lambda: condition_of(server, cluster) == "Applied")
        assert server.stop() == 0
        file.write_text(NEWER)
        server.start()
        assert (in_force(server)["version"], in_force(server)["source"]) == (3, "file")
        await_state(lambda: condition_of(server, cluster) == "Newer")
        assert server.stop() == 0
    must_be_in_order(database)


def test_a_signal_does_not_undo_what_was_applied(tmp_path: Path, file: Path) -> None:
    """SIGHUP is also how a log that was moved away is opened again."""
    with running(tmp_path, "memory:", policy=str(file)) as server:
        put(server, APPLIED, 1).raise_for_status()
        server.reload()
        await_state(lambda: "the policy was reloaded: version 2 is in force" in server.log)
        assert in_force(server)["source"] == "api"
        file.write_text(NEWER)
        server.reload()
        await_state(lambda: in_force(server)["version"] == 3)


def test_from_the_command_line(tmp_path: Path, file: Path) -> None:
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text(APPLIED)
    with running(tmp_path, "memory:", policy=str(file)) as server:
        cluster = create(server, "a")
        applied = run_command("rules", "apply", "-f", str(candidate), "--yes", "--server", server.url)
        assert (applied.returncode, applied.stdout.splitlines()[-1]) == (0, "policy version 2 is in force")
        assert "1 resource examined: " in applied.stderr
        await_state(lambda: condition_of(server, cluster) == "Applied")
        shown = run_command("rules", "versions", "2", "--server", server.url)
        assert shown.stdout == APPLIED
        rolled_back = run_command("rules", "rollback", "1", "--yes", "--server", server.url)
        assert rolled_back.stdout.splitlines()[-1] == "policy version 3 is in force"
        await_state(lambda: condition_of(server, cluster) == "Done")
