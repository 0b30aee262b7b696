"""Confirmation of deletions: only a yes counts."""

from __future__ import annotations

import io

import pytest

from hyperfleet.cli import exits
from hyperfleet.cli.session import CliSession
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal


@pytest.mark.parametrize(
    ("answer", "is_yes"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_only_yes_is_yes(
    terminal: Terminal, scene: Scene, monkeypatch: pytest.MonkeyPatch, answer: str, is_yes: bool
) -> None:
    monkeypatch.setattr(CliSession, "can_ask", True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    done = terminal.run("delete", "clusters", "-l", "env=test")
    assert done.err.startswith("Delete 2 resources: cluster/ledger, cluster/search? [y/N] ")
    if is_yes:
        assert (done.code, done.out) == (exits.OK, "cluster/ledger deleting\ncluster/search deleting\n")
    else:
        assert (done.code, done.out) == (exits.FALSE, "")
        assert done.err.endswith("Nothing was deleted.\n")
    phases = {each["name"]: each["status"]["phase"] for each in scene.server.get("/clusters").json()["items"]}
    assert (phases["ledger"] == "Deleting") is is_yes


def test_many_names_are_cut(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        terminal.server.create(f"c{number:02}")
    monkeypatch.setattr(CliSession, "can_ask", True)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    done = terminal.run("delete", "clusters", "--all")
    assert "Delete 12 resources: cluster/c00, " in done.err
    assert "cluster/c09 and 2 more? [y/N] " in done.err


def test_all_are_deleted_before_the_first_wait(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("delete", "cluster", "ledger", "search", "--wait", "--timeout", "1s")
    assert done.code == exits.TIMEOUT
    assert done.err.count("The wait timed out") == 2
    assert "Error: cluster/ledger: " in done.err
    phases = {each["name"]: each["status"]["phase"] for each in scene.server.get("/clusters").json()["items"]}
    assert (phases["ledger"], phases["search"]) == ("Deleting", "Deleting")
