"""Filling a database with a settled fleet: by the server's own services, but without its front door."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from bench.load.fleet import ADAPTERS, cluster_id, labels_of, report_of, spec_of
from hyperfleet.aggregation import read_report
from hyperfleet.bootstrap import System, open_tables
from hyperfleet.model.kind import CLUSTER
from hyperfleet.model.report import Report
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.commands import Command
from hyperfleet.services.reports import AcceptReports, Submission
from hyperfleet.services.resources import Create
from hyperfleet.services.results import Refusal, Target
from hyperfleet.settings import Settings
from hyperfleet.settings.tree import LimitSettings

_BATCH: Final = 1_000  # clusters at once
_LIMITS: Final = LimitSettings(max_queued_writes=100_000, max_writes_per_transaction=_BATCH)


def fill(database: str, policy: str, numbers: range) -> float:
    """Create the clusters of these numbers, and let every adapter say twice that all is well with them.

    Twice, because the adapters of a settled fleet repeat what they said. Return the seconds it took.
    """
    start = time.monotonic()
    asyncio.run(_fill(Settings(database=database, policy=policy, limits=_LIMITS), numbers))
    return time.monotonic() - start


async def _fill(settings: Settings, numbers: range) -> None:
    await open_tables(settings.database).migrate()
    system = System(settings)
    await system.start()
    batches = (numbers[start : start + _BATCH] for start in range(0, len(numbers), _BATCH))
    try:
        # Two at once: while PostgreSQL writes one batch, we compute the other.
        await asyncio.gather(*(_create(system, batches) for _ in range(2)))
    finally:
        await system.stop()


async def _create(system: System, batches: Iterator[range]) -> None:
    for batch in batches:
        await _submit(system, [_creation(system, number) for number in batch])
        await _settle(system, batch)
        await _settle(system, batch)


async def _settle(system: System, numbers: range) -> None:
    reports = [_report(adapter) for adapter in ADAPTERS]
    await _submit(system, [_reporting(system, number, reports) for number in numbers])


async def _submit(system: System, commands: Sequence[Command[Any]]) -> None:
    for result in await system.committer.submit_all(commands):
        if isinstance(result, BaseException):
            raise result
        if isinstance(result, Refusal):
            raise ValueError(f"the fleet was refused: {result}")


def _creation(system: System, number: int) -> Create:
    return Create(
        CLUSTER,
        cluster_id(number),
        f"cluster-{number}",
        spec_of(number),
        labels_of(number),
        ANONYMOUS,
        system.context.check_spec,
    )


def _reporting(system: System, number: int, reports: Sequence[Report]) -> AcceptReports:
    submissions = tuple(Submission(report, system.context.new_id("rpt")) for report in reports)
    return AcceptReports(Target(CLUSTER, cluster_id(number)), submissions, ANONYMOUS)


def _report(adapter: str) -> Report:
    report = read_report(report_of(adapter)).report
    if report is None:
        raise ValueError(f"the report of {adapter} cannot be read")
    return report
