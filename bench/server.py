"""`python -m bench server [--quick | --medium | --short | --profile] [--sqlite | --postgres]`: a server under load.

A real one, on both databases or on one alone.

The server, its database and the load generator share the machine. In the same run the same PostgreSQL does plain
transactions for pgbench: its figure tells how fast the machine is, and ours is a ratio to it. Fleets of all sizes are
there at once and get each load in turn, because a machine's speed changes within minutes: so they can be compared.
"""

from __future__ import annotations

import importlib.resources
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.load import pgbench, profile, tables, wrk
from bench.load.filling import fill
from bench.load.sheet import HEARTBEATS_TO_TWO, ONE_OF_TWO, Measuring, Sheet
from bench.load.subject import POSTGRES, SQLITE, Database, Effort, running
from tests.servers import ServerMissingError, temporary_database, temporary_directory, temporary_postgres


class Plan(Struct, frozen=True):
    """How much is measured."""

    sizes: Sequence[int]  # of the fleet, ascending
    effort: Effort


_OPTIONS: Final = {"--quick", "--medium", "--short", "--profile", "--sqlite", "--postgres"}
_FULL: Final = Plan((1_000, 100_000), Effort(rounds=3, seconds=5, warm_up=1))
_MEDIUM: Final = Plan((1_000, 10_000), Effort(rounds=2, seconds=4, warm_up=1))
_SHORT: Final = Plan((1_000, 100_000), Effort(rounds=2, seconds=3, warm_up=1))
_QUICK: Final = Plan((200, 1_000), Effort(rounds=1, seconds=1, warm_up=0))


def main(options: Sequence[str]) -> None:
    """Measure, and print the tables."""
    if strange := set(options) - _OPTIONS:
        sys.exit(f"unknown option {', '.join(strange)}; known are {', '.join(sorted(_OPTIONS))}")
    plans = {"--quick": _QUICK, "--medium": _MEDIUM, "--short": _SHORT}
    plan = next((plans[option] for option in options if option in plans), _FULL)
    fleets = [f"fleet-{clusters}" for clusters in plan.sizes]
    with temporary_directory() as directory, databases(directory, fleets) as found:
        policy = write_policy(directory)
        kinds = [[each for each in found if each.name == kind] for kind in _kinds_of(options)]
        if "--profile" in options:
            for first, *_ in filter(None, kinds):
                profile.show(first, policy)
            return
        wrk.install()
        sheets: list[Sheet] = []
        try:
            for some in filter(None, kinds):
                sheets += _measure(some, plan, directory, policy)
        finally:  # what was found in a quarter of an hour is not lost
            tables.show(sheets)


def _kinds_of(options: Sequence[str]) -> Sequence[str]:
    return [SQLITE] if "--sqlite" in options else [POSTGRES] if "--postgres" in options else [SQLITE, POSTGRES]


@contextmanager
def databases(directory: Path, fleets: Sequence[str] = ("fleet",)) -> Iterator[Sequence[Database]]:
    """Give an empty database of each kind for each fleet, for the length of a block."""
    with ExitStack() as stack:
        databases = [Database(SQLITE, f"sqlite:{directory / fleet}.db") for fleet in fleets]
        try:
            postgres = stack.enter_context(temporary_postgres())
        except ServerMissingError as error:
            _tell(f"SKIPPED: everything on PostgreSQL. {error}")
        else:
            for _ in fleets:
                urls = [stack.enter_context(temporary_database(postgres.url())) for _ in range(2)]
                databases.append(Database(POSTGRES, urls[0], postgres, plain_url=urls[1]))
        yield databases


def _measure(databases: Sequence[Database], plan: Plan, directory: Path, policy: Path) -> Sequence[Sheet]:
    """Measure databases of one kind, one for each size of the fleet."""
    settings = {"policy": str(policy), "log_level": "warning"}
    sizes = list(zip(databases, plan.sizes, strict=True))
    sheets = [_fill(database, clusters, policy) for database, clusters in sizes]
    for database, clusters in sizes:
        with running(directory, database, clusters, settings):
            pass  # the first start compiles; it is not the one that counts
    _tell(f"{databases[0].name}: measuring")
    with ExitStack() as stack:
        if databases[0].postgres is not None:
            subjects = [stack.enter_context(running(directory, *size, {**settings, "workers": "2"})) for size in sizes]
            measuring = Measuring(subjects, plan.effort, directory, sheets)
            measuring.read_one(ONE_OF_TWO)
            measuring.write_again(HEARTBEATS_TO_TWO)
    with ExitStack() as stack:
        subjects = [stack.enter_context(running(directory, *size, settings)) for size in sizes]
        measuring = Measuring(subjects, plan.effort, directory, sheets)
        measuring.read()
        measuring.write()
        for subject, sheet in zip(subjects, sheets, strict=True):
            sheet.start_time, sheet.memory = subject.start_time, subject.memory()
    return sheets


def _fill(database: Database, clusters: int, policy: Path) -> Sheet:
    _tell(f"{database.name}: filling up to {clusters:,} clusters")
    sheet = Sheet(database.name, clusters, fill(database.url, str(policy), range(clusters)))
    if database.postgres is not None:
        pgbench.execute(database.url, ["vacuum analyze"])  # as the server itself would do a minute later
    return sheet


def write_policy(directory: Path) -> Path:
    """Write the built-in policy, but with more patience: our adapters fall silent between measurements."""
    text = importlib.resources.files("hyperfleet").joinpath("policies/default.yaml").read_text("utf-8")
    policy = directory / "policy.yaml"
    policy.write_text(text.replace("staleThreshold: 10m", "staleThreshold: 24h"))
    return policy


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
