"""Check TLS files before they are used, and report what is wrong with them.

Called at server start and by `serve --check`. Only a server that has a certificate loads this.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from hyperfleet.document_problem import Level
from hyperfleet.documents import DocumentPlace, DocumentProblem

_SOON: Final = timedelta(days=14)
_RSA_BITS: Final = range(2048, 4096 + 1, 512)
_CURVES: Final = ("secp256r1", "secp384r1")


def check_files(certificate: str, key: str, client_ca: str | None, now: datetime) -> tuple[DocumentProblem, ...]:
    """Return all problems of the files; an expired certificate is a warning."""
    problems = [problem for file in (certificate, key, client_ca) if file for problem in _check_readable(file)]
    if problems:
        return tuple(problems)
    problems += _check_key_type(certificate) or _check_pair(certificate, key)
    problems += _check_certificates(certificate, now)
    if client_ca:
        problems += _check_certificates(client_ca, now)
    return tuple(problems)


def _check_readable(file: str) -> list[DocumentProblem]:
    try:
        Path(file).read_bytes()
    except OSError as error:
        return [_problem(file, f"cannot be read: {error.strerror}")]
    return []


def _check_key_type(certificate: str) -> list[DocumentProblem]:
    """Check that the embedded server supports this type of key; it would crash at start otherwise."""
    try:
        key = x509.load_pem_x509_certificates(Path(certificate).read_bytes())[0].public_key()
    except ValueError:
        return []  # `_check_certificates` reports it
    match key:
        case rsa.RSAPublicKey():
            is_good = key.key_size in _RSA_BITS
        case ec.EllipticCurvePublicKey():
            is_good = key.curve.name in _CURVES
        case _:
            is_good = isinstance(key, ed25519.Ed25519PublicKey)
    message = "the key cannot be used: it must be RSA of 2048, 3072 or 4096 bits, P-256, P-384 or Ed25519"
    return [] if is_good else [_problem(certificate, message)]


def _check_pair(certificate: str, key: str) -> list[DocumentProblem]:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return [_problem(key, f"this is not the key of the certificate in {certificate}")]
        return [_problem(key, f"certificate and key cannot be used: they must be PEM ({error.reason or error})")]
    except ValueError:
        return [_problem(key, "the key is encrypted: a server cannot ask for a password when it starts")]
    return []


def _refuse_password() -> str:
    """Refuse to give a password, so that OpenSSL does not prompt for one on the terminal."""
    raise ValueError


def _check_certificates(file: str, now: datetime) -> list[DocumentProblem]:
    """Check that the certificates of a file are valid now."""
    try:
        certificates = x509.load_pem_x509_certificates(Path(file).read_bytes())
    except ValueError:
        return [_problem(file, "this file has no certificates: they must be PEM, beginning with -----BEGIN")]
    return [problem for each in certificates for problem in _check_validity(each, file, now)]


def _check_validity(certificate: x509.Certificate, file: str, now: datetime) -> list[DocumentProblem]:
    subject = certificate.subject.rfc4514_string() or "without a subject"
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begin:
        return [_problem(file, f"the certificate {subject} is valid only from {_day(begin)}", "warning")]
    if now >= end:
        return [_problem(file, f"the certificate {subject} expired on {_day(end)}", "warning")]
    if now >= end - _SOON:
        return [_problem(file, f"the certificate {subject} expires on {_day(end)}", "warning")]
    return []


def _day(time: datetime) -> str:
    return time.astimezone(UTC).date().isoformat()


def _problem(file: str, message: str, level: Level = "error") -> DocumentProblem:
    return DocumentProblem(DocumentPlace(file, 1, 1), message, "Unreadable", level)
