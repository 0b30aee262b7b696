"""How long a person waits for the command line: `python -m bench cli`, with a server in a process of its own.

The fastest of many runs counts, in turn; the time of the processor is told as well, because it says the same on a
machine that is busy with other things. Whole processes are measured, from the start to the end.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from tests.e2e.server import command, running

ROUNDS: Final = 10
PYTHON: Final = sys.executable


class Subject(NamedTuple):
    """A command line, and how many milliseconds it may take."""

    name: str
    line: Sequence[str]
    limit: float | None = None


SUBJECTS: Final = (
    Subject("python -c pass", (PYTHON, "-c", "pass")),
    Subject("python -c 'import click'", (PYTHON, "-c", "import click")),
    Subject("hyperfleet --help", command("--help"), 150),
    Subject("hyperfleet get --help", command("get", "--help"), 150),
    Subject("hyperfleet get clusters", command("get", "clusters"), 300),
    Subject("hyperfleet get clusters -o json", command("get", "clusters", "-o", "json"), 300),
    Subject("hyperfleet get clusters -o yaml", command("get", "clusters", "-o", "yaml")),
    Subject("hyperfleet describe cluster one", command("describe", "cluster", "one")),
)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print a table; end with 1 if something takes longer than it may."""
    with tempfile.TemporaryDirectory() as directory, running(Path(directory), "memory:") as server:
        for name in ("one", "two", "three"):
            server.http.post("/clusters", json={"name": name, "spec": {}}).raise_for_status()
        environment = {**os.environ, "HYPERFLEET_SERVER": server.url, "PYTHONPYCACHEPREFIX": directory}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # who installs a program has its bytecode
        measured = _measure(environment, int(arguments[0]) if arguments else ROUNDS)
    print("| command | ms | ms of processor | may take |\n|---|---|---|---|")
    is_late = False
    for subject in SUBJECTS:
        wall, processor = measured[subject.name]
        is_late |= subject.limit is not None and wall > subject.limit
        print(f"| `{subject.name}` | {wall:.0f} | {processor:.0f} | {subject.limit or ''} |")
    sys.exit(1 if is_late else 0)


def _measure(environment: dict[str, str], rounds: int) -> dict[str, tuple[float, float]]:
    best = {subject.name: (float("inf"), float("inf")) for subject in SUBJECTS}
    for _ in range(rounds):
        for subject in SUBJECTS:
            wall, processor = _run(subject.line, environment)
            before = best[subject.name]
            best[subject.name] = (min(wall, before[0]), min(processor, before[1]))
    return best


def _run(line: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return how many milliseconds a run takes, and how many of them the processor worked for it."""
    before, start = _processor(), perf_counter()
    subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603  # our own commands
    return (perf_counter() - start) * 1000, (_processor() - before) * 1000


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
