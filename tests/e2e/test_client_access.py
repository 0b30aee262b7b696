"""Both faces of the client before a real server that speaks TLS and asks who is there."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperfleet.client import ConnectionFailed, Forbidden, RateLimited, Unauthenticated
from tests.certificates import Authority
from tests.e2e.server import Server, run_command, running
from tests.unit.client.faces import FACES, Face


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest) -> Face:
    return FACES[request.param]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make a token for everybody, and the file that the server knows them by."""
    file = tmp_path_factory.mktemp("tokens") / "tokens.yaml"
    roles = {
        "admin": ("--role", "admin"),
        "reader": ("--role", "reader"),
        "dns": ("--role", "reporter", "--adapter", "dns"),
    }
    made = {"file": str(file)}
    for name, role in roles.items():
        done = run_command("token", "create", "--name", name, *role, "--file", str(file))
        assert done.returncode == 0, done.stderr
        made[name] = done.stdout.split()[0]
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: Authority, tokens: dict[str, str]) -> Iterator[Server]:
    """Run a server that lets in only whoever has a certificate and a token."""
    certificate, key = authority.issue("server")
    settings = {"tls_certificate": str(certificate), "tls_key": str(key), "tls_client_ca": str(authority.file)}
    server = Server(tmp_path_factory.mktemp("server"), "memory:", auth_tokens=tokens["file"], **settings)
    server.tls = ssl.create_default_context(cafile=str(authority.file))
    server.tls.load_cert_chain(*authority.issue("probe"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def papers(authority: Authority) -> dict[str, Any]:
    """Give what a client needs to get through the handshake."""
    certificate, key = authority.issue("client")
    return {"ca": str(authority.file), "cert": str(certificate), "key": str(key)}


def test_a_certificate_and_a_token_open_the_door(
    face: Face, server: Server, papers: dict[str, Any], tokens: dict[str, str]
) -> None:
    admin = {**papers, "token": tokens["admin"]}
    cluster = face.ask(server.url, lambda fleet: fleet.clusters.create(f"payments-{id(face)}", {}), **admin)
    reporter = {**papers, "token": tokens["dns"]}
    outcome = face.ask(server.url, lambda fleet: fleet.report(cluster, "dns", available=True), **reporter)
    assert outcome.outcome == "aggregated"
    reader = {**papers, "token": tokens["reader"]}
    events = face.collect(server.url, lambda fleet: fleet.clusters.watch(cluster), 1, **reader)
    assert events[0].resource.id == cluster.id
    face.ask(server.url, lambda fleet: fleet.wait_for_adapter(cluster, "dns", timeout=30), **reader)


def test_who_is_not_known_is_told_so_and_asked_once(
    face: Face, server: Server, papers: dict[str, Any], tokens: dict[str, str]
) -> None:
    for token in ("", "nobody-gave-me-this-token"):
        with pytest.raises(Unauthenticated, match="HYPERFLEET_TOKEN") as caught:
            face.ask(server.url, lambda fleet: fleet.clusters.page(), **papers, token=token)
        assert (caught.value.status, caught.value.attempts) == (401, 1)
        with pytest.raises(Unauthenticated):
            face.collect(server.url, lambda fleet: fleet.clusters.watch(), **papers, token=token)
    with pytest.raises(Forbidden) as refused:
        face.ask(server.url, lambda fleet: fleet.clusters.create("x", {}), **papers, token=tokens["reader"])
    assert (refused.value.status, refused.value.attempts) == (403, 1)
    assert tokens["reader"] not in str(refused.value)


def test_a_server_that_nobody_vouches_for_gets_no_token(
    face: Face, server: Server, papers: dict[str, Any], tokens: dict[str, str]
) -> None:
    strange = {"cert": papers["cert"], "key": papers["key"], "token": tokens["admin"]}
    with pytest.raises(ConnectionFailed, match=r"is not trusted.*pass the CA") as caught:
        face.ask(server.url, lambda fleet: fleet.policy(), **strange)
    assert caught.value.is_lasting
    assert caught.value.attempts == 1
    assert face.ask(server.url, lambda fleet: fleet.policy(), insecure=True, **strange).version >= 0


def test_a_client_without_a_certificate_is_told(
    face: Face, server: Server, papers: dict[str, Any], tokens: dict[str, str]
) -> None:
    with pytest.raises(ConnectionFailed, match=r"(?i)certificate"):
        face.ask(server.url, lambda fleet: fleet.policy(), ca=papers["ca"], token=tokens["admin"], retries=1)
    with pytest.raises(ConnectionFailed):
        face.ask(server.url.replace("https", "http"), lambda fleet: fleet.policy(), retries=1)


def test_the_simulator_gets_in_with_its_context(
    server: Server, papers: dict[str, Any], tokens: dict[str, str], tmp_path: Path
) -> None:
    for name, code in (("admin", 0), ("reader", 77)):
        context = {"server": server.url, "token": tokens[name], **papers}
        (tmp_path / "config.yaml").write_bytes(msgspec.yaml.encode({"contexts": {"here": context}}))
        few = ("--clusters", "2", "--duration", "5m", "--speed", "max", "--faults", "none")
        done = run_command("sim", "--context", "here", *few, config_home=str(tmp_path))
        assert done.returncode == code, done.stderr
        assert tokens[name] not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_limit_is_told_with_the_time_after_which_there_is_room(tmp_path: Path) -> None:
    with running(tmp_path, "memory:", limits_max_requests_per_second="1", limits_max_burst="1") as server:
        for face in FACES.values():
            caught = [ask_for_policy(face, server.url) for _ in range(5)]
            limited = next(error for error in caught if error)
            assert limited.retry_after
            assert limited.retry_after >= 1


def ask_for_policy(face: Face, url: str) -> RateLimited | None:
    """Ask once; return the error if there was no room."""
    try:
        face.ask(url, lambda fleet: fleet.policy(), retries=0)
    except RateLimited as error:
        return error
    return None
