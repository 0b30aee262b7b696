"""How to connect to the server: address, token, TLS. Invalid or unsafe options are refused here.

Values come from the caller, else from the environment: `HYPERFLEET_SERVER`, `HYPERFLEET_TOKEN`,
`HYPERFLEET_ALLOW_INSECURE_TOKEN`. A token is never shown: not in `repr`, not in errors, not in logs.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypedDict
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from hyperfleet.client.errors import BadConnection

if TYPE_CHECKING:
    import ssl

    import httpx

    from hyperfleet.client.runtime import ClientRuntime

SERVER: Final = "HYPERFLEET_SERVER"
TOKEN: Final = "HYPERFLEET_TOKEN"  # noqa: S105  # the name of a variable
ALLOW_INSECURE_TOKEN: Final = "HYPERFLEET_ALLOW_INSECURE_TOKEN"  # noqa: S105  # likewise
DEFAULT_SERVER: Final = "http://127.0.0.1:8000"

_TOKEN_CHARACTERS: Final = re.compile(r"[\x21-\x7e]+")  # what a header may contain
_YES: Final = ("1", "true", "yes")


class Credentials(TypedDict, total=False):
    """How to authenticate, and which certificates to trust."""

    token: str | None  # sent as `Authorization: Bearer …`
    ca: str | None  # a file with the certificates to trust, instead of the system's
    cert: str | None  # a file with the client certificate, and its key unless `key` is given
    key: str | None
    insecure: bool  # do not verify the server's certificate


class ClientOptions(Credentials, total=False):
    """How to connect, apart from the address."""

    timeout: float  # seconds per attempt
    deadline: float  # seconds per operation, including all retries
    retries: int  # attempts after the first one; 0: none
    allow_insecure_token: bool  # send the token over plain http
    runtime: ClientRuntime  # clock, sleep and randomness; for tests
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None  # instead of sockets; for tests


class ServerEndpoint(Struct, frozen=True):
    """The address of a server and how to connect to it."""

    url: str
    token: str = ""
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    is_insecure: bool = False

    def __repr__(self) -> str:
        """Show the address, and whether there is a token; never the token."""
        return f"ServerEndpoint({self.url!r}, token={'…' if self.token else 'none'})"

    @property
    def is_local(self) -> bool:
        """Return whether it is on this machine."""
        return _is_loopback(urlsplit(self.url).hostname or "")

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def find_endpoint(
    server: str | None, options: ClientOptions, environment: Mapping[str, str] = os.environ
) -> ServerEndpoint:
    """Combine options and environment; raise `BadConnection` with what is wrong."""
    parts = _read_address(server or environment.get(SERVER) or DEFAULT_SERVER)
    given = options.get("token")
    token = environment.get(TOKEN, "") if given is None else given
    endpoint = ServerEndpoint(
        f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        token.strip(),
        options.get("ca"),
        options.get("cert"),
        options.get("key"),
        options.get("insecure", False),
    )
    if endpoint.token:
        is_allowed = environment.get(ALLOW_INSECURE_TOKEN, "").lower() in _YES
        _check_token(endpoint.token, parts, is_allowed=options.get("allow_insecure_token", is_allowed))
    return endpoint


def load_tls(endpoint: ServerEndpoint) -> ssl.SSLContext | bool:
    """Return the TLS context: how to verify the server, and the client certificate."""
    if not endpoint.url.startswith("https:"):
        return False  # not needed, and the system's certificates take a while to load
    import ssl  # noqa: PLC0415  # loaded only if needed

    try:
        context = ssl.create_default_context(cafile=endpoint.ca)
        if endpoint.cert:
            context.load_cert_chain(endpoint.cert, endpoint.key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (endpoint.ca, endpoint.cert, endpoint.key)))
        raise BadConnection(f"the certificates cannot be loaded ({files}): {error}") from error
    if endpoint.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _read_address(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise BadConnection(f"the server address is invalid: {error}") from error
    if "@" in parts.netloc or "@" in parts.path:
        raise BadConnection("the server address must not contain a user or a password; use a token instead")
    example = f"expected something like {DEFAULT_SERVER}"
    if parts.scheme not in ("http", "https"):
        raise BadConnection(f"the server address must begin with http:// or https://, found {text!r}; {example}")
    if not parts.hostname or not has_port:
        raise BadConnection(f"the server address has no host, found {text!r}; {example}")
    if parts.query or parts.fragment:
        raise BadConnection("the server address must not have a query or a fragment")
    return parts


def _check_token(token: str, parts: SplitResult, *, is_allowed: bool) -> None:
    if not _TOKEN_CHARACTERS.fullmatch(token):
        raise BadConnection("the token has invalid characters (blanks, line ends, or not ASCII)")
    if parts.scheme == "http" and not _is_loopback(parts.hostname or "") and not is_allowed:
        raise BadConnection(
            f"the token is not sent to {parts.hostname} over plain http, where others could read it: use https, or "
            f"allow it (allow_insecure_token=True, or {ALLOW_INSECURE_TOKEN}=1)"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
