"""The time limit of many short tasks."""

from __future__ import annotations

import asyncio

import pytest

from hyperfleet.api.shared_timeout import SharedTimeout


def test_who_takes_too_long_is_cut_short_and_nobody_else() -> None:
    async def take(seconds: float, patience: SharedTimeout) -> str:
        with patience:
            await asyncio.sleep(seconds)
        return "done"

    async def story() -> None:
        patience = SharedTimeout(0.05)
        slow, quick = asyncio.create_task(take(60, patience)), asyncio.create_task(take(0, patience))
        assert await quick == "done"
        with pytest.raises(TimeoutError):
            await slow
        assert await take(0, patience) == "done"
        with pytest.raises(TimeoutError):
            await take(60, patience)

    asyncio.run(story())


def test_a_task_may_go_on_after_it_was_cut_short() -> None:
    async def story() -> str:
        patience = SharedTimeout(0.02)
        try:
            with patience:
                await asyncio.sleep(60)
        except TimeoutError:
            await asyncio.sleep(0.1)
            return "told"
        return "never"

    assert asyncio.run(story()) == "told"


def test_a_cancellation_by_others_stays_one() -> None:
    async def wait(patience: SharedTimeout) -> None:
        with patience:
            await asyncio.sleep(60)

    async def story() -> None:
        task = asyncio.create_task(wait(SharedTimeout(60)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())


def test_an_error_inside_stays_what_it_is() -> None:
    async def story() -> None:
        with pytest.raises(ValueError, match="mine"), SharedTimeout(60):
            raise ValueError("mine")

    asyncio.run(story())
