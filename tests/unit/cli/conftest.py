"""A terminal with its own server, which has a manual clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.cli.scene import Scene, set_up
from tests.unit.cli.terminal import Terminal, open_terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """Sit down before a server that knows nothing yet."""
    with open_terminal() as opened:
        yield opened


@pytest.fixture
def scene(terminal: Terminal) -> Scene:
    """Fill the server with the fleet of `scene`."""
    return set_up(terminal)
