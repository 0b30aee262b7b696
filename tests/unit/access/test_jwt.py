"""JWTs: the good ones make callers, the bad ones make nothing, and keys may change or be away meanwhile."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import OctKey

from hyperfleet.access.authenticator import TokenAuthenticator
from hyperfleet.access.factory import build_authenticator
from hyperfleet.access.issuer import Claims, Issuer
from hyperfleet.access.jwt import Verifier
from hyperfleet.access.keys import Keys, keys_of
from hyperfleet.errors import SettingsError
from hyperfleet.ports import EVERYTHING, Scope
from hyperfleet.services.callers import Caller, Rejection
from tests.issuing import (
    AUDIENCE,
    BAD,
    CURVE,
    FOREIGN,
    ISSUER,
    NEXT,
    RSA,
    SECRET,
    Directory,
    claims,
    key_set,
    publishing,
    sign,
    write_key_set,
)

NOW = 1_800_000_000.0


class Hands:
    """The hands of a clock, moved by tests."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        """Tell the time."""
        return self.now


def issuer_of(directory: Path, **more: Any) -> Issuer:
    return Issuer(issuer=ISSUER, audience=AUDIENCE, **{"jwks": str(write_key_set(directory)), **more})


def identify(token: str, issuer: Issuer, now: float = NOW) -> Caller | Rejection:
    authenticator = build_authenticator(None, (issuer,), lambda: now)
    assert authenticator is not None
    return asyncio.run(authenticator.identify(token.encode()))


def caller_of(token: str, issuer: Issuer) -> Caller:
    found = identify(token, issuer)
    assert isinstance(found, Caller), found
    return found


@pytest.mark.parametrize("name", BAD)
def test_bad_tokens_are_refused(tmp_path: Path, name: str) -> None:
    token = BAD[name](NOW)
    found = identify(token, issuer_of(tmp_path))
    assert isinstance(found, Rejection)
    assert not found.is_temporary
    assert token not in found.reason


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (CURVE, "ES256")])
def test_a_good_token_makes_a_caller(tmp_path: Path, key: Any, algorithm: str) -> None:
    caller = caller_of(sign(claims(NOW), key, algorithm), issuer_of(tmp_path))
    assert caller == Caller("alice", EVERYTHING, "", frozenset({"admin"}), None)


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"aud": ["others", AUDIENCE]}, "one of several audiences is enough"),
        ({"exp": NOW - 29}, "clocks differ"),
        ({"nbf": NOW + 29, "iat": NOW + 29}, "clocks differ"),
        ({"nbf": None, "iat": None}, "only exp is needed"),
        ({"exp": NOW + 0.5}, "a fraction is a number"),
    ],
)
def test_good_claims(tmp_path: Path, changes: dict[str, Any], because: str) -> None:
    assert isinstance(identify(sign(claims(NOW, **changes)), issuer_of(tmp_path)), Caller), because


@pytest.mark.parametrize("type_", [None, "JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_types_of_access_tokens(tmp_path: Path, type_: str | None) -> None:
    assert isinstance(identify(sign(claims(NOW), typ=type_), issuer_of(tmp_path)), Caller)


def test_a_header_may_say_more_than_we_need(tmp_path: Path) -> None:
    token = sign(claims(NOW), x5t="thumbprint", nonce="abc", x5c=["A" * 1_000])
    assert isinstance(identify(token, issuer_of(tmp_path)), Caller)


def test_no_leeway_is_none(tmp_path: Path) -> None:
    issuer = issuer_of(tmp_path, leeway=timedelta(0))
    assert isinstance(identify(sign(claims(NOW, exp=NOW - 1)), issuer), Rejection)


def test_a_key_that_is_not_named_is_found_if_there_is_no_choice(tmp_path: Path) -> None:
    token = sign(claims(NOW), RSA, kid=None)
    assert isinstance(identify(token, issuer_of(tmp_path)), Caller), "there is one RSA key"
    write_key_set(tmp_path, RSA, FOREIGN)
    issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=str(tmp_path / "jwks.json"))
    assert isinstance(identify(token, issuer), Rejection)


# ── what claims mean ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "settings", "expected"),
    [
        ({"roles": None}, {}, {"roles": frozenset()}),
        ({"roles": "reader editor"}, {}, {"roles": frozenset({"reader", "editor"})}),
        ({"roles": ["king", "reader", 5]}, {}, {"roles": frozenset({"reader"})}),
        ({"roles": {"admin": True}}, {}, {"roles": frozenset()}),
        (
            {"roles": ["fleet-ops", "admin"]},
            {"roles": {"fleet-ops": "editor"}},
            {"roles": frozenset({"editor"})},
        ),
        (
            {"realm_access": {"roles": ["reader"]}},
            {"claims": {"roles": "realm_access.roles"}},
            {"roles": frozenset({"reader"})},
        ),
        ({"realm_access": "reader"}, {"claims": {"roles": "realm_access.roles"}}, {"roles": frozenset()}),
        (
            {"https://example.com/roles": ["reader"]},
            {"claims": {"roles": "https://example.com/roles"}},
            {"roles": frozenset({"reader"})},
        ),
        ({"roles": ["reporter"]}, {}, {"adapters": frozenset()}),
        ({"roles": ["reporter"], "adapters": "dns"}, {}, {"adapters": frozenset({"dns"})}),
        ({"roles": ["reporter"], "adapters": ["*"]}, {}, {"adapters": None}),
        ({"roles": ["admin"]}, {}, {"adapters": None}),
        ({"roles": ["admin"], "adapters": ["dns"]}, {}, {"adapters": frozenset({"dns"})}),
        ({"tenants": None}, {}, {"scope": Scope(frozenset()), "tenant": ""}),
        ({"tenants": []}, {"tenants": ("*",)}, {"scope": Scope(frozenset())}),
        ({"tenants": None}, {"tenants": ("*",)}, {"scope": EVERYTHING}),
        ({"tenants": None}, {"tenants": ("red",)}, {"scope": Scope(frozenset({"red"})), "tenant": "red"}),
        ({"tenants": "red blue"}, {}, {"scope": Scope(frozenset({"red", "blue"})), "tenant": ""}),
        ({"tenants": 5}, {"tenants": ("*",)}, {"scope": Scope(frozenset())}),
        ({"tenants": ["", "a\0b", "x" * 257, 1, "red"]}, {}, {"scope": Scope(frozenset({"red"}))}),
        ({"email": "a@example.com"}, {"claims": {"name": "email"}}, {"name": "a@example.com"}),
        ({}, {"prefix": "corp:"}, {"name": "corp:alice"}),
    ],
)
def test_what_claims_mean(
    tmp_path: Path, said: dict[str, Any], settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    if "claims" in settings:
        settings = {**settings, "claims": Claims(**settings["claims"])}
    caller = caller_of(sign(claims(NOW, **said)), issuer_of(tmp_path, **settings))
    assert {name: getattr(caller, name) for name in expected} == expected


# ── a shared secret ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_shared_secret_is_for_development(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, secret_file=str(file))
    assert isinstance(identify(sign(claims(NOW), OctKey.import_key(SECRET), "HS256"), issuer), Caller)
    assert "for development only" in caplog.text
    assert SECRET not in caplog.text
    assert isinstance(identify(sign(claims(NOW)), issuer), Rejection), "and nothing else is taken from that issuer"
    file.write_text("short")
    with pytest.raises(SettingsError, match="at least 32 bytes"):
        build_authenticator(None, (issuer,), lambda: NOW)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"", "not a JSON Web Key Set"),
        (b"[]", "not a JSON Web Key Set"),
        (b"[" * 100_000, "not a JSON Web Key Set"),
        (b'{"keys": []}', "no key to verify"),
        (b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', "no key to verify"),
        (b'{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}', "no key to verify"),
        (b'{"keys": [{"kty": "RSA", "n": "' + b"A" * 300 + b"_" * 171 + b'", "e": "AQAB"}]}', "no key to verify"),
        (b'{"keys": [{"kty": "RSA", "n": "no base64", "e": "AQAB"}]}', "no key to verify"),
        (b'{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}', "no key to verify"),
        pytest.param(key_set(RSA).replace(b'"sig"', b'"enc"'), "no key to verify", id="for encryption"),  # keys vary
        (b'{"keys": [' + b'{"kty":"oct"},' * 100 + b'{"kty":"oct"}]}', "more than 100"),
    ],
)
def test_a_bad_file_of_keys_ends_the_start(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_bytes(content)
    issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=str(file))
    with pytest.raises(SettingsError, match=message):
        build_authenticator(None, (issuer,), lambda: NOW)


class Remote:
    """An authenticator whose issuer tells its keys at an address, and the clock of both."""

    def __init__(self, directory: Directory) -> None:
        self.hands = Hands()
        issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=directory.url)
        self.keys: Keys = keys_of(issuer, self.hands)
        self.authenticator = TokenAuthenticator(self.hands, None, Verifier({ISSUER: (issuer, self.keys)}), [self.keys])

    async def ask(self, key: Any, algorithm: str = "ES256", **more: Any) -> Caller | Rejection:
        """Show a token."""
        return await self.authenticator.identify(sign(claims(self.hands.now), key, algorithm, **more).encode())

    def pass_time(self, seconds: float) -> None:
        """Move on."""
        self.hands.now += seconds


def test_keys_are_fetched_when_they_are_needed_first() -> None:
    async def run(directory: Directory) -> None:
        remote = Remote(directory)
        found = await asyncio.gather(*(remote.ask(CURVE, iat=number) for number in range(5)))
        assert all(isinstance(each, Caller) for each in found)
        assert directory.visits == 1, "who asks at the same time asks once"

    with publishing() as directory:
        asyncio.run(run(directory))


def test_new_keys_are_found_and_old_ones_end() -> None:
    async def run(directory: Directory) -> None:
        remote = Remote(directory)
        token = sign(claims(NOW), CURVE, "ES256").encode()
        assert isinstance(await remote.authenticator.identify(token), Caller)
        directory.document = key_set(NEXT)
        assert isinstance(await remote.ask(NEXT), Rejection), "the issuer was asked a moment ago"
        assert remote.authenticator.recognize(token)
        remote.pass_time(31)
        assert isinstance(await remote.ask(NEXT), Caller)
        assert remote.authenticator.recognize(token) is None, "what an old key let in is asked for again"
        assert isinstance(await remote.authenticator.identify(token), Rejection)
        assert directory.visits == 2

    with publishing() as directory:
        asyncio.run(run(directory))


def test_unknown_keys_do_not_make_us_ask_again_and_again() -> None:
    async def run(directory: Directory) -> None:
        remote = Remote(directory)
        for number in range(50):
            assert isinstance(await remote.ask(NEXT, kid=f"random-{number}"), Rejection)
        assert directory.visits == 1

    with publishing() as directory:
        asyncio.run(run(directory))


def test_keys_stay_when_the_issuer_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def run(directory: Directory) -> None:
        remote = Remote(directory)
        await remote.keys.refresh()
        directory.status = 500
        remote.pass_time(400)
        await remote.keys.refresh()
        assert isinstance(await remote.ask(CURVE), Caller)
        found = await remote.ask(NEXT)
        assert isinstance(found, Rejection)
        assert found.is_temporary, "it may be a new one of theirs"
        directory.document, directory.status = b"x" * 300_000, 200
        await remote.keys.refresh()
        assert isinstance(await remote.ask(CURVE), Caller)

    with publishing() as directory:
        asyncio.run(run(directory))
    assert "it answered 500" in caplog.text
    assert "it answered more than 262,144 bytes" in caplog.text
    assert "eyJ" not in caplog.text, "no token is in the log"


def test_an_issuer_that_never_was_there_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with publishing() as directory:
        remote = Remote(directory)  # its server is gone when it is asked

    async def run() -> None:
        found = await remote.ask(CURVE)
        assert isinstance(found, Rejection)
        assert found.is_temporary

    asyncio.run(run())
    assert "cannot load the keys" in caplog.text


def test_an_address_that_is_none_is_an_issuer_that_is_away() -> None:
    directory = Directory()
    directory.url = "https://1.2.3.999/keys"
    found = asyncio.run(Remote(directory).ask(CURVE))
    assert isinstance(found, Rejection)
    assert found.is_temporary


def test_a_redirect_is_not_followed() -> None:
    async def run(directory: Directory) -> None:
        directory.status = 302
        remote = Remote(directory)
        assert isinstance(await remote.ask(CURVE), Rejection)
        assert directory.visits == 1

    with publishing() as directory:
        asyncio.run(run(directory))


def test_a_changed_file_of_keys_is_read_again(tmp_path: Path) -> None:
    async def run() -> None:
        issuer = issuer_of(tmp_path)
        keys = keys_of(issuer)
        authenticator = TokenAuthenticator(lambda: NOW, None, Verifier({ISSUER: (issuer, keys)}), [keys])
        token = sign(claims(NOW), CURVE, "ES256").encode()
        assert isinstance(await authenticator.identify(token), Caller)
        write_key_set(tmp_path, NEXT)
        await keys.refresh()
        assert authenticator.recognize(token) is None
        assert isinstance(await authenticator.identify(token), Rejection)
        (tmp_path / "jwks.json").write_text("{}")
        await keys.refresh()
        assert isinstance(await authenticator.identify(sign(claims(NOW), NEXT, "ES256").encode()), Caller)

    asyncio.run(run())
