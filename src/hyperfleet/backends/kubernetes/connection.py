"""An HTTP client that reaches one cluster: TLS, client certificate, proxy, detection of broken networks."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx

from hyperfleet.backends.kubernetes.access import ClientCertificate, ClusterAccess
from hyperfleet.backends.kubernetes.credentials import make_auth
from hyperfleet.errors import AccessError

# A watch may be silent for minutes. The kernel finds out within a minute that the other end is gone.
_KEEPALIVE: Final = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
# Each watch holds a connection, so their number has no limit; few calls run at once.
_LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=20)


def connect(access: ClusterAccess) -> httpx.AsyncClient:
    """Create a client; nothing is sent yet."""
    return httpx.AsyncClient(
        base_url=access.server,
        auth=make_auth(access),
        headers=[*access.headers, ("User-Agent", "hyperfleet")],
        transport=_make_transport(access),
    )


def _make_transport(access: ClusterAccess) -> httpx.AsyncHTTPTransport:
    proxy = access.proxy or None
    try:
        return httpx.AsyncHTTPTransport(
            verify=_make_tls(access), limits=_LIMITS, proxy=proxy, socket_options=_KEEPALIVE, trust_env=False
        )
    except (ValueError, httpx.InvalidURL) as error:
        raise AccessError(f"the proxy of the cluster cannot be used: {error}") from error


def _make_tls(access: ClusterAccess) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.authority.decode() if access.authority else None)
        # The flag is new in Python 3.13. It refuses authorities without a key usage, as many clusters have.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if access.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if access.certificate is not None:
            _load_certificate(context, access.certificate)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise AccessError(f"the certificates for {access.server} cannot be used: {error}") from error
    return context


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Load it from files, the only way there is; they are gone when this returns."""
    with TemporaryDirectory() as directory:
        certificate_file, key_file = Path(directory, "certificate"), Path(directory, "key")
        certificate_file.write_bytes(certificate.certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(certificate.key)
        context.load_cert_chain(certificate_file, key_file, password=_refuse_password)


def _refuse_password() -> str:
    """Answer for the user at the terminal, whom OpenSSL would ask."""
    raise ValueError("the client key has a password")
