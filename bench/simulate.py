"""`python -m bench simulate [--quick]`: what trying a policy on a large fleet takes, and what it takes from others.

A real server over SQLite; the load generator shares the machine with it. Reads are measured alone and while one
simulation follows the other, in turns: their ratio says how much of the server is left to everybody else.
"""

from __future__ import annotations

import importlib.resources
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import mean
from typing import Any, Final

import httpx
import msgspec
from msgspec import Struct

from bench.load import usage, wrk
from bench.load.filling import fill
from bench.load.subject import SQLITE, Database, Subject, running
from bench.load.wrk import Figures, Load
from tests.servers import temporary_directory

_CLUSTERS: Final = 10_000
_FEW_CLUSTERS: Final = 500
_ROUNDS: Final = 3
_SECONDS: Final = 5  # of each load
_PATIENCE: Final = 300.0  # seconds for one simulation
_ONE: Final = Load("reads.lua", ("",))

SAME: Final = "nothing would change"
MOVING: Final = "every cluster would move"


class Trial(Struct, frozen=True):
    """One simulation: its answer, how long it took, and how much time of the processor the server had meanwhile."""

    answer: dict[str, Any]
    seconds: float
    used: float


class Round(Struct, frozen=True):
    """Reads without and with simulations beside them, and how many seconds each of these took."""

    alone: Figures
    beside: Figures
    simulations: list[float]


def main(options: Sequence[str]) -> None:
    """Measure, and print what was found."""
    if strange := set(options) - {"--quick"}:
        sys.exit(f"unknown option {', '.join(strange)}; known is --quick")
    clusters = _FEW_CLUSTERS if "--quick" in options else _CLUSTERS
    wrk.install()
    with temporary_directory() as directory:
        policies = _policies()
        file = directory / "policy.yaml"
        file.write_text(policies[SAME])
        database = Database(SQLITE, f"sqlite:{directory / 'fleet.db'}")
        print(f"filling {clusters:,} clusters", file=sys.stderr, flush=True)
        fill(database.url, str(file), range(clusters))
        settings = {"policy": str(file), "log_level": "warning"}
        with running(directory, database, clusters, settings) as subject:
            _show(subject, policies)


def _show(subject: Subject, policies: Mapping[str, str]) -> None:
    before = subject.memory().resident
    print("| simulation | seconds | µs per cluster | CPU µs per cluster | changed |\n|---|---|---|---|---|")
    for name, policy in policies.items():
        first = _simulate(subject, policy)
        _print_trial(f"{name}; with the lint, which is done once", first)
        _print_trial(name, min([_simulate(subject, policy) for _ in range(_ROUNDS)], key=lambda each: each.seconds))
    replayed = _simulate(subject, policies[MOVING], "?replay=24h")
    reports = replayed.answer["replay"]["reports"]
    _print_trial(f"{MOVING}, and {reports:,} reports lived again twice", replayed)
    rounds = [_measure_beside(subject, policies[MOVING]) for _ in range(_ROUNDS)]
    print("\n| GET one | per second | p50 ms | p99 ms | ratio |\n|---|---|---|---|---|")
    alone = max((each.alone for each in rounds), key=lambda figures: figures.rate)
    beside = max((each.beside for each in rounds), key=lambda figures: figures.rate)
    ratios = sorted(each.beside.rate / each.alone.rate for each in rounds)
    _print_figures("alone", alone, "")
    _print_figures("while one simulation follows the other", beside, f"{ratios[len(ratios) // 2]:.2f} (median)")
    seconds = mean([seconds for each in rounds for seconds in each.simulations])
    print(f"\nbeside reads, a simulation took {seconds:.1f} s")
    print(f"resident memory: {before:.0f} MB before, {subject.memory().resident:.0f} MB after")


def _measure_beside(subject: Subject, policy: str) -> Round:
    alone = wrk.run(subject.server.url, _ONE, subject.clusters, _SECONDS)
    with _simulating(subject, policy) as done:
        beside = wrk.run(subject.server.url, _ONE, subject.clusters, _SECONDS)
    return Round(alone, beside, done)


@contextmanager
def _simulating(subject: Subject, policy: str) -> Iterator[list[float]]:
    """Let one simulation follow the other; give how long each of them took."""
    done: list[float] = []
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.is_set():
            done.append(_simulate(subject, policy).seconds)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield done
    finally:
        is_over.set()
        thread.join()


def _simulate(subject: Subject, policy: str, query: str = "") -> Trial:
    headers = {"Content-Type": "application/yaml", "Accept": "text/event-stream"}
    start, used = time.monotonic(), usage.processor_time(subject.server.processes)
    response = httpx.post(
        f"{subject.server.api}/policy:simulate{query}", content=policy, headers=headers, timeout=_PATIENCE
    )
    seconds = time.monotonic() - start
    used = usage.processor_time(subject.server.processes) - used
    event, data = response.text.rstrip().splitlines()[-2:]
    if event != "event: result":
        raise wrk.LoadError(f"a simulation failed: {data[:500]}")
    return Trial(msgspec.json.decode(data.removeprefix("data: ")), seconds, used)


def _policies() -> dict[str, str]:
    """Return the built-in policy, with more patience because nobody reports here, and one that asks for more."""
    text = importlib.resources.files("hyperfleet").joinpath("policies/default.yaml").read_text("utf-8")
    patient = text.replace("staleThreshold: 10m", "staleThreshold: 24h")
    return {SAME: patient, MOVING: patient.replace("requiredAdapters:\n", "requiredAdapters:\n  - audit\n", 1)}


def _print_trial(name: str, trial: Trial) -> None:
    examined = trial.answer["examined"]
    per_cluster, used = trial.seconds / examined * 1e6, trial.used / examined * 1e6
    changed = trial.answer["changed"]
    print(f"| {name} | {trial.seconds:.2f} | {per_cluster:.0f} | {used:.0f} | {changed:,} |", flush=True)


def _print_figures(name: str, figures: Figures, ratio: str) -> None:
    print(f"| {name} | {figures.rate:,.0f} | {figures.p50 / 1000:.1f} | {figures.p99 / 1000:.1f} | {ratio} |")
