"""Hostile messages do nothing to a terminal: no escape sequence of a report reaches it."""

from __future__ import annotations

import pytest

from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal

EVIL = "\x1b[2Jgone\x1b]0;title\x07\x9b31m"


@pytest.fixture
def hostile(terminal: Terminal, scene: Scene) -> Terminal:
    """Let an adapter send what a terminal would take for orders."""
    scene.report("ledger", "dns", f"False/Bad/{EVIL}")
    return terminal


@pytest.mark.parametrize(
    "line",
    [
        "get cluster ledger -o wide",
        "describe ledger --all",
        "explain ledger --all",
        "failed ledger",
        "is-ready ledger",
        "progress ledger",
        "problems",
        "problems --details",
        "history ledger -o wide",
        "wait ledger --timeout 0",
    ],
)
def test_messages_of_adapters_cannot_control_a_terminal(hostile: Terminal, line: str) -> None:
    done = hostile.run(*line.split())
    written = (done.out + done.err).replace("\n", "")
    assert "gone" in written or line.startswith(("history", "get")), "it was shown at all"
    assert written.isprintable(), [each for each in written if not each.isprintable()]
