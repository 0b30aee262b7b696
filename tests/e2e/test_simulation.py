"""What if, against a real server: what the stream foretells is what comes when the policy file is read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.candidates import FAMILIES, FEWER_ADAPTERS, MORE_ADAPTERS, OTHER_RULES, State, foretell, states_of
from tests.e2e.server import Server, await_state, running
from tests.world import body


def build(server: Server) -> None:
    """Make a small fleet: one cluster with node pools, one that failed, one that nobody reported on."""
    for name, dns in (("whole", "True"), ("failed", "False/Broken/no such zone"), ("silent", "")):
        cluster = server.http.post("/clusters", json={"name": name, "spec": {}, "labels": {"env": "prod"}}).json()
        path = f"/clusters/{cluster['id']}"
        pool = server.http.post(f"{path}/nodepools", json={"name": "pool", "spec": {}}).json()
        if dns:
            server.http.post(f"{path}/statuses", json=body("validation", "True"))
            server.http.post(f"{path}/statuses", json=body("dns", dns))
            server.http.post(f"{path}/nodepools/{pool['id']}/statuses", json=body("nodepool", "True"))


def states(server: Server) -> dict[str, State]:
    return states_of(*(server.http.get(f"/{kind}").json()["items"] for kind in ("clusters", "nodepools")))


def simulate(server: Server, policy: str) -> Any:
    headers = {"Content-Type": "application/yaml", "Accept": "text/event-stream"}
    stream = server.http.post("/policy:simulate", content=policy, headers=headers).text
    name, data = stream.rstrip().splitlines()[-2:]
    assert name == "event: result", stream
    return json.loads(data.removeprefix("data: "))


def test_what_is_predicted_comes_true(tmp_path: Path, database: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(MORE_ADAPTERS)
    with running(tmp_path, database, policy=str(file)) as server:
        build(server)
        for candidate in (FEWER_ADAPTERS, FAMILIES, OTHER_RULES):
            before, answer = states(server), simulate(server, candidate)
            assert answer["changed"]
            assert states(server) == before
            file.write_text(candidate)
            server.http.post("/policy:reload")
            await_state(lambda: server.http.get("/policy").json()["recomputation"]["remaining"] == 0)
            assert states(server) == foretell(before, answer["changes"])
