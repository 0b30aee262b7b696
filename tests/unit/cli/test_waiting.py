"""`hyperfleet wait` takes what people who know kubectl type."""

from __future__ import annotations

import pytest

from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal


@pytest.mark.parametrize("term", ["condition=Ready", "condition=ready", "condition=READY=true", "condition=ready=True"])
def test_conditions_are_taken_in_any_case(terminal: Terminal, scene: Scene, term: str) -> None:
    done = terminal.run("wait", "shop", "--for", term, "--timeout", "0")
    assert (done.code, done.out) == (0, "cluster/shop condition met\n"), done.err


def test_what_a_resource_does_not_have_is_told_as_it_was_typed(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("wait", "shop", "--for", "condition=green", "--timeout", "0")
    assert done.code == 124
    assert "it has no condition green" in done.err
