"""What is still available about a resource that is gone."""

from __future__ import annotations

import pytest

from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal


@pytest.fixture(autouse=True)
def _removal(terminal: Terminal, scene: Scene) -> None:
    path = f"/clusters/{scene.clusters['search']['id']}"
    terminal.server.delete(path)
    terminal.server.post(f"{path}/force-delete", {"reason": "test"})
    terminal.pass_time(seconds=30)


def test_its_name_is_not_found(terminal: Terminal) -> None:
    done = terminal.run("history", "cluster", "search")
    assert (done.code, done.out) == (4, "")


def test_its_id_finds_its_history(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("history", "cluster", scene.clusters["search"]["id"], "--subject", "phase")
    assert done.code == 0
    assert [line.split()[4] for line in done.out.splitlines()[1:]] == ["Deleting", "Provisioning", "Pending", "<none>"]


def test_its_id_finds_its_past_state(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run(
        "get", "cluster", scene.clusters["search"]["id"], "--at", "40s", "-o", "jsonpath={.status.phase}"
    )
    assert (done.code, done.out) == (0, "Provisioning\n")
