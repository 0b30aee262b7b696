"""`hyperfleet rules apply` and `rollback` where somebody has to decide, or others are in the way."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.cli import exits
from hyperfleet.cli.session import CliSession
from hyperfleet.ports import NewPolicy
from tests.unit.cli.terminal import Terminal

OTHER = "requiredAdapters: [dns]\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Give a file with a policy."""
    path = tmp_path / "policy.yaml"
    path.write_text(OTHER)
    return str(path)


def in_force(terminal: Terminal) -> dict[str, Any]:
    """Return the policy in force."""
    return dict(terminal.server.get("/policy").json())


@pytest.mark.parametrize(("answer", "is_yes"), [("yes\n", True), ("\n", False)])
@pytest.mark.parametrize("words", [("apply", "-f"), ("rollback",)], ids=lambda words: words[0])
def test_only_yes_is_yes(
    terminal: Terminal, file: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], answer: str, is_yes: bool
) -> None:
    if words == ("rollback",):
        assert terminal.run("rules", "apply", "-f", file, "--yes").code == exits.OK
    before = in_force(terminal)["version"]
    monkeypatch.setattr(CliSession, "can_ask", True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    done = terminal.run("rules", *words, file if words[0] == "apply" else "1")
    assert f"Replace version {before} of the policy? [y/N] " in done.err
    assert done.code == (exits.OK if is_yes else exits.FALSE)
    assert done.err.endswith("Nothing was changed.\n") is not is_yes
    assert in_force(terminal)["version"] == before + is_yes


def test_what_somebody_else_applied_meanwhile_is_not_lost(
    terminal: Terminal, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer_late(session: CliSession, question: str) -> bool:
        terminal.server.put("/policy", {"requiredAdapters": ["mail"]}, headers={"If-Match": "*"})
        return True

    monkeypatch.setattr("hyperfleet.cli.rules_apply.confirm", answer_late)
    done = terminal.run("rules", "apply", "-f", file)
    assert done.code == exits.REFUSED
    assert "version 2 of the policy is in force (PreconditionFailed)" in done.err
    assert "mail" in in_force(terminal)["text"]


def test_a_version_that_no_longer_compiles_is_told_with_its_lines(terminal: Terminal, file: str) -> None:
    terminal.server.run(terminal.server.store.activate_policy(NewPolicy("old", "requiredAdapters: 5\n", "old.yaml")))
    assert terminal.run("rules", "apply", "-f", file, "--yes").code == exits.OK
    done = terminal.run("rules", "rollback", "2", "--yes")
    assert done.code == exits.USAGE
    assert done.err.startswith("Error: version 2:1:19: ")
    assert in_force(terminal)["version"] == 3


def test_a_policy_comes_from_standard_input(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(OTHER.encode())))
    done = terminal.run("rules", "apply", "-f", "-", "--yes", "--no-simulate")
    assert (done.code, in_force(terminal)["text"]) == (exits.OK, OTHER)


def test_a_policy_cannot_move_the_cursor(terminal: Terminal, file: str, tmp_path: Path) -> None:
    Path(file).write_text(f"# \x1b[2J\x85\n{OTHER}")
    terminal.width = 80
    terminal.environment["NO_COLOR"] = "1"
    done = terminal.run("rules", "apply", "-f", file, "--yes")
    shown = terminal.run("rules", "versions", "2")
    assert "\x1b" not in done.out + done.err + shown.out
