"""What a terminal gets that a pipe does not: colours, and lines cut to its width."""

from __future__ import annotations

import pytest

from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal

COLOURED = [
    ("get", "clusters"),
    ("describe", "payments"),
    ("explain", "payments"),
    ("diff", "payments", "--from", "2m"),
    ("failed", "payments"),
    ("progress", "payments"),
    ("history", "payments"),
    ("doctor",),
]


@pytest.mark.parametrize("arguments", COLOURED, ids=lambda arguments: arguments[0])
def test_a_terminal_adds_only_colours(terminal: Terminal, scene: Scene, arguments: tuple[str, ...]) -> None:
    terminal.width = 400
    coloured = terminal.run(*arguments).out
    terminal.environment["NO_COLOR"] = "1"
    plain = terminal.run(*arguments).out
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain
    for code in ("0", "1", "2", "31", "32", "33"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == plain


def test_a_narrow_window_cuts_messages(terminal: Terminal, scene: Scene) -> None:
    terminal.width, terminal.environment["NO_COLOR"] = 120, "1"
    lines = terminal.run("failed", "payments").out.splitlines()
    assert max(map(len, lines)) <= 120
    terminal.width = 60
    lines = terminal.run("failed", "payments").out.splitlines()
    assert lines[1].endswith("…")
    wrapped = terminal.run("describe", "payments").out.splitlines()
    assert not [line for line in wrapped if line.endswith("…")], "trees are wrapped, not cut"
