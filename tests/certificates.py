"""Certificates for tests: an authority of its own, and what it signs for the servers and clients of this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey


class Authority:
    """Signs certificates, and keeps them as files of a directory."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = directory / f"{name}.pem"
        self.file.write_bytes(self._sign(self._name, self._key.public_key(), 365, is_authority=True))

    def issue(
        self, name: str, days: float = 90, password: bytes | None = None, key: Key | None = None
    ) -> tuple[Path, Path]:
        """Make a certificate and its key; with fewer than no days it has expired."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate, key_file = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        certificate.write_bytes(self._sign(subject, key.public_key(), days))
        lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, lock))
        return certificate, key_file

    def _sign(
        self, subject: x509.Name, key: CertificatePublicKeyTypes, days: float, *, is_authority: bool = False
    ) -> bytes:
        now = datetime.now(UTC)
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(names, critical=False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
