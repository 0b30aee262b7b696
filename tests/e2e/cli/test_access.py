"""The command line before a server that asks who is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import Server, run_command, running

WRONG = "wrong-token-4711"


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make a token for an administrator and one for a reader."""
    file = tmp_path_factory.mktemp("tokens") / "tokens.yaml"
    made = {"file": str(file)}
    for role in ("admin", "reader"):
        done = run_command("token", "create", "--name", role, "--role", role, "--file", str(file))
        assert done.returncode == 0, done.stderr
        made[role] = done.stdout.split()[0]
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tokens: dict[str, str]) -> Iterator[Server]:
    """Run a server that lets in only whoever has a token."""
    with running(tmp_path_factory.mktemp("server"), "memory:", auth_tokens=tokens["file"]) as started:
        headers = {"Authorization": f"Bearer {tokens['admin']}"}
        started.http.post("/clusters", json={"name": "payments", "spec": {}}, headers=headers).raise_for_status()
        yield started


@pytest.mark.parametrize(
    "arguments", ["get clusters", "describe payments", "watch", "wait payments", "problems", "top"]
)
def test_without_a_token_nobody_is_let_in(server: Server, arguments: str) -> None:
    done = run_command(*arguments.split(), server=server.url)
    assert done.returncode == 77
    assert done.stderr.startswith("Error: ")
    assert "HYPERFLEET_TOKEN" in done.stderr, "it is told where a token can be given"


def test_a_wrong_token_is_told_and_not_shown(server: Server) -> None:
    done = run_command("get", "clusters", server=server.url, token=WRONG)
    assert done.returncode == 77
    assert WRONG not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_opens_the_door_wherever_it_is_given(server: Server, tokens: dict[str, str], tmp_path: Path) -> None:
    config = f"currentContext: here\ncontexts: {{here: {{server: '{server.url}', token: {tokens['reader']}}}}}"
    (tmp_path / "config.yaml").write_text(config)
    by_file = run_command("get", "clusters", "-o", "name", config_home=str(tmp_path))
    by_variable = run_command("get", "clusters", "-o", "name", server=server.url, token=tokens["reader"])
    by_flag = run_command("get", "cl", "-o", "name", "--server", server.url, "--token", tokens["reader"])
    assert [each.stdout for each in (by_file, by_variable, by_flag)] == ["cluster/payments\n"] * 3


def test_the_doctor_knows_what_is_wrong_with_a_token(server: Server, tokens: dict[str, str], tmp_path: Path) -> None:
    place = {"server": server.url, "config_home": str(tmp_path)}
    ill = run_command("doctor", **place, token=WRONG)
    assert ill.returncode == 1
    assert "failed   access:" in ill.stdout
    well = run_command("doctor", **place, token=tokens["reader"])
    assert well.returncode == 0, well.stdout
