"""Pacing: others have their turn, and threads that wait for the interpreter get it."""

from __future__ import annotations

import asyncio

import pytest

from hyperfleet.services import pacing


def test_within_a_slice_nobody_else_has_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "_SLICE", 3600.0)
    assert asyncio.run(turns_beside(100)) == 0


def test_after_each_slice_others_have_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "_SLICE", 0.0)
    assert asyncio.run(turns_beside(100)) >= 100


def test_now_and_then_it_really_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request comes in through a thread: one that is let in for a moment only may never get in."""
    monkeypatch.setattr(pacing, "_SLICE", 0.0)
    monkeypatch.setattr(pacing, "_REST", 0.02)

    async def elapsed() -> float:
        loop, pace = asyncio.get_running_loop(), pacing.Pace()
        begin = loop.time()
        for _ in range(3 * pacing._SLICES):
            await pace.keep()
        return loop.time() - begin

    assert asyncio.run(elapsed()) >= 0.05


async def turns_beside(pieces: int) -> int:
    """Count how often somebody else has a turn while so many pieces of work are done."""

    async def work() -> None:
        pace = pacing.Pace()
        for _ in range(pieces):
            await pace.keep()

    working, turns = asyncio.create_task(work()), 0
    await asyncio.sleep(0)  # lets it begin
    while not working.done():
        turns += 1
        await asyncio.sleep(0)
    return turns
