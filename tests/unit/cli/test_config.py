"""`hyperfleet config`: contexts and tokens, in a private file."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from hyperfleet.cli import exits
from tests.unit.cli.terminal import Done, Terminal

SECRET = "tok-geheim"  # noqa: S105  # what must not be seen anywhere


@pytest.fixture
def home(terminal: Terminal, tmp_path: Path) -> Path:
    """Give the terminal a directory for its file."""
    terminal.environment["HYPERFLEET_CONFIG_HOME"] = str(tmp_path / "config")
    return tmp_path / "config"


def type_in(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> Done:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return terminal.run(*arguments)


def test_contexts_are_created_used_changed_and_deleted(
    terminal: Terminal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def config(*arguments: str) -> tuple[int, str, str]:
        done = terminal.run("config", *arguments)
        return done.code, done.out, done.err.replace(str(home), "HOME")

    assert config("get-contexts") == (0, "", "There are no contexts yet: create one with config set-context.\n")
    assert config("view") == (0, "{}\n", "")
    assert config("current-context")[0] == exits.NOT_FOUND
    assert config("set-context", "here", "--server", "http://127.0.0.1:8000") == (
        0,
        "",
        'Context "here" created and used.\n',
    )
    assert config("set-context", "prod", "--server", "https://fleet.example.com", "--ca", "/etc/ca.pem") == (
        0,
        "",
        'Context "prod" created.\n',
    )
    assert type_in(terminal, monkeypatch, f"{SECRET}\n", "config", "set-token", "prod").code == 0
    assert (home / "config.yaml").read_text() == (
        "currentContext: here\n"
        "contexts:\n"
        "  here:\n"
        "    server: http://127.0.0.1:8000\n"
        "  prod:\n"
        "    server: https://fleet.example.com\n"
        f"    token: {SECRET}\n"
        "    ca: /etc/ca.pem\n"
    )
    assert config("get-contexts") == (
        0,
        (
            "CURRENT   NAME   SERVER                      TOKEN\n"
            "*         here   http://127.0.0.1:8000       <none>\n"
            "          prod   https://fleet.example.com   set\n"
        ),
        "",
    )
    assert config("get-contexts", "-o", "name") == (0, "here\nprod\n", "")
    code, text, said = config("get-contexts", "-o", "json")
    assert (code, [each["name"] for each in json.loads(text)["items"]], said) == (0, ["here", "prod"], "")
    assert config("use-context", "prod") == (0, "", 'The current context is now "prod".\n')
    assert config("current-context") == (0, "prod\n", "")
    assert config("view") == (
        0,
        (
            "currentContext: prod\n"
            "contexts:\n"
            "  here:\n"
            "    server: http://127.0.0.1:8000\n"
            "  prod:\n"
            "    server: https://fleet.example.com\n"
            "    token: '***'\n"
            "    ca: /etc/ca.pem\n"
        ),
        "",
    )
    assert config("view", "-o", "jsonpath={.contexts.prod.token}") == (0, "***\n", "")
    assert config("set-context", "prod", "--ca", "", "--token-file", "/run/token") == (
        0,
        "",
        'Context "prod" changed and used.\n',
    )
    assert SECRET not in (home / "config.yaml").read_text(), "a file with the token takes its place"
    assert config("set-token", "prod", "--remove") == (0, "", 'Token of "prod" removed.\n')
    assert config("delete-context", "prod") == (0, "", 'Context "prod" deleted. There is no current one now.\n')
    assert config("get-contexts", "-o", "name") == (0, "here\n", "")


@pytest.mark.parametrize(
    "command", [("view",), ("view", "-o", "json"), ("get-contexts", "-o", "yaml"), ("view", "-o", "yaml")]
)
def test_tokens_are_never_shown(
    terminal: Terminal, home: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    terminal.run("config", "set-context", "prod", "--server", "https://fleet.example.com")
    done = type_in(terminal, monkeypatch, SECRET, "config", "set-token")
    assert SECRET not in done.out + done.err
    done = terminal.run("config", *command)
    assert done.code == 0
    assert SECRET not in done.out + done.err
    assert "***" in done.out


def test_only_the_owner_can_read_the_file(terminal: Terminal, home: Path) -> None:
    before = os.umask(0)
    try:
        terminal.run("config", "set-context", "here", "--server", "http://127.0.0.1:8000")
    finally:
        os.umask(before)
    assert (home / "config.yaml").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    (home / "config.yaml").chmod(0o644)
    terminal.run("config", "set-context", "there", "--server", "http://127.0.0.1:8001")
    assert (home / "config.yaml").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in home.iterdir()] == ["config.yaml"], "nothing is left beside it"


def test_a_symbolic_link_to_the_file_is_kept(terminal: Terminal, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (home / "config.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    terminal.run("config", "set-context", "here", "--server", "http://127.0.0.1:8000")
    assert (home / "config.yaml").is_symlink()
    assert "here" in (tmp_path / "elsewhere.yaml").read_text()


def test_a_file_instead_of_the_directory_is_reported(terminal: Terminal, home: Path) -> None:
    home.write_text("")
    done = terminal.run("config", "set-context", "here", "--server", "http://127.0.0.1:8000")
    assert done.code == exits.USAGE
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("use-context", "prod"), exits.NOT_FOUND, 'has no context "prod"; there are here'),
        (("use-context", "hree"), exits.NOT_FOUND, 'did you mean "here"?'),
        (("delete-context", "nowhere"), exits.NOT_FOUND, 'has no context "nowhere"'),
        (("set-token", "nowhere"), exits.NOT_FOUND, 'has no context "nowhere"'),
        (("set-context", "new"), exits.USAGE, '"new" is a new context: give its server with --server'),
        (("set-context", "here", "--server", ""), exits.USAGE, "a context needs a server"),
        (("set-context", "here", "--server", "fleet"), exits.USAGE, "must begin with http:// or https://"),
        (("set-token",), exits.USAGE, "not a token"),
    ],
)
def test_errors_are_reported(
    terminal: Terminal,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    terminal.run("config", "set-context", "here", "--server", "http://127.0.0.1:8000")
    before = (home / "config.yaml").read_text()
    done = type_in(terminal, monkeypatch, "two words\n", "config", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert (home / "config.yaml").read_text() == before


def test_a_broken_file_is_reported_and_not_changed(terminal: Terminal, home: Path) -> None:
    home.mkdir()
    file = home / "config.yaml"
    file.write_text("currentContext: [prod]\ncontext: {}\n")
    for command in (("view",), ("set-context", "here", "--server", "http://127.0.0.1:8000"), ("get-contexts",)):
        done = terminal.run("config", *command)
        assert done.code == exits.USAGE
        assert f"Error: {file}:1:17: expected text" in done.err
        assert f'Error: {file}:2:1: unknown key "context", did you mean "contexts"?' in done.err
    assert file.read_text().startswith("currentContext: [prod]")


def test_commands_use_the_current_context(terminal: Terminal, home: Path) -> None:
    del terminal.environment["HYPERFLEET_SERVER"]
    terminal.run("config", "set-context", "here", "--server", "http://127.0.0.1:8123")
    assert "at http://127.0.0.1:8123" in terminal.run("version").out


def test_without_standard_input_there_is_no_token(
    terminal: Terminal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.run("config", "set-context", "here", "--server", "http://127.0.0.1:8000")
    monkeypatch.setattr("sys.stdin", None)
    done = terminal.run("config", "set-token")
    assert (done.code, done.err) == (
        exits.USAGE,
        "Error: standard input:1:1: cannot be read: there is no standard input\n",
    )
