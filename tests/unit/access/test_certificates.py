"""The files of TLS: what is wrong with them is told before anybody connects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from hyperfleet.access.certificates import check_files
from tests.certificates import Authority, Key


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Give somebody who signs certificates."""
    return Authority(tmp_path)


def told(certificate: Path, key: Path, client_ca: Path | None = None, later: timedelta = timedelta(0)) -> list[str]:
    authorities = None if client_ca is None else str(client_ca)
    problems = check_files(str(certificate), str(key), authorities, datetime.now(UTC) + later)
    return [f"{Path(each.place.file).name}: {each.level}: {each.message}" for each in problems]


def test_good_files_have_no_problems(authority: Authority) -> None:
    assert told(*authority.issue("server"), authority.file) == []


def test_a_key_of_another_certificate(authority: Authority, tmp_path: Path) -> None:
    certificate, _ = authority.issue("server")
    _, key = authority.issue("other")
    assert told(certificate, key) == [
        f"other.key: error: this is not the key of the certificate in {tmp_path / 'server.pem'}"
    ]


def test_files_that_are_not_there_are_all_told(tmp_path: Path) -> None:
    found = told(tmp_path / "a.pem", tmp_path / "a.key", tmp_path / "ca.pem")
    assert found == [
        f"{name}: error: cannot be read: No such file or directory" for name in ("a.pem", "a.key", "ca.pem")
    ]


def test_files_that_are_something_else(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("server")
    other = tmp_path / "other.txt"
    other.write_text("hello")
    assert any("they must be PEM" in each for each in told(other, key))
    assert any("they must be PEM" in each for each in told(certificate, other))
    assert told(certificate, key, other) == [
        "other.txt: error: this file has no certificates: they must be PEM, beginning with -----BEGIN"
    ]


def test_a_key_with_a_password(authority: Authority) -> None:
    (found,) = told(*authority.issue("server", password=b"hunter2"))
    assert found.startswith("server.key: error: the key is encrypted")


@pytest.mark.parametrize(
    ("make", "is_good"),
    [
        (lambda: ec.generate_private_key(ec.SECP384R1()), True),
        (ed25519.Ed25519PrivateKey.generate, True),
        (lambda: rsa.generate_private_key(65537, 2048), True),
        (lambda: rsa.generate_private_key(65537, 2056), False),
        (lambda: rsa.generate_private_key(65537, 1024), False),  # noqa: S505  # that is what is wrong with it
        (lambda: ec.generate_private_key(ec.SECP521R1()), False),
        (lambda: ec.generate_private_key(ec.SECP256K1()), False),
    ],
)
def test_sorts_of_keys(authority: Authority, make: Callable[[], Key], is_good: bool) -> None:
    problem = (
        "server.pem: error: the key cannot be used: it must be RSA of 2048, 3072 or 4096 bits, P-256, P-384 or Ed25519"
    )
    assert told(*authority.issue("server", key=make())) == ([] if is_good else [problem])


@pytest.mark.parametrize(("days", "said"), [(-1, "expired on"), (13, "expires on"), (15, "")])
def test_when_it_ends(authority: Authority, days: float, said: str) -> None:
    found = told(*authority.issue("server", days))
    assert len(found) == bool(said)
    assert all(each.startswith(f"server.pem: warning: the certificate CN=server {said} 20") for each in found)


def test_one_that_is_not_valid_yet(authority: Authority) -> None:
    (found,) = told(*authority.issue("server"), later=-timedelta(days=31))
    assert "is valid only from" in found
