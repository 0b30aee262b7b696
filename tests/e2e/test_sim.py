"""`hyperfleet sim` against a real server: what it does can be repeated, and what the server makes of it is sound."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from hyperfleet.api.wire import present
from hyperfleet.bootstrap import open_store, read_policy
from hyperfleet.model.kind import Kinds
from hyperfleet.services.policies import PolicyRegistry
from hyperfleet.services.verification import Verification
from tests.e2e.server import PATIENCE, Server, await_state, command, run_command, running

FAULTS: Final = (
    "dns=fail:0.3+slow:2x,infrastructure=flap:2m,hypershift=sick:0.1,validation=silent:10m,skew:dns=+90s,"
    "skew:hypershift=-5m,machines=stuck,*=lost:0.02+twice:0.05+late:0.1"
)
FLEET: Final = ("--clusters", "12", "--duration", "2h", "--churn", "6", "--faults", FAULTS, "-o", "json")
SMALL: Final = (*FLEET, "--clusters", "5", "--duration", "1h")


def test_every_status_is_the_function_of_what_is_stored(tmp_path: Path) -> None:
    database = f"sqlite:{tmp_path / 'fleet.db'}"
    with running(tmp_path, database) as server:
        summary = simulate(server, "--speed", "max", *FLEET)
        fleet = final_state(server)
        assert server.stop() == 0
    assert summary["errors"] == {}
    assert summary["outcomes"]["aggregated"] > 1000
    assert {"OutOfOrder", "StaleGeneration"} <= summary["discards"].keys()
    assert {"created", "changed", "deleted"} <= summary["actions"].keys()
    assert sum(summary["phases"].values()) == sum(name.startswith("/") for name in fleet) > 0
    assert asyncio.run(find_faults(database)) == []


def test_the_same_seed_gives_the_same_fleet_with_any_number_of_concurrent_requests(tmp_path: Path) -> None:
    lives = []
    for at_once in ("1", "16"):
        directory = tmp_path / at_once
        directory.mkdir()
        with running(directory, "memory:") as server:
            summary = simulate(server, "--speed", "max", "--at-once", at_once, *SMALL)
            lives.append((final_state(server), summary["outcomes"], summary["discards"], summary["actions"]))
    assert lives[0] == lives[1]


def test_another_seed_gives_another_fleet(tmp_path: Path) -> None:
    with running(tmp_path, "memory:") as server:
        one = simulate(server, "--speed", "max", "--seed", "1", *SMALL)
        other = simulate(server, "--speed", "max", "--seed", "2", *SMALL)
    assert one["outcomes"] != other["outcomes"]
    assert other["resynchronised"] > 0, "the names were taken, and taken over"
    assert other["errors"] == {}


def test_it_retries_while_a_killed_server_restarts(tmp_path: Path) -> None:
    address = f"127.0.0.1:{find_port()}"
    database = f"sqlite:{tmp_path / 'fleet.db'}"
    with running(tmp_path, database, listen=address) as server:
        with simulating(server, "--speed", "900", "--heartbeat", "1m", *SMALL) as process:
            await_state(lambda: count(server) >= 3)
            server.kill9()
            server.start()
            summary = finish(process)
        assert server.stop() == 0
    assert summary["errors"] == {}
    assert asyncio.run(find_faults(database)) == []


def test_a_server_without_its_data_gets_everything_again(tmp_path: Path) -> None:
    with running(tmp_path, "memory:", listen=f"127.0.0.1:{find_port()}") as server:
        steady = ("--churn", "0", "--faults", "none", "--clusters", "5", "--duration", "30m", "-o", "json")
        with simulating(server, "--speed", "900", "--heartbeat", "1m", *steady) as process:
            await_state(lambda: count(server) == 5)
            server.kill9()
            server.start()
            summary = finish(process)
        assert summary["resynchronised"] >= 5
        assert summary["errors"] == {}
        assert summary["phases"] == {"Ready": 5}


def test_ctrl_c_ends_it_with_a_summary(tmp_path: Path) -> None:
    with running(tmp_path, "memory:") as server, simulating(server, "--speed", "100", "-o", "json") as process:
        await_state(lambda: count(server) > 0)
        process.send_signal(signal.SIGINT)
        summary = finish(process, code=130)
        assert summary["actions"]["created"] > 0


def test_it_gives_up_when_the_server_stays_away(tmp_path: Path) -> None:
    with running(tmp_path, "memory:") as server:
        with simulating(server, "--speed", "100", "--patience", "1s", "-o", "json") as process:
            await_state(lambda: count(server) > 0)
            server.kill9()
            summary = finish(process, code=69)
        assert summary["actions"]["created"] > 0, "what was counted is told all the same"


def test_errors_are_reported() -> None:
    nobody = run_command("sim", "--server", f"http://127.0.0.1:{find_port()}")
    assert nobody.returncode == 69
    assert nobody.stderr.startswith("Error: cannot connect to http://127.0.0.1:")
    wrong = run_command("sim", "--faults", "dsn=fail,dns=fial")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines() == [
        'Error: --faults: "dsn=fail": no adapter "dsn" is simulated, did you mean "dns"?',
        '  "dns=fial": "fial" is not a fault, did you mean "fail"?',
    ]


def test_the_rate_is_limited(tmp_path: Path) -> None:
    few = ("--clusters", "3", "--duration", "2m", "--faults", "none", "-o", "json")
    with running(tmp_path, "memory:") as server:
        summary = simulate(server, "--speed", "max", "--reports-per-second", "20", *few)
    assert summary["reportsPerSecond"] <= 21


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def simulate(server: Server, *arguments: str) -> dict[str, Any]:
    """Run a simulation to its end; return its summary."""
    with simulating(server, *arguments) as process:
        return finish(process)


@contextmanager
def simulating(server: Server, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a simulation beside the block."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HYPERFLEET_")}
    with subprocess.Popen(  # noqa: S603  # our own command
        command("sim", "--server", server.url, *arguments),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
    """Wait for the end of a simulation; return its summary."""
    told, said = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == code, said
    summary: dict[str, Any] = msgspec.json.decode(told)
    return summary


def final_state(server: Server) -> dict[str, Any]:
    """Return everything that does not depend on when it happened, by name."""
    items = [
        item
        for kind in ("clusters", "nodepools")
        for item in server.http.get(f"/{kind}", params={"limit": 500}).raise_for_status().json()["items"]
    ]
    names = {item["id"]: item["name"] for item in items}
    return {f"{names.get(item['metadata'].get('clusterId'), '')}/{item['name']}": _timeless(item) for item in items}


def _timeless(item: dict[str, Any]) -> tuple[Any, ...]:
    status = item["status"]
    conditions = [(each["type"], each["status"], each["reason"], each["message"]) for each in status["conditions"]]
    adapters = [(each["name"], each["state"], each["observedGeneration"]) for each in status["adapters"]]
    return item["generation"], item["spec"], status["phase"], conditions, adapters


def count(server: Server) -> int:
    """Return how many clusters there are."""
    return int(server.http.get("/clusters:summary", params={"groupBy": "phase"}).json()["total"])


def find_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def find_faults(database: str) -> list[str]:
    """Compute every stored status again, and follow every history."""
    store = open_store(database)
    await store.open()
    try:
        book = PolicyRegistry(store, Kinds(), present, lambda: read_policy(None))
        await book.refresh()
        verification = Verification(store, book.rules)
        findings = [str(finding) async for finding in verification.run()]
        assert verification.checked > 0
        return findings
    finally:
        await store.close()
