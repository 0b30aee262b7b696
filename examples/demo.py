"""`make run`: the whole system on its embedded default, with a small fleet that lives.

Starts a real server on a database that is thrown away, creates clusters and plays their adapters over HTTP. Ends with
Ctrl-C, or by itself after the number of rounds given as the first argument.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
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
SHAKY: Final = ("False", "ProbeFailed", "The health probe timed out after 3s")

# What each adapter of a cluster says in turn; the last word is repeated.
STORIES: Final[dict[str, dict[str, list[tuple[str, str, str]]]]] = {
    "payments": {adapter: [DONE] for adapter in ADAPTERS},
    "checkout": {
        "validation": [BUSY, DONE],
        "dns": [BUSY, BUSY, DONE],
        "infrastructure": [BUSY] * 4 + [DONE],
        "hypershift": [BUSY] * 15 + [DONE],
    },
    "search": {"validation": [DONE], "dns": [BUSY, BROKEN], "infrastructure": [DONE]},
    "mail": {"validation": [DONE], "dns": [BROKEN], "infrastructure": [DONE], "hypershift": [DONE]},
    "sessions": {adapter: [DONE] for adapter in ADAPTERS} | {"infrastructure": [DONE, SHAKY] * 900},  # for an hour
    "ledger": {"validation": [BUSY]},
    "archive": {},
}


# What to ask it, in the order in which somebody who was woken up would.
QUESTIONS: Final = (
    ("What is broken?", "curl '{api}/clusters?conditions=Ready!=True&orderBy=severity&fields=name,status.phase'"),
    ("How much of the fleet is that?", "curl '{api}/clusters:summary?groupBy=phase'"),
    ("What has the same cause?", "curl '{api}/problems'"),
    ("Why is it broken, and what would help?", "curl -H 'Accept: text/plain' '{api}/clusters/{mail}:explain'"),
    ("Since when?", "curl '{api}/clusters/{mail}/history?subject=phase,Ready'"),
    ("Whose is it? Who reports, who is in the way?", "curl '{api}/adapters'"),
    ("How was it ten seconds ago?", "curl '{api}/clusters/{search}?at=10s&fields=name,status.phase'"),
    ("What has changed since?", "curl -H 'Accept: text/plain' '{api}/clusters/{search}:diff?from=10s'"),
    ("What cannot make up its mind?", "curl '{api}/clusters?flapping=any&fields=name,status.phaseFlapping'"),
    (
        "Tell me when it is ready, or why it will not be.",
        "curl '{api}/clusters/{checkout}:wait?for=condition=Ready&failOn=phase=Failed&timeout=5m'",
    ),
    ("Tell me whatever happens.", "curl --no-buffer '{api}/clusters?watch=true&fields=name,status.phase'"),
    (
        "What would another policy change?",
        "curl -X POST '{api}/policy:simulate' -H 'Content-Type: application/yaml' --data-binary @{policy}",
    ),
)


def main() -> None:
    """Run the demo."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="hyperfleet-demo-") as directory, serving(Path(directory)) as address:
        client = httpx.Client(base_url=address + BASE, timeout=10)
        ids = settle(client)
        introduce(address, ids)
        try:
            live(client, ids, rounds)
        except KeyboardInterrupt:
            print("\nStopped; the demo's database is gone.")


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """Run a server on any free port; yield its address."""
    command = [sys.executable, "-m", "hyperfleet", "serve", "--listen", "127.0.0.1:0", "--log-level", "warning"]
    with subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603  # our own
        assert server.stderr is not None  # noqa: S101  # it is a pipe
        # Somebody must go on reading, or the server stands still once the pipe is full.
        reading = threading.Thread(target=shutil.copyfileobj, args=(server.stderr, sys.stderr), daemon=True)
        try:
            address = next((line.split()[-1] for line in server.stderr if line.startswith("Listening on ")), None)
            if address is None:
                raise SystemExit("the server did not start")
            reading.start()
            yield address
        finally:
            server.terminate()
            server.wait()
            if reading.ident is not None:
                reading.join()


def settle(client: httpx.Client) -> dict[str, str]:
    """Create the clusters; return their ids by name."""
    chance = random.Random(7)  # noqa: S311  # the same fleet every time
    return {name: create(client, name, chance) for name in STORIES}


def introduce(address: str, ids: Mapping[str, str]) -> None:
    """Tell where to look."""
    print(f"HyperFleet is listening on {address} with a small live fleet. {address}/docs has everything; ask it:")
    for question, command in questions(address, ids):
        print(f"\n  {question}\n    {command}")
    print("\nJSON is easier to read with `| python3 -m json.tool` behind a command. Ctrl-C ends it.", flush=True)


def questions(address: str, ids: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what to ask, each with the command that asks it."""
    policy = os.path.relpath(Path(__file__).parent / "policies" / "guide.yaml")
    return [(question, command.format(api=f"{address}/v1", policy=policy, **ids)) for question, command in QUESTIONS]


def live(client: httpx.Client, ids: Mapping[str, str], rounds: int | None) -> None:
    """Let the adapters of the clusters report, round after round."""
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
