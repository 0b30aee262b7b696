"""TLS: a real server speaks it, asks clients for their certificates if it is told to, and says what is wrong."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest

from tests.certificates import Authority
from tests.e2e.server import Server, await_state, run_command, running


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Give somebody who signs certificates."""
    return Authority(tmp_path)


def settings_of(authority: Authority, **more: str) -> dict[str, str]:
    certificate, key = authority.issue("server")
    return {"tls_certificate": str(certificate), "tls_key": str(key), **more}


def start(server: Server, trust: ssl.SSLContext) -> None:
    server.tls = trust
    server.start()


def test_a_server_with_a_certificate_speaks_tls(tmp_path: Path, authority: Authority) -> None:
    server = Server(tmp_path, "memory:", **settings_of(authority))
    try:
        start(server, ssl.create_default_context(cafile=str(authority.file)))
        assert f"Listening on https://127.0.0.1:{server.port}" in server.log
        assert server.http.post("/clusters", json={"name": "payments", "spec": {}}).status_code == 201
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{server.url}/readyz")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{server.port}/readyz")
        old = ssl.create_default_context(cafile=str(authority.file))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(httpx.ConnectError, match=r"(?i)protocol"):
            httpx.get(f"{server.url}/readyz", verify=old)
        assert server.is_ready(), "and none of that did any harm"
        assert server.stop() == 0
    finally:
        if server.is_running():
            server.kill9()


def test_an_older_version_is_spoken_if_it_is_set(tmp_path: Path, authority: Authority) -> None:
    server = Server(tmp_path, "memory:", **settings_of(authority, tls_min_version="tls1.2"))
    trust = ssl.create_default_context(cafile=str(authority.file))
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        start(server, trust)
        assert server.is_ready()
    finally:
        server.kill9()


def test_only_clients_with_a_certificate_get_in(tmp_path: Path, authority: Authority) -> None:
    server = Server(tmp_path, "memory:", **settings_of(authority, tls_client_ca=str(authority.file)))
    trust = ssl.create_default_context(cafile=str(authority.file))
    trust.load_cert_chain(*authority.issue("client"))
    foreign = ssl.create_default_context(cafile=str(authority.file))
    foreign.load_cert_chain(*Authority(tmp_path, "another").issue("stranger"))
    try:
        start(server, trust)
        assert server.http.get("/clusters").status_code == 200
        for stranger in (foreign, ssl.create_default_context(cafile=str(authority.file))):
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{server.url}/readyz", verify=stranger)
        assert server.is_ready()
    finally:
        server.kill9()


def test_a_check_looks_at_the_files(tmp_path: Path, authority: Authority) -> None:
    good = settings_of(authority)
    assert run_command("serve", "--check", **good).returncode == 0
    _, foreign = authority.issue("foreign")
    done = run_command("serve", "--check", **{**good, "tls_key": str(foreign)})
    assert (done.returncode, "this is not the key of the certificate" in done.stdout) == (1, True)
    done = run_command("serve", "--check", tls_certificate=good["tls_certificate"])
    assert (done.returncode, "set tls.certificate and tls.key together" in done.stdout) == (1, True)
    expired, key = authority.issue("expired", days=-1)
    done = run_command("serve", "--check", tls_certificate=str(expired), tls_key=str(key))
    assert (done.returncode, "warning: the certificate CN=expired expired on " in done.stderr) == (0, True)


def test_a_server_does_not_start_with_bad_files(tmp_path: Path, authority: Authority) -> None:
    certificate, _ = authority.issue("server")
    missing = tmp_path / "none.key"
    done = run_command(
        "serve", database="memory:", listen="127.0.0.1:0", tls_certificate=str(certificate), tls_key=str(missing)
    )
    assert done.returncode == 2
    assert f"Error: {missing}:1:1: cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_says_that_tokens_travel_in_the_clear(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.yaml"
    tokens.touch(mode=0o600)
    tokens.write_text("- {name: a, token: a-0123456789abcdefghij, roles: [admin], tenants: ['*']}\n")
    done = run_command("serve", "--check", listen="0.0.0.0:0")
    assert done.returncode == 1
    assert "configure authentication (auth.tokens, auth.issuers; docs/security.md)" in done.stdout
    done = run_command("serve", "--check", listen="0.0.0.0:0", auth_tokens=str(tokens))
    assert done.returncode == 0, "who asks may listen everywhere"
    with running(tmp_path, "memory:", auth_tokens=str(tokens)) as server:
        assert "sent unencrypted" not in server.log
    server = Server(tmp_path, "memory:", auth_tokens=str(tokens), listen="0.0.0.0:0")
    server.launch()
    try:
        await_state(lambda: "tokens are sent unencrypted to 0.0.0.0:0: set tls.certificate" in server.log)
    finally:
        server.kill9()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_server_says_that_it_asks_nobody(tmp_path: Path, log_format: str) -> None:
    server = Server(tmp_path, "memory:", listen="0.0.0.0:0", insecure_listen="true", log_format=log_format)
    server.launch()
    try:
        await_state(lambda: "0.0.0.0:0 can be reached from other machines, and callers are not" in server.log)
    finally:
        server.kill9()
    with running(tmp_path, "memory:", insecure_listen="true") as server:
        assert "can be reached" not in server.log, "this machine only"
