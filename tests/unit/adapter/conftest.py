"""Tests of the adapter framework."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.adapter.scripted_api import ScriptedApi, scripted_api


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio."""
    return "asyncio"


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    """Give a server that answers as it is told."""
    with scripted_api() as server:
        yield server
