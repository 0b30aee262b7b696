"""How to reach a cluster: its address, whom to trust, and how to show who we are. None of it is ever logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field


class StaticToken(Struct, frozen=True):
    """A token that never changes."""

    token: str

    def __repr__(self) -> str:
        """Hide the token."""
        return "StaticToken(…)"


class TokenFile(Struct, frozen=True):
    """A file with a token; it is read again, because the token of a service account changes every hour."""

    path: Path


class ExecPlugin(Struct, frozen=True, kw_only=True):
    """A program that prints a token, as cloud providers have one."""

    api_version: str
    command: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""  # how to install the program
    cluster: Mapping[str, object] | None = None  # what it is told about the cluster, if it asks for that

    def __repr__(self) -> str:
        """Hide arguments and environment, which may have secrets."""
        return f"ExecPlugin({self.command!r}, …)"


class ClientCertificate(Struct, frozen=True):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Hide the key."""
        return "ClientCertificate(…)"


class ClusterAccess(Struct, frozen=True, kw_only=True):
    """Everything that a client of one cluster needs."""

    server: str  # its URL
    namespace: str = "default"  # of the context
    authority: bytes | None = None  # certificates of authorities as PEM; None: those of the system
    is_insecure: bool = False  # the certificate of the server is not checked
    server_name: str = ""  # the name that its certificate has, if not that of the URL
    proxy: str = ""
    credentials: StaticToken | TokenFile | ExecPlugin | None = None
    certificate: ClientCertificate | None = None
    headers: Sequence[tuple[str, str]] = ()  # whom to impersonate

    def __repr__(self) -> str:
        """Name the server only."""
        return f"ClusterAccess({self.server!r}, …)"
