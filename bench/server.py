"""`python -m bench server [--quick | --medium | --profile] [--sqlite | --postgres]`: a real server under load.

On both databases, or on one alone.

The server, its database and the load generator share the machine. In the same run the same PostgreSQL does plain
transactions for pgbench: its figure tells how fast the machine is, and ours is a ratio to it.
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


_OPTIONS: Final = {"--quick", "--medium", "--profile", "--sqlite", "--postgres"}
_FULL: Final = Plan((1_000, 100_000), Effort(rounds=3, seconds=5, warm_up=1))
_MEDIUM: Final = Plan((1_000, 10_000), Effort(rounds=2, seconds=4, warm_up=1))
_QUICK: Final = Plan((200, 1_000), Effort(rounds=1, seconds=1, warm_up=0))


def main(options: Sequence[str]) -> None:
    """Measure, and print the tables."""
    if strange := set(options) - _OPTIONS:
        sys.exit(f"unknown option {', '.join(strange)}; known are {', '.join(sorted(_OPTIONS))}")
    with temporary_directory() as directory, databases(directory) as found:
        policy = write_policy(directory)
        if "--profile" in options:
            for database in found:
                profile.show(database, policy)
            return
        wrk.install()
        plan = _QUICK if "--quick" in options else _MEDIUM if "--medium" in options else _FULL
        sheets: list[Sheet] = []
        try:
            for database in found[:1] if "--sqlite" in options else found[1:] if "--postgres" in options else found:
                for sheet in _measure(database, plan, directory, policy):
                    sheets.append(sheet)  # noqa: PERF402  # one by one: those of a run that breaks off are shown
        finally:  # what was found in a quarter of an hour is not lost
            tables.show(sheets)


@contextmanager
def databases(directory: Path) -> Iterator[Sequence[Database]]:
    """Give an empty database of each kind, for the length of a block."""
    with ExitStack() as stack:
        databases = [Database(SQLITE, f"sqlite:{directory / 'fleet.db'}")]
        try:
            postgres = stack.enter_context(temporary_postgres())
        except ServerMissingError as error:
            _tell(f"SKIPPED: everything on PostgreSQL. {error}")
        else:
            urls = [stack.enter_context(temporary_database(postgres.url())) for _ in range(2)]
            databases.append(Database(POSTGRES, urls[0], postgres, plain_url=urls[1]))
        yield databases


def _measure(database: Database, plan: Plan, directory: Path, policy: Path) -> Iterator[Sheet]:
    """Measure one database with each size of the fleet."""
    settings = {"policy": str(policy), "log_level": "warning"}
    filled = 0
    for clusters in plan.sizes:
        _tell(f"{database.name}: filling up to {clusters:,} clusters")
        sheet = Sheet(database.name, clusters, fill(database.url, str(policy), range(filled, clusters)))
        filled = clusters
        if database.postgres is not None:
            pgbench.execute(database.url, ["vacuum analyze"])  # as the server itself would do a minute later
        with running(directory, database, clusters, settings):
            pass  # the first start compiles; it is not the one that counts
        _tell(f"{database.name}: measuring with {clusters:,} clusters")
        if database.postgres is not None:
            with running(directory, database, clusters, {**settings, "workers": "2"}) as subject:
                measuring = Measuring(subject, plan.effort, directory)
                sheet.reads |= measuring.read_one(ONE_OF_TWO)
                sheet.writes |= measuring.write_again(HEARTBEATS_TO_TWO)
        with running(directory, database, clusters, settings) as subject:
            sheet.start_time = subject.start_time
            measuring = Measuring(subject, plan.effort, directory)
            sheet.reads |= measuring.read()
            sheet.writes |= measuring.write()
            sheet.memory = subject.memory()
        yield sheet


def write_policy(directory: Path) -> Path:
    """Write the built-in policy, but with more patience: our adapters fall silent between measurements."""
    text = importlib.resources.files("hyperfleet").joinpath("policies/default.yaml").read_text("utf-8")
    policy = directory / "policy.yaml"
    policy.write_text(text.replace("staleThreshold: 10m", "staleThreshold: 24h"))
    return policy


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
