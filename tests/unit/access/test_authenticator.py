"""The authenticator remembers who it has seen, no longer than their tokens are good, and forgets who was revoked."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from hyperfleet.access import authenticator as authenticator_module
from hyperfleet.access.authenticator import TokenAuthenticator
from hyperfleet.access.factory import build_authenticator
from hyperfleet.access.issuer import Issuer
from hyperfleet.access.tokens import Tokens
from hyperfleet.errors import SettingsError
from hyperfleet.services.callers import EXPIRED, Caller, Rejection
from tests.issuing import AUDIENCE, FOREIGN, ISSUER, RSA, claims, sign, write_key_set

NOW = 1_800_000_000.0
ALICE = "alice-0123456789abcdef"
ENTRY = (
    "- {{name: {0}, token: {0}-0123456789abcdef, roles: [admin], tenants: ['*'], expires: '2027-01-16T00:00:00Z'}}\n"
)


class Hands:
    """The hands of a clock, moved by tests."""

    now = NOW

    def __call__(self) -> float:
        """Tell the time."""
        return self.now


def with_tokens(file: Path, hands: Callable[[], float]) -> TokenAuthenticator:
    return TokenAuthenticator(hands, Tokens(str(file), hands))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a file with alice's token, which ends with the day."""
    file = tmp_path / "tokens.yaml"
    file.touch(mode=0o600)
    file.write_text(ENTRY.format("alice"))
    return file


def test_somebody_is_known_after_the_first_time(file: Path) -> None:
    authenticator = with_tokens(file, Hands())
    assert authenticator.recognize(ALICE.encode()) is None
    caller = asyncio.run(authenticator.identify(ALICE.encode()))
    assert isinstance(caller, Caller)
    assert authenticator.recognize(ALICE.encode()) is caller


def test_a_token_ends_also_for_those_who_are_known(file: Path) -> None:
    hands = Hands()
    authenticator = with_tokens(file, hands)
    asyncio.run(authenticator.identify(ALICE.encode()))
    hands.now += 86_400
    assert authenticator.recognize(ALICE.encode()) is None
    assert asyncio.run(authenticator.identify(ALICE.encode())) == EXPIRED


def test_a_jwt_ends_also_for_those_who_are_known(tmp_path: Path) -> None:
    hands = Hands()
    issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=str(write_key_set(tmp_path)))
    authenticator = build_authenticator(None, (issuer,), hands)
    assert authenticator is not None
    token = sign(claims(NOW, exp=NOW + 60)).encode()
    assert isinstance(asyncio.run(authenticator.identify(token)), Caller)
    hands.now += 89
    assert authenticator.recognize(token)
    hands.now += 1
    assert authenticator.recognize(token) is None
    assert asyncio.run(authenticator.identify(token)) == EXPIRED


def test_tokens_and_jwts_work_beside_each_other(tmp_path: Path, file: Path) -> None:
    issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=str(write_key_set(tmp_path)))
    authenticator = build_authenticator(str(file), (issuer,), Hands())
    assert authenticator is not None
    for token in (ALICE, sign(claims(NOW))):
        assert isinstance(asyncio.run(authenticator.identify(token.encode())), Caller)
    assert isinstance(asyncio.run(authenticator.identify(b"bob-0123456789abcdef")), Rejection)


def test_issuers_have_keys_and_audiences_of_their_own(tmp_path: Path) -> None:
    """The keys have the same name, as those of two issuers may: whose they are is told by the issuer alone."""
    ours, theirs = write_key_set(tmp_path, RSA, file="ours"), write_key_set(tmp_path, FOREIGN, file="theirs")
    assert RSA.kid == FOREIGN.kid
    issuers = (
        Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=str(ours)),
        Issuer(issuer="https://them", audience="them", jwks=str(theirs)),
    )
    authenticator = build_authenticator(None, issuers, Hands())
    assert authenticator is not None
    known = {}
    for key, issuer, audience in product((RSA, FOREIGN), (ISSUER, "https://them"), (AUDIENCE, "them")):
        token = sign(claims(NOW, iss=issuer, aud=audience), key).encode()
        known[key is RSA, issuer, audience] = isinstance(asyncio.run(authenticator.identify(token)), Caller)
    good = [combination for combination, is_known in known.items() if is_known]
    assert good == [(True, ISSUER, AUDIENCE), (False, "https://them", "them")]


def test_a_revoked_token_ends_at_once_when_told(file: Path) -> None:
    async def run() -> None:
        authenticator = with_tokens(file, Hands())
        await authenticator.identify(ALICE.encode())
        authenticator.start()
        file.write_text(ENTRY.format("bob"))
        os.utime(file, ns=(1, 1))
        while authenticator.recognize(ALICE.encode()):  # a test that waits for ever has failed, too
            authenticator.reload()
            await asyncio.sleep(0.01)
        assert isinstance(await authenticator.identify(ALICE.encode()), Rejection)
        assert isinstance(await authenticator.identify(b"bob-0123456789abcdef"), Caller)
        await authenticator.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_memory_is_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticator_module, "_MAX_KNOWN", 2)
    monkeypatch.setattr(authenticator_module, "_MAX_REFUSED", 3)
    names = ("alice", "bob", "carol")
    file.write_text("".join(map(ENTRY.format, names)))
    authenticator = with_tokens(file, Hands())
    tokens = [f"{name}-0123456789abcdef".encode() for name in names]
    for token in tokens[:2]:
        asyncio.run(authenticator.identify(token))
    assert authenticator.recognize(tokens[0]), "asked for last, so it stays"
    asyncio.run(authenticator.identify(tokens[2]))
    assert [bool(authenticator.recognize(token)) for token in tokens] == [True, False, True]
    for number in range(20):
        assert isinstance(asyncio.run(authenticator.identify(b"%020d" % number)), Rejection)
    assert len(authenticator._refused) == 3


def test_a_token_that_is_too_long_is_not_even_looked_at(file: Path) -> None:
    authenticator = with_tokens(file, Hands())
    assert asyncio.run(authenticator.identify(b"x" * 8_193)) == Rejection("the token is too long to be one")


def test_a_bad_token_is_not_looked_at_again_for_a_while(file: Path) -> None:
    hands = Hands()
    authenticator = with_tokens(file, hands)
    bob = b"bob-0123456789abcdef"
    first = asyncio.run(authenticator.identify(bob))
    file.write_text(ENTRY.format("bob"))
    assert authenticator._tokens is not None
    assert authenticator._tokens.refresh()
    assert asyncio.run(authenticator.identify(bob)) is first
    hands.now += 5
    assert isinstance(asyncio.run(authenticator.identify(bob)), Caller)


def test_nobody_is_asked_unless_that_is_set() -> None:
    assert build_authenticator(None, (), Hands()) is None


def test_the_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    issuers = [Issuer(issuer=name, audience="a", jwks=str(tmp_path / f"{name}.json")) for name in ("x", "y")]
    with pytest.raises(SettingsError) as caught:
        build_authenticator(str(tmp_path / "none.yaml"), issuers, Hands())
    files = [Path(problem.place.file).name for problem in caught.value.problems]
    assert files == ["none.yaml", "x.json", "y.json"]


def test_cryptography_is_loaded_for_issuers_only(file: Path) -> None:
    program = (
        "import sys, hyperfleet.bootstrap; from hyperfleet.access.factory import build_authenticator; "
        f"build_authenticator({str(file)!r}, (), lambda: 0.0); "
        "sys.exit(bool({'joserfc', 'httpx', 'cryptography'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603
