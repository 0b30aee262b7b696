"""Time slices: other tasks run in between, and threads that wait for the interpreter get it."""

from __future__ import annotations

import asyncio

import pytest

from hyperfleet.services import time_slices


def test_within_a_slice_no_other_task_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "_SLICE", 3600.0)
    assert asyncio.run(turns_beside(100)) == 0


def test_after_each_slice_other_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "_SLICE", 0.0)
    assert asyncio.run(turns_beside(100)) >= 100


def test_now_and_then_it_really_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request comes in through a thread: a thread that gets the interpreter for a moment only may never get in."""
    monkeypatch.setattr(time_slices, "_SLICE", 0.0)
    monkeypatch.setattr(time_slices, "_REST", 0.02)

    async def elapsed() -> float:
        loop, slices = asyncio.get_running_loop(), time_slices.TimeSlices()
        begin = loop.time()
        for _ in range(3 * time_slices._SLICES):
            await slices.yield_if_due()
        return loop.time() - begin

    assert asyncio.run(elapsed()) >= 0.05


async def turns_beside(pieces: int) -> int:
    """Count how often somebody else has a turn while so many pieces of work are done."""

    async def work() -> None:
        slices = time_slices.TimeSlices()
        for _ in range(pieces):
            await slices.yield_if_due()

    working, turns = asyncio.create_task(work()), 0
    await asyncio.sleep(0)  # lets it begin
    while not working.done():
        turns += 1
        await asyncio.sleep(0)
    return turns
