"""`python -m bench hostile`: while a caller sends what costs most, how long does somebody else wait?

Each body goes to a real server on SQLite while another client asks for `/healthz` again and again. What counts is the
processor time that the server uses during the longest of these requests, as the kernel charges it (in steps of 10 ms).
"""

from __future__ import annotations

import asyncio
import gzip
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from msgspec import Struct, field

from tests.e2e.server import Server, running
from tests.servers import temporary_directory
from tests.world import body

_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")
_JSON: Final = {"Content-Type": "application/json"}
_YAML: Final = {"Content-Type": "application/yaml"}
_REPORT: Final = body("dns", "True")


class Attack(Struct, frozen=True):
    """One expensive request."""

    name: str
    path: str
    content: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: _JSON)


def main(_: Sequence[str]) -> None:
    """Send each attack, and print what it cost and what others noticed."""
    with temporary_directory() as directory, running(directory, f"sqlite:{directory / 'fleet.db'}") as server:
        cluster = server.http.post("/clusters", json={"name": "victim", "spec": {}}).json()["id"]
        print("| request | bytes | status | answer, bytes | CPU s | others wait at most, CPU ms |")
        print("|---|---|---|---|---|---|")
        for attack in attacks(cluster):
            print(asyncio.run(_measure(server, attack)), flush=True)


def attacks(cluster: str) -> Iterator[Attack]:
    """Yield requests at and above the limits."""
    path = f"/clusters/{cluster}/statuses"
    yield _batch("1,000 reports of 4,000 values", cluster, {**_REPORT, "data": {"x": [1] * 4_000}})
    yield _batch("1,000 reports of 170 values", cluster, {**_REPORT, "data": {"x": [1] * 170}})
    yield _batch("1,000 reports of 2,600 empty conditions", cluster, {**_REPORT, "conditions": [{}] * 2_600})
    yield Attack("a report with 70,000 unknown keys", path, _keys(_REPORT, 70_000))
    yield Attack("a report with 19,000 unknown keys", path, _keys(_REPORT, 19_000))
    secrets = {f"k{number}": f"password: abc{number}" for number in range(19_000)}
    yield Attack("a report with 19,000 secrets", path, msgspec.json.encode({**_REPORT, "data": secrets}))
    texts = ["password: " * 6_500] * 15
    yield Attack("a report with 15 long texts", path, msgspec.json.encode({**_REPORT, "data": {"x": texts}}))
    yield Attack("60,000 unknown keys of a cluster", "/clusters", _keys({"name": "x", "spec": {}}, 60_000))
    yield Attack("19,000 unknown keys of a cluster", "/clusters", _keys({"name": "x", "spec": {}}, 19_000))
    unknown = "".join(f"k{number}: 1\n" for number in range(20_000))
    yield Attack("a policy with 20,000 unknown keys", "/policy:simulate", unknown.encode(), _YAML)
    rules = [f"  - {{type: T{each}, evaluate: {{expr: 'len(map(1..9000, #*2)) > 0'}}}}\n" for each in range(200)]
    policy = "requiredAdapters: [a]\nclusterConditions:\n" + "".join(rules)
    yield Attack("a policy with 200 expensive rules", "/policy:simulate", policy.encode(), _YAML)


def _batch(name: str, cluster: str, report: dict[str, Any]) -> Attack:
    content = msgspec.json.encode({"reports": [{"clusterId": cluster, **report}] * 1_000})
    return Attack(name, "/statuses:batch", gzip.compress(content, 1), {**_JSON, "Content-Encoding": "gzip"})


def _keys(around: dict[str, Any], number: int) -> bytes:
    return msgspec.json.encode({**around, **{f"spek{each}": each for each in range(number)}})


async def _measure(server: Server, attack: Attack) -> str:
    """Send one attack; return its row of the table."""
    waits: list[float] = []
    async with httpx.AsyncClient(base_url=server.api, timeout=120) as attacker:
        asking = asyncio.create_task(_ask_for_health(server, waits))
        await asyncio.sleep(0.1)
        used = _cpu_of(server)
        answer = await attacker.post(attack.path, content=attack.content, headers=attack.headers)
        used = _cpu_of(server) - used
        asking.cancel()
    sizes = f"{len(attack.content):,} | {answer.status_code} | {len(answer.content):,}"
    return f"| {attack.name} | {sizes} | {used:.2f} | {max(waits, default=0) * 1_000:.0f} |"


async def _ask_for_health(server: Server, waits: list[float]) -> None:
    async with httpx.AsyncClient(timeout=120) as client:
        while True:
            used, began = _cpu_of(server), time.perf_counter()
            await client.get(f"{server.url}/healthz")
            waits.append(min(_cpu_of(server) - used, time.perf_counter() - began))
            await asyncio.sleep(0.005)


def _cpu_of(server: Server) -> float:
    """Return the processor time of a server in seconds."""
    fields = Path(f"/proc/{server.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK
