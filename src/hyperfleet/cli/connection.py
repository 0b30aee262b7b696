"""Which server a command connects to, and with which token.

The first of these that names a server wins:

1. `--server`
2. `--context NAME`: the server of that context
3. the variable HYPERFLEET_SERVER
4. the variable HYPERFLEET_CONTEXT: the server of that context
5. the current context of the config file
6. http://127.0.0.1:8000, where `hyperfleet serve` listens by default

The token is `--token`, else HYPERFLEET_TOKEN (ignored with `--context`, which may be for another user), else that of
the context. A context's token and certificates are for its own server only: they are not sent to a server that was
named in another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hyperfleet.cli.contexts import Config, ServerContext, locate, read_config
from hyperfleet.cli.failures import Misuse

if TYPE_CHECKING:
    import httpx

    from hyperfleet.cli.flags import Flags
    from hyperfleet.client import Fleet
    from hyperfleet.client.endpoint import Credentials

DEFAULT_SERVER: Final = "http://127.0.0.1:8000"
TIMEOUT: Final = 30.0  # seconds for one request
# A person at a terminal prefers an early error; a few retries cover the restart of a server.
RETRIES: Final = 2
DEADLINE: Final = 120.0
# For commands that run for a long time anyway, such as watch.
_PERSISTENT_RETRIES: Final = 1_000_000
_PERSISTENT_DEADLINE: Final = 7 * 24 * 3600.0
# For shell completion, which must not keep a person waiting.
_COMPLETION_TIMEOUT: Final = 1.0


class ServerConnection(Struct, frozen=True):
    """A server and how to connect to it; `origin` says where it was named, `context` is the name of its context."""

    server: str
    origin: str
    token: str | None = None
    token_origin: str = ""
    context: str | None = None
    trust: ServerContext = ServerContext(server="")  # only its TLS settings are used

    def __repr__(self) -> str:
        """Show everything but the token."""
        return f"Connection({self.server!r}, {self.origin!r})"

    @property
    def credentials(self) -> Credentials:
        """Return token and certificates, as keywords of the client."""
        return {
            "token": self.token or "",  # "": the client must not use that of the environment
            "ca": self.trust.ca,
            "cert": self.trust.cert,
            "key": self.trust.key,
            "insecure": self.trust.insecure,
        }


def choose(flags: Flags, environment: Mapping[str, str]) -> ServerConnection:
    """Choose server and token; raise errors of the config file, or `Misuse` for an unknown context."""
    file = locate(environment)
    name, named_by = _name_context(flags, environment)
    if flags.server:
        return _choose_server(flags.server, "--server", flags, environment)
    if not flags.context and (server := environment.get("HYPERFLEET_SERVER")):
        return _choose_server(server, "HYPERFLEET_SERVER", flags, environment)
    config = read_config(file)
    if name is None and config.current_context:
        name, named_by = config.current_context, f"currentContext of {file}"
    if name is None:
        return _choose_server(DEFAULT_SERVER, "default", flags, environment)
    context = _find(name, named_by, config, file)
    token, token_origin = _find_token(flags, environment)
    if token is None:
        token, token_origin = read_token(context), f"context {name}"
    return ServerConnection(context.server, named_by, token, token_origin if token else "", name, context)


def open_fleet(
    connection: ServerConnection, flags: Flags, *, is_persistent: bool, transport: httpx.BaseTransport | None = None
) -> Fleet:
    """Open the client; nothing is sent yet. A persistent one retries for as long as the server is away."""
    from hyperfleet.client import Fleet

    return Fleet(
        connection.server,
        **connection.credentials,
        timeout=flags.request_timeout.total_seconds() if flags.request_timeout else TIMEOUT,
        retries=_PERSISTENT_RETRIES if is_persistent else RETRIES,
        deadline=_PERSISTENT_DEADLINE if is_persistent else DEADLINE,
        transport=transport,
    )


def open_for_completion(connection: ServerConnection, transport: httpx.BaseTransport | None = None) -> Fleet:
    """Open a client with a short timeout and no retries."""
    from hyperfleet.client import Fleet

    return Fleet(
        connection.server,
        **connection.credentials,
        timeout=_COMPLETION_TIMEOUT,
        deadline=_COMPLETION_TIMEOUT,
        retries=0,
        transport=transport,
    )


def read_token(context: ServerContext) -> str | None:
    """Return the token of a context, from its file if it has one."""
    if not context.token_file:
        return context.token
    file = Path(context.token_file).expanduser()
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Misuse(f"the token file {file} cannot be read: {reason}") from error


def _name_context(flags: Flags, environment: Mapping[str, str]) -> tuple[str | None, str]:
    if flags.context:
        return flags.context, "--context"
    return environment.get("HYPERFLEET_CONTEXT") or None, "HYPERFLEET_CONTEXT"


def _choose_server(server: str, origin: str, flags: Flags, environment: Mapping[str, str]) -> ServerConnection:
    token, token_origin = _find_token(flags, environment)
    return ServerConnection(server, origin, token, token_origin)


def _find_token(flags: Flags, environment: Mapping[str, str]) -> tuple[str | None, str]:
    if flags.token:
        return flags.token, "--token"
    if not flags.context and (token := environment.get("HYPERFLEET_TOKEN")):
        return token, "HYPERFLEET_TOKEN"
    return None, ""


def _find(name: str, named_by: str, config: Config, file: Path) -> ServerContext:
    context = config.contexts.get(name)
    if context is not None:
        return context
    from hyperfleet.documents.wording import suggest

    known = tuple(config.contexts)
    there_are = f"there are {', '.join(known)}" if known else "there are none yet: create one with config set-context"
    guess = suggest(name, known)
    raise Misuse(f'{file} has no context "{name}" ({named_by}){guess or f"; {there_are}"}')


def read_server_clock(connection: ServerConnection) -> datetime | None:
    """Return the server's time, from the `Date` header of a response; None: there is none."""
    from email.utils import parsedate_to_datetime
    from ssl import SSLContext
    from urllib.request import Request, urlopen

    from hyperfleet.client.endpoint import ServerEndpoint, load_tls

    trust = connection.trust
    tls = load_tls(
        ServerEndpoint(connection.server, ca=trust.ca, cert=trust.cert, key=trust.key, is_insecure=trust.insecure)
    )
    request = Request(f"{connection.server.rstrip('/')}/healthz")  # noqa: S310  # the address was checked by the client
    with urlopen(request, timeout=TIMEOUT, context=tls if isinstance(tls, SSLContext) else None) as answer:  # noqa: S310  # likewise
        date = answer.headers.get("Date")
    return parsedate_to_datetime(date).astimezone(UTC) if date else None
