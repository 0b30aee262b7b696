"""How to connect to a server; and a token is never shown."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.client import AsyncFleet, BadConnection, ConnectionFailed, Fleet
from hyperfleet.client.endpoint import ClientOptions, find_endpoint, load_tls

SECRET = "hunter2"  # noqa: S105  # what must not be seen anywhere


def test_options_win_over_the_environment() -> None:
    environment = {"HYPERFLEET_SERVER": "https://fleet.example/prefix/", "HYPERFLEET_TOKEN": f" {SECRET}\n"}
    found = find_endpoint(None, {}, environment)
    assert (found.url, found.headers) == ("https://fleet.example/prefix", {"Authorization": f"Bearer {SECRET}"})
    found = find_endpoint("http://localhost:1", {"token": "other"}, environment)
    assert (found.url, found.token) == ("http://localhost:1", "other")
    assert find_endpoint(None, {"token": ""}, environment).headers == {}, "an empty token is none, whatever there is"
    assert find_endpoint(None, {}, {}).url == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("localhost:8000", "must begin with http:// or https://"),
        ("ftp://x", "must begin with http:// or https://"),
        ("http://", "has no host"),
        ("http://x:0", "has no host"),
        ("http://x:99999", "is invalid"),
        ("http://[::1", "is invalid"),
        ("http://x/?a=1", "query or a fragment"),
        (f"http://me:{SECRET}@x", "must not contain a user or a password"),
        (f"me:{SECRET}@x:8000", "must not contain a user or a password"),
        (f"http://x/?token={SECRET}", "query or a fragment"),
    ],
)
def test_an_invalid_address_is_refused(server: str, why: str) -> None:
    with pytest.raises(BadConnection, match=why) as caught:
        find_endpoint(server, {}, {})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("host", ["fleet.example", "10.0.0.1", "0.0.0.0", "localhost.example", "[2001:db8::1]"])  # noqa: S104
def test_a_token_is_not_sent_over_plain_http(host: str) -> None:
    options: ClientOptions = {"token": SECRET}
    with pytest.raises(BadConnection, match="over plain http") as caught:
        find_endpoint(f"http://{host}:8000", options, {})
    assert SECRET not in str(caught.value)
    assert find_endpoint(f"https://{host}", options, {}).token == SECRET
    assert find_endpoint(f"http://{host}", {**options, "allow_insecure_token": True}, {}).token == SECRET
    assert find_endpoint(f"http://{host}", options, {"HYPERFLEET_ALLOW_INSECURE_TOKEN": "true"}).token == SECRET
    forbidden: ClientOptions = {**options, "allow_insecure_token": False}
    with pytest.raises(BadConnection):
        find_endpoint(f"http://{host}", forbidden, {"HYPERFLEET_ALLOW_INSECURE_TOKEN": "1"})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "a.localhost"])
def test_a_token_may_be_sent_to_this_machine(host: str) -> None:
    assert find_endpoint(f"http://{host}:8000", {"token": SECRET}, {}).token == SECRET


@given(st.text(min_size=1))
def test_a_token_cannot_break_out_of_its_header(token: str) -> None:
    try:
        headers = find_endpoint("https://x", {"token": token}, {}).headers
    except BadConnection:
        pass
    else:
        assert all(" " < letter <= "~" for letter in headers.get("Authorization", "Bearer x")[7:])


def test_a_token_is_never_shown() -> None:
    with Fleet("http://127.0.0.1:1", token=SECRET, retries=0) as fleet:
        shown = [repr(fleet), repr(fleet.clusters), repr(fleet.reporter("dns")), repr(fleet._link), str(vars(fleet))]
        with pytest.raises(ConnectionFailed) as caught:
            fleet.policy()
        shown += [str(caught.value), repr(caught.value), repr(caught.value.__cause__)]
    awaited = AsyncFleet("http://127.0.0.1:1", token=SECRET)
    shown.append(repr(awaited))
    asyncio.run(awaited.aclose())
    assert SECRET not in "".join(shown)


def test_certificates(tmp_path: Path) -> None:
    assert load_tls(find_endpoint("http://x", {}, {})) is False
    strict = load_tls(find_endpoint("https://x", {}, {}))
    assert isinstance(strict, ssl.SSLContext)
    assert strict.verify_mode is ssl.CERT_REQUIRED
    lax = load_tls(find_endpoint("https://x", {"insecure": True}, {}))
    assert isinstance(lax, ssl.SSLContext)
    assert lax.verify_mode is ssl.CERT_NONE
    nothing = tmp_path / "ca.pem"
    for options in ({"ca": str(nothing)}, {"cert": str(nothing)}):
        with pytest.raises(BadConnection, match=r"ca\.pem"):
            load_tls(find_endpoint("https://x", options, {}))  # type: ignore[arg-type]  # a plain dict in a test
    nothing.write_text("not a certificate")
    with pytest.raises(BadConnection, match=r"ca\.pem"):
        load_tls(find_endpoint("https://x", {"ca": str(nothing)}, {}))
