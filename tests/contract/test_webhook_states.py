"""The saved states of webhooks: the same on every store."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from hyperfleet.ports import Store

pytestmark = pytest.mark.anyio


async def test_a_state_is_saved_replaced_and_deleted(store: Store) -> None:
    assert await store.read_webhooks() == {}
    assert await store.save_webhook("ops", b'{"a":1}')
    assert await store.save_webhook("chat", b"\xff")
    assert await store.save_webhook("ops", b'{"a":2}')
    assert dict(await store.read_webhooks()) == {"chat": b"\xff", "ops": b'{"a":2}'}
    assert await store.save_webhook("ops", b"")
    assert dict(await store.read_webhooks()) == {"chat": b"\xff"}


async def test_only_the_holder_of_the_lease_saves(store: Store) -> None:
    first = await store.take_lease("webhook-ops", "a", timedelta(milliseconds=20))
    assert first is not None
    assert await store.save_webhook("ops", b"1", first)
    await asyncio.sleep(0.05)
    assert await store.save_webhook("ops", b"2", first), "it has expired, but no other holder has taken it"
    second = await store.take_lease("webhook-ops", "b", timedelta(minutes=1))
    assert second is not None
    assert not await store.save_webhook("ops", b"3", first)
    assert dict(await store.read_webhooks()) == {"ops": b"2"}
    assert await store.save_webhook("ops", b"4", second)
    assert dict(await store.read_webhooks()) == {"ops": b"4"}
