"""A fleet in memory, served without a network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from tests.api.fleet import Fleet, HandClock, open_fleet


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """Give a fleet with the limits of a real server."""
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits()) as fleet:
        yield fleet
