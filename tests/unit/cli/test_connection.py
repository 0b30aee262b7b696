"""Which server a command connects to, and with which token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from hyperfleet.cli import run
from hyperfleet.cli.connection import choose, read_token
from hyperfleet.cli.contexts import Config, ServerContext, locate, read_config
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.flags import Flags
from hyperfleet.cli.session import CliSession
from hyperfleet.errors import DocumentError

SECRET = "geheim-4711"  # noqa: S105  # what must not be seen anywhere
CONFIG = f"""
currentContext: prod
contexts:
  prod:
    server: https://prod.example.com
    token: {SECRET}
  test: {{server: "https://test.example.com"}}
"""


def write_config(directory: Path, text: str = CONFIG) -> dict[str, str]:
    """Write a config file; return the environment that leads to it."""
    (directory / "config.yaml").write_text(text)
    return {"HYPERFLEET_CONFIG_HOME": str(directory)}


def flags(**given: str) -> Flags:
    """Make what was said on the command line."""
    made = Flags()
    for name, value in given.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("given", "variables", "server", "token"),
    [
        ({}, {}, "https://prod.example.com", SECRET),
        ({"context": "test"}, {}, "https://test.example.com", None),
        ({}, {"HYPERFLEET_CONTEXT": "test"}, "https://test.example.com", None),
        ({}, {"HYPERFLEET_SERVER": "http://a"}, "http://a", None),
        ({}, {"HYPERFLEET_SERVER": "http://a", "HYPERFLEET_CONTEXT": "test"}, "http://a", None),
        ({"context": "prod"}, {"HYPERFLEET_SERVER": "http://a"}, "https://prod.example.com", SECRET),
        ({"server": "http://b"}, {"HYPERFLEET_SERVER": "http://a"}, "http://b", None),
        ({"server": "http://b", "context": "prod"}, {}, "http://b", None),
        ({}, {"HYPERFLEET_TOKEN": "t"}, "https://prod.example.com", "t"),
        ({"context": "prod"}, {"HYPERFLEET_TOKEN": "t"}, "https://prod.example.com", SECRET),
        ({"token": "u"}, {"HYPERFLEET_TOKEN": "t"}, "https://prod.example.com", "u"),
        ({"server": "http://b"}, {"HYPERFLEET_TOKEN": "t"}, "http://b", "t"),
    ],
)
def test_the_first_that_names_a_server_wins(
    tmp_path: Path, given: dict[str, str], variables: dict[str, str], server: str, token: str | None
) -> None:
    chosen = choose(flags(**given), {**write_config(tmp_path), **variables})
    assert (chosen.server, chosen.token) == (server, token)
    assert chosen.origin


def test_the_default_is_the_address_of_serve(tmp_path: Path) -> None:
    chosen = choose(Flags(), {"HYPERFLEET_CONFIG_HOME": str(tmp_path)})
    assert (chosen.server, chosen.origin, chosen.token) == ("http://127.0.0.1:8000", "default", None)


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    environment = write_config(tmp_path)
    with pytest.raises(Misuse, match=r'has no context "prd" .--context., did you mean "prod"'):
        choose(flags(context="prd"), environment)
    with pytest.raises(Misuse, match="there are prod, test"):
        choose(flags(context="zzz"), environment)


def test_the_file_is_found_in_three_places() -> None:
    assert locate({"HYPERFLEET_CONFIG_HOME": "/a"}) == Path("/a/config.yaml")
    assert locate({"XDG_CONFIG_HOME": "/b"}) == Path("/b/hyperfleet/config.yaml")
    assert locate({"HOME": "/c"}) == Path("/c/.config/hyperfleet/config.yaml")


def test_all_errors_of_the_file_are_reported_with_positions(tmp_path: Path) -> None:
    write_config(tmp_path, "currentContext: [1]\ncontexts:\n  prod: {sever: x}\n")
    with pytest.raises(DocumentError) as caught:
        read_config(tmp_path / "config.yaml")
    text = str(caught.value)
    assert "config.yaml:1:" in text
    assert 'did you mean "server"' in text


@pytest.mark.parametrize("text", ["", "\n", "{}"])
def test_an_empty_file_is_fine(tmp_path: Path, text: str) -> None:
    write_config(tmp_path, text)
    assert read_config(tmp_path / "config.yaml") == Config()


def test_a_token_may_be_in_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    assert read_token(ServerContext("https://a", token_file=str(tmp_path / "token"))) == SECRET
    with pytest.raises(Misuse, match="cannot be read: No such file"):
        read_token(ServerContext("https://a", token_file=str(tmp_path / "none")))


def test_tokens_are_not_shown(tmp_path: Path) -> None:
    chosen = choose(Flags(), write_config(tmp_path))
    assert chosen.token == SECRET
    assert SECRET not in repr(chosen)
    assert SECRET not in repr(chosen.trust)


def test_the_token_is_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, str | None]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url.host), request.headers.get("authorization")))
        return httpx.Response(200, json={"items": []})

    ask(answer, write_config(tmp_path), "get", "clusters")
    ask(answer, write_config(tmp_path), "--context", "test", "get", "clusters")
    ask(answer, write_config(tmp_path), "get", "clusters", "--context", "test", "--token", "t")
    assert seen == [
        ("prod.example.com", f"Bearer {SECRET}"),
        ("test.example.com", None),
        ("test.example.com", "Bearer t"),
    ]
    assert SECRET not in "".join(capsys.readouterr())


def ask(answer: Callable[[httpx.Request], httpx.Response], environment: dict[str, str], *arguments: str) -> int:
    """Run a command line before a server that answers like that."""
    now = datetime(2025, 10, 17, tzinfo=UTC)
    return run(arguments, CliSession(environment, lambda: now, httpx.MockTransport(answer)))
