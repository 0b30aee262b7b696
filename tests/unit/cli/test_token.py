"""`hyperfleet token create`: the token is shown once, and the file accepts it."""

from __future__ import annotations

import stat
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hyperfleet.access.token_file import read_tokens
from hyperfleet.cli.token import PREFIX, token
from hyperfleet.errors import SettingsError


def create(*arguments: str) -> Result:
    return CliRunner().invoke(token, ["create", *arguments])


def test_the_entry_is_printed() -> None:
    done = create("--name", "dns", "--role", "reporter", "--adapter", "dns", "--expires", "2099-01-31")
    assert done.exit_code == 0, done.output
    made = done.stdout.strip()
    assert made.startswith(PREFIX)
    assert len(made) == len(PREFIX) + 43
    head, entry = done.stderr.split("\n", 1)
    assert head == "Add this to the token file:"
    assert made not in done.stderr
    found = read_tokens(entry, "tokens.yaml", 0.0)
    assert found.problems == ()
    caller = found.tickets[sha256(made.encode()).digest()].caller
    assert (caller.name, caller.roles, caller.adapters) == ("dns", frozenset({"reporter"}), frozenset({"dns"}))


def test_entries_are_added_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    made = [
        create("--name", name, "--role", "editor", "--tenant", "red", "--file", str(file)).stdout.strip()
        for name in ("alice", 'bob "the builder"')
    ]
    found = read_tokens(file.read_text(), "tokens.yaml", 0.0)
    assert found.problems == ()
    names = [found.tickets[sha256(each.encode()).digest()].caller.name for each in made]
    assert names == ["alice", 'bob "the builder"']
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(each in file.read_text() for each in made)


def test_a_file_that_would_be_invalid_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text("tokens: []\n")
    done = create("--name", "alice", "--role", "admin", "--file", str(file))
    assert isinstance(done.exception, SettingsError)
    assert file.read_text() == "tokens: []\n"
    assert not done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "dns", "--role", "reporter"), "a reporter needs `adapters`"),
        (("--name", "dns", "--role", "reader", "--expires", "soon"), "expected a day such as"),
        (("--name", "dns", "--role", "reader", "--expires", "2020-01-31"), "the token of dns has expired"),
        (("--name", "", "--role", "reader"), "expected at least 1 character"),
        (("--name", "a\nb", "--role", "reader"), "a name may have printable characters only"),
    ],
)
def test_invalid_options_are_refused(arguments: tuple[str, ...], said: str) -> None:
    done = create(*arguments)
    assert isinstance(done.exception, SettingsError)
    assert said in str(done.exception)
    assert not done.stdout


def test_what_is_in_the_file_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    before = "# ours\r\n- {name: a, token: a-0123456789abcdefghijk, roles: [admin], tenants: ['*']}"
    file.write_bytes(before.encode())
    node = file.stat().st_ino
    reader = file.open("rb")
    with reader:
        assert create("--name", "alice", "--role", "admin", "--file", str(file)).exit_code == 0
        seen = reader.read().decode()
    assert seen.startswith(f"{before}\n- name: "), "who had it open sees it grow, and never shrink"
    assert file.stat().st_ino == node
    assert len(read_tokens(seen, "tokens.yaml", 0.0).tickets) == 2


@pytest.mark.parametrize(
    ("name", "said"), [("none/tokens.yaml", "cannot be written: No such file"), ("bad.yaml", "is not UTF-8 text")]
)
def test_an_inaccessible_file_is_named(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"\xff")
    done = create("--name", "alice", "--role", "admin", "--file", str(tmp_path / name))
    assert isinstance(done.exception, SettingsError)
    assert said in str(done.exception)
    assert name in str(done.exception)
    assert not done.stdout
