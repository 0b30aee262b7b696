"""`hyperfleet wait` accepts kubectl's spellings."""

from __future__ import annotations

import pytest

from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal


@pytest.mark.parametrize("term", ["condition=Ready", "condition=ready", "condition=READY=true", "condition=ready=True"])
def test_conditions_are_case_insensitive(terminal: Terminal, scene: Scene, term: str) -> None:
    done = terminal.run("wait", "shop", "--for", term, "--timeout", "0")
    assert (done.code, done.out) == (0, "cluster/shop condition met\n"), done.err


def test_an_unknown_condition_is_reported_as_typed(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("wait", "shop", "--for", "condition=green", "--timeout", "0")
    assert done.code == 124
    assert "it has no condition green" in done.err
