"""The log of a real server: every line is an object that says to which request it belongs, and none has a secret."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.server import Server, await_state, run_command, running
from tests.servers import PostgresServer
from tests.world import body

SECRET = "swordfish-0123456789"  # noqa: S105  # opens nothing


def read_log(server: Server) -> list[dict[str, Any]]:
    """Return the lines of a log, all of which must be objects."""
    return [json.loads(line) for line in server.log.splitlines()]


def test_every_line_of_a_life_is_an_object(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("requiredAdapters: [dns]\n")
    settings = {"log_format": "json", "log_level": "debug", "policy": str(policy)}
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", **settings) as server:
        server.http.post("/clusters", json={"name": "one", "spec": {}}).raise_for_status()
        policy.write_text("nonsense: [\n")
        server.reload()
        await_state(lambda: "the policy was not reloaded" in server.log)
        server.stop()
        lines = read_log(server)
    for line in lines:
        assert {"time", "level", "logger", "message", "process"} <= line.keys()
        assert line["time"].endswith("Z")
    assert lines[-1]["message"] == "stopped: everything that was accepted is written"


@pytest.mark.parametrize(
    ("policy", "code", "words"),
    [("nonsense: 1\n", 2, "nonsense"), ("requiredAdapters: [dns]\n", 69, "in use by another program")],
)
def test_also_why_it_does_not_start_is_an_object(tmp_path: Path, policy: str, code: int, words: str) -> None:
    (tmp_path / "policy.yaml").write_text(policy)
    with socket.create_server(("127.0.0.1", 0)) as busy:
        listen = f"127.0.0.1:{busy.getsockname()[1] if code == 69 else 0}"
        settings = {"listen": listen, "database": "memory:", "policy": str(tmp_path / "policy.yaml")}
        done = run_command("serve", log_format="json", **settings)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, lines[-1]["level"]) == (code, "critical")
    assert words in lines[-1]["message"]


def test_the_access_log_has_a_line_for_each_request_whatever_way_it_takes(tmp_path: Path) -> None:
    settings = {"log_format": "json", "access_log": "true"}
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", **settings) as server:
        headers = {"Authorization": f"Bearer {SECRET}", "X-Request-Id": "mine-1"}
        created = server.http.post("/clusters", json={"name": "one", "spec": {}}, headers=headers).json()
        path = f"/clusters/{created['id']}"
        server.http.post(f"{path}/statuses", json=body("dns", "True"), headers={**headers, "X-Request-Id": "mine-2"})
        answer = server.http.get(path, headers={**headers, "X-Request-Id": "mine-3"})
        server.http.get(f"/strange?token={SECRET}", headers={**headers, "X-Request-Id": "mine-4"})
        server.stop()
        found = [line for line in read_log(server) if line["logger"] == "hyperfleet.api.access_log"]
    base = "/api/hyperfleet/v1/clusters"
    assert [(each["request_id"], each["method"], each["route"], each["status"]) for each in found] == [
        ("mine-1", "POST", base, 201),
        ("mine-2", "POST", f"{base}/{{clusterId}}/statuses", 200),
        ("mine-3", "GET", f"{base}/{{clusterId}}", 200),
        ("mine-4", "GET", "unmatched", 404),
    ]
    assert found[2]["bytes"] == len(answer.content)
    assert all(each["remote"] == "127.0.0.1" and each["duration_ms"] > 0 for each in found)
    assert SECRET not in server.log


def test_what_fails_is_told_with_its_request_and_without_secrets(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.url()
    password = urlsplit(url).password
    assert password
    assert run_command("db", "migrate", database=url).returncode == 0
    with running(tmp_path, url, log_format="json") as server:
        postgres_server.kill9()
        for number, path in enumerate(("/clusters/c1", "/clusters"), 1):  # the fast lane, and the ordinary way
            headers = {"X-Request-Id": f"lost-{number}", "Authorization": f"Bearer {SECRET}"}
            assert server.http.get(path, headers=headers).status_code == 503
        server.stop()
        told = {line.get("request_id"): line for line in read_log(server)}
    assert {"lost-1", "lost-2"} <= told.keys()
    assert all("StoreUnavailable" in told[f"lost-{number}"]["message"] for number in (1, 2))
    assert SECRET not in server.log
    assert password not in server.log
