"""Finding the past: which moments can be asked for, and what is said of those that cannot be told."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from hyperfleet.api.past import answer_of
from hyperfleet.ports import EVERYTHING, LoggedEvent, Scope
from hyperfleet.services.callers import Caller
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.past import find_reports, find_version, read_moment
from hyperfleet.services.results import Refusal, not_found
from tests.unit.services.desk import START, open_desk, target_of

NOW = START


@pytest.mark.parametrize(
    ("text", "expected", "because"),
    [
        ("2025-10-17T11:00:00Z", NOW - timedelta(hours=1), "a moment of the past"),
        ("2025-10-17T13:00:00.5+02:00", NOW - timedelta(minutes=59, seconds=59.5), "in any zone"),
        ("2h", NOW - timedelta(hours=2), "so long ago"),
        ("0s", NOW, "now is not yet to come"),
        ("2025-10-17T12:00:09Z", NOW + timedelta(seconds=9), "the database's clock may be ahead of ours"),
        ("2025-10-17T12:00:11Z", None, "so far ahead no clock is"),
    ],
)
def test_moments(text: str, expected: datetime | None, because: str) -> None:
    given = Parameters({"at": [text]})
    moment = read_moment(given, "at", NOW)
    assert (moment if not given.errors else None) == expected, because
    assert [each.code for each in given.errors] == ([] if expected else ["InTheFuture"]), because


def test_what_was_removed_has_no_answer() -> None:
    removed = LoggedEvent(3, "Removed", "Cluster", "cls-1", None, "", 1, NOW, None, None)
    with pytest.raises(ValueError, match="was removed"):
        answer_of(removed)


def test_nobody_learns_of_what_they_may_not_see() -> None:
    async def story() -> None:
        async with open_desk() as desk:
            await desk.create("a", caller=Caller(tenant="theirs"))
            target, ours = target_of("cls-a"), Scope(frozenset({"ours"}))
            for at in (NOW, NOW - timedelta(days=1)):
                refusal = await find_version(desk.store, target, ours, at)
                assert refusal == not_found(target)
            found = await find_version(desk.store, target, Scope(frozenset({"theirs"})), NOW)
            assert isinstance(found, LoggedEvent)

    asyncio.run(story())


def test_reports_of_those_that_the_status_told_of_or_that_said_unknown() -> None:
    async def story() -> None:
        async with open_desk() as desk:
            await desk.create("a")
            for adapter, available in (("dns", "True"), ("retired", "True"), ("undecided", "Unknown")):
                await desk.report("cls-a", adapter, available)
            reports = await find_reports(desk.store, target_of("cls-a"), EVERYTHING, NOW, {"dns"})
            assert not isinstance(reports, Refusal)
            assert [each.report.adapter for each in reports] == ["dns", "undecided"]
            before = await find_reports(desk.store, target_of("cls-a"), EVERYTHING, NOW - timedelta(seconds=1), {"dns"})
            assert isinstance(before, Refusal)

    asyncio.run(story())
