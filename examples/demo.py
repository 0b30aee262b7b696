"""`make run`: the whole system on its embedded default, with a small fleet that lives.

Starts a real server on a database that is thrown away, creates clusters and plays their adapters over HTTP. Ends with
Ctrl-C, or by itself after the number of rounds given as the first argument.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

BASE: Final = "/api/hyperfleet/v1"
ADAPTERS: Final = ("validation", "dns", "infrastructure", "hypershift")
REGIONS: Final = ("us-east-1", "eu-west-1", "ap-south-1")
PAUSE: Final = 2.0  # seconds between rounds

DONE: Final = ("True", "JobSucceeded", "done")
BUSY: Final = ("False", "JobRunning", "at work")
BROKEN: Final = ("False", "Route53Throttled", "Rate exceeded for zone example.com")

# What each adapter of a cluster says in turn; the last word is repeated.
STORIES: Final[dict[str, dict[str, list[tuple[str, str, str]]]]] = {
    "payments": {adapter: [DONE] for adapter in ADAPTERS},
    "checkout": {"validation": [BUSY, DONE], "dns": [BUSY, BUSY, DONE], "infrastructure": [BUSY] * 4 + [DONE]},
    "search": {"validation": [DONE], "dns": [BUSY, BROKEN], "infrastructure": [DONE]},
    "mail": {"validation": [DONE], "dns": [BROKEN], "infrastructure": [DONE], "hypershift": [DONE]},
    "ledger": {"validation": [BUSY]},
    "archive": {},
}


def main() -> None:
    """Run the demo."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="hyperfleet-demo-") as directory, serving(Path(directory)) as address:
        introduce(address)
        try:
            live(httpx.Client(base_url=address + BASE, timeout=10), rounds)
        except KeyboardInterrupt:
            print("\nStopped; the demo's database is gone.")


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """Run a server on any free port; yield its address."""
    command = [sys.executable, "-m", "hyperfleet", "serve", "--listen", "127.0.0.1:0", "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True)  # noqa: S603  # our own
    try:
        assert server.stderr is not None  # noqa: S101  # it is a pipe
        for line in server.stderr:
            if line.startswith("Listening on "):
                # Somebody must go on reading, or the server stands still once the pipe is full.
                threading.Thread(target=shutil.copyfileobj, args=(server.stderr, sys.stderr), daemon=True).start()
                yield line.split()[-1]
                return
        raise SystemExit("the server did not start")
    finally:
        server.terminate()
        server.wait()


def introduce(address: str) -> None:
    """Tell where to look."""
    print(f"HyperFleet is listening on {address} with a small live fleet. Look at it:\n")
    print(f"  open  {address}/docs                       what the API can do")
    for query in (
        "?fields=name,status.phase",
        "?conditions=Ready!=True&fields=name,status.conditions",
        ":summary?groupBy=phase",
    ):
        print(f"  curl '{address}/v1/clusters{query}'")
    print(
        f"  curl '{address}/v1/adapters'                  who reports, who is in the way\n\nCtrl-C ends it.", flush=True
    )


def live(client: httpx.Client, rounds: int | None) -> None:
    """Create the clusters and let their adapters report, round after round."""
    chance = random.Random(7)  # noqa: S311  # the same fleet every time
    ids = {name: create(client, name, chance) for name in STORIES}
    turn = 0
    while rounds is None or turn < rounds:
        for name, story in STORIES.items():
            for adapter, words in story.items():
                report(client, ids[name], adapter, words[min(turn, len(words) - 1)])
        turn += 1
        time.sleep(PAUSE if rounds is None else 0)
    groups = client.get("/clusters:summary", params={"groupBy": "phase"}).raise_for_status().json()["groups"]
    phases = sorted((group["phase"], group["count"]) for group in groups)
    print("Phases now: " + ", ".join(f"{phase} {count}" for phase, count in phases))


def create(client: httpx.Client, name: str, chance: random.Random) -> str:
    """Create a cluster; return its id."""
    labels = {"region": chance.choice(REGIONS), "env": chance.choice(("prod", "staging"))}
    answer = client.post("/clusters", json={"name": name, "spec": {"cloud": "aws"}, "labels": labels})
    return str(answer.raise_for_status().json()["id"])


def report(client: httpx.Client, id_: str, adapter: str, word: tuple[str, str, str]) -> None:
    """Let an adapter say something of a cluster."""
    status, reason, message = word
    body: dict[str, Any] = {
        "adapter": adapter,
        "observedGeneration": 1,
        "conditions": [
            {"type": "Available", "status": status, "reason": reason, "message": message},
            {"type": "Applied", "status": "True", "reason": "Applied"},
            {"type": "Health", "status": "True", "reason": "NoErrors"},
        ],
    }
    client.post(f"/clusters/{id_}/statuses", json=body).raise_for_status()


if __name__ == "__main__":
    main()
