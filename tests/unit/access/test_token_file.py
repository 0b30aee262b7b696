"""A file of tokens: what it says, all that is wrong with it and where, and that no token is ever shown."""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from pathlib import Path

import pytest

from hyperfleet.access.token_file import read_tokens
from hyperfleet.access.tokens import Tokens
from hyperfleet.errors import SettingsError
from hyperfleet.ports import EVERYTHING, Scope

NOW = 1_800_000_000.0  # 2027-01-15
TOKEN = "hft_0123456789abcdefghijklmnopq"  # noqa: S105  # only of tests
TOO_SHORT = "a token has at least 20 characters, or it can be guessed; use `hyperfleet token create`"
UNKNOWN = (
    'unknown key "token5", did you mean "token"? '
    "Allowed here: name, roles, tenants, adapters, token, tokenSha256, expires"
)
DIGEST = sha256(TOKEN.encode()).hexdigest()


def told(text: str) -> list[str]:
    return [str(problem) for problem in read_tokens(text, "tokens.yaml", NOW).problems]


def test_an_entry_makes_a_caller() -> None:
    found = read_tokens(
        f"- {{name: dns, tokenSha256: '{DIGEST}', roles: [reporter], adapters: [dns], tenants: [red], "
        "expires: 2027-01-31}\n",
        "tokens.yaml",
        NOW,
    )
    assert found.problems == ()
    ticket = found.tickets[bytes.fromhex(DIGEST)]
    caller = ticket.caller
    assert (caller.name, caller.roles, caller.adapters) == ("dns", frozenset({"reporter"}), frozenset({"dns"}))
    assert (caller.scope, caller.tenant) == (Scope(frozenset({"red"})), "red")
    assert ticket.until == 1_801_353_600.0, "2027-01-31 at midnight UTC"


def test_a_plain_token_is_kept_by_its_digest() -> None:
    found = read_tokens(f"- {{name: a, token: {TOKEN}, roles: [admin], tenants: ['*']}}", "tokens.yaml", NOW)
    (caller,) = [ticket.caller for ticket in found.tickets.values()]
    assert list(found.tickets) == [bytes.fromhex(DIGEST)]
    assert (caller.scope, caller.tenant, caller.adapters) == (EVERYTHING, "", None)


def test_somebody_of_several_tenants_creates_for_none_of_them() -> None:
    found = read_tokens(f"- {{name: a, token: {TOKEN}, roles: [editor], tenants: [red, blue]}}", "tokens.yaml", NOW)
    (ticket,) = found.tickets.values()
    assert (ticket.caller.scope, ticket.caller.tenant) == (Scope(frozenset({"red", "blue"})), "")
    assert ticket.caller.adapters == frozenset(), "an editor reports as nobody"


def test_every_problem_is_told_with_its_place() -> None:
    text = f"""\
- name: dns
  token: 12345678901234567890
  roles: [reporter]
  tenants: ["*"]
- {{name: x, tokenSha256: {TOKEN}, roles: [], tenants: [a], expires: tomorrow}}
- {{name: y, token: short, roles: [king], expires: 2020-01-01, token5: 1}}
- {{name: z, token: {TOKEN}, roles: [admin], tenants: ["*"], expires: "2027-01-31T00:00:00"}}
- {{name: z2, tokenSha256: "{DIGEST}", token: "{TOKEN}!", roles: [admin], tenants: ["*"]}}
- 5
"""
    assert told(text) == [
        'tokens.yaml:1:3: a reporter needs `adapters`, the names it reports as; ["*"] means any',
        "tokens.yaml:2:10: expected a token: text, in quotes",
        "tokens.yaml:5:26: expected the SHA-256 of a token: 64 hexadecimal digits in lower case, in quotes",
        "tokens.yaml:5:66: expected at least 1 item, found 0",
        "tokens.yaml:5:93: expected a day such as 2027-01-31 or a time such as 2027-01-31T12:00:00Z",
        'tokens.yaml:6:3: the key "tenants" is missing',
        f"tokens.yaml:6:20: {TOO_SHORT}",
        'tokens.yaml:6:35: expected one of "admin", "editor", "reader", "reporter", found the text "king"',
        "tokens.yaml:6:51: warning: the token of y has expired",
        f"tokens.yaml:6:63: {UNKNOWN}",
        "tokens.yaml:7:94: a time needs its offset: write Z behind it for UTC",
        "tokens.yaml:8:3: an entry has either `tokenSha256` or `token`; `hyperfleet token create` makes one",
        "tokens.yaml:8:3: this token is the same as that of entry 4: its caller would be ambiguous",
        "tokens.yaml:8:102: a token may have only letters, digits and - . _ ~ + /",
        "tokens.yaml:9:3: expected a mapping, found the number 5",
    ]
    assert read_tokens(text, "tokens.yaml", NOW).tickets == {}


@pytest.mark.parametrize(
    "text",
    [
        f"- {{name: a, token: '{TOKEN}' x, roles: [admin]}}",
        f"- name: a\n  token: {TOKEN}: b\n",
        f"- name: a\n token: {TOKEN}\n",
        f"- {{name: a, token: [{TOKEN}], roles: [admin], tenants: ['*']}}",
        f"- {{name: a, tokenSha256: {TOKEN}, roles: [admin], tenants: ['*']}}",
        f"- {TOKEN}\n",
        TOKEN,
        f"{TOKEN}==",
        f"- {TOKEN}: admin\n",
        f"- {{name: a, {TOKEN}}}",
        f"- name: a\n  {TOKEN}: 1\n  {TOKEN}: 2\n",
        f"- {{name: a, token: {TOKEN}, roles: {TOKEN}, tenants: [{TOKEN}, 5]}}",
        f"- *{TOKEN}",
    ],
)
def test_no_problem_shows_a_token(text: str) -> None:
    assert told(text)
    assert TOKEN not in "".join(told(text))


def test_a_name_stays_on_its_line() -> None:
    text = f'- {{name: "a\\nb", token: {TOKEN}, roles: [admin], tenants: ["*"]}}'
    assert told(text) == [
        "tokens.yaml:1:10: a name may have printable characters only: it is written to logs, on one line"
    ]


def test_one_name_may_have_several_tokens() -> None:
    text = f"- {{name: a, token: {TOKEN}, roles: [admin], tenants: ['*']}}\n"
    assert told(text + text.replace(TOKEN, f"{TOKEN}2")) == [], "so that one can follow the other"


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────


def write(file: Path, *tokens: str, mode: int = 0o600) -> None:
    """Write a file, and make it look changed, however coarse the clock of the file system is."""
    file.write_text("".join(f"- {{name: a, token: {each}, roles: [admin], tenants: ['*']}}\n" for each in tokens))
    file.chmod(mode)
    write.time += 1_000_000_000  # type: ignore[attr-defined]  # a counter of its own
    os.utime(file, ns=(write.time, write.time))  # type: ignore[attr-defined]


write.time = 1_700_000_000_000_000_000  # type: ignore[attr-defined]


def knows(tokens: Tokens, token: str) -> bool:
    return tokens.find(sha256(token.encode()).digest()) is not None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    write(file, TOKEN)
    tokens = Tokens(str(file), lambda: NOW)
    assert not tokens.refresh()
    write(file, f"{TOKEN}2")
    assert tokens.refresh()
    assert (knows(tokens, TOKEN), knows(tokens, f"{TOKEN}2")) == (False, True)


def test_tokens_in_force_survive_a_bad_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "tokens.yaml"
    write(file, TOKEN)
    tokens = Tokens(str(file), lambda: NOW)
    write(file, "short")
    assert not tokens.refresh()
    assert knows(tokens, TOKEN)
    assert not tokens.refresh(), "it is complained of once"
    file.unlink()
    assert not tokens.refresh()
    assert knows(tokens, TOKEN)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "a token has at least 20 characters" in caplog.text
    write(file, f"{TOKEN}2")
    assert tokens.refresh()
    assert not knows(tokens, TOKEN)


@pytest.mark.parametrize(("content", "message"), [(None, "cannot be read: No such file"), (b"\xff", "is not UTF-8")])
def test_a_file_that_is_none_ends_the_start(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "tokens.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        Tokens(str(file), lambda: NOW)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o600, ""),
        (0o640, ""),
        (0o644, "every user of this machine can read"),
        (0o666, "every user of this machine can change"),
    ],
)
def test_a_file_that_others_can_read_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, said: str
) -> None:
    file = tmp_path / "tokens.yaml"
    write(file, TOKEN, mode=mode)
    with caplog.at_level(logging.WARNING):
        Tokens(str(file), lambda: NOW)
    assert (said in caplog.text) if said else not caplog.records
