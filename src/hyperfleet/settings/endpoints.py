"""Parse addresses: where to listen, the database, the trace collector, networks.

`parse_*` raise ValueError with a message for people. The password in a database URL must never be shown: nothing here
quotes such a URL, `str` of a `Database` leaves it out, and `conceal` removes it from any other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

_ADDRESS: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]/\s]+)):([0-9]{1,5})")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_POSTGRES_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]*)(:[0-9]{1,5})?")
_POSTGRES: Final = ("postgresql", "postgres")

# A password follows `://user:` and ends before the last @ of its line or, in a truncated text, at the end.
# A port (`://host:5432/`) and the inside of an IPv6 address (`@[::1]`) are not passwords.
_CREDENTIALS: Final = re.compile(
    r"(://[^\s:]*(?<![/@]\[):)(?:.*@|(?![0-9]+(?:[,/?\"'\s]|$)).+)",
    re.MULTILINE,
)
_PARAMETER: Final = re.compile(r"((?:ssl)?password=)[^&\s\"']+", re.IGNORECASE)

_ENCODE: Final = "write / as %2F, : as %3A, @ as %40, ? as %3F and # as %23 where they are part of a name or password"


Network = IPv4Network | IPv6Network


class Address(Struct, frozen=True):
    """A host and a port to listen on; port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Write HOST:PORT, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine can reach it. Of names, only `localhost` is sure to be local."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def parse_address(text: str) -> Address:
    """Read HOST:PORT or [IPV6]:PORT."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f'expected HOST:PORT such as 127.0.0.1:8000, found "{conceal(text)}"{_correct_address(text)}')
    bracketed, plain, port = match.groups()
    if bracketed is not None and not _is_ipv6(bracketed):
        raise ValueError(f'expected an IPv6 address in brackets such as [::1]:8000, found "{text}"')
    if int(port) > 65535:
        raise ValueError(f"a port is at most 65535, found {port}")
    return Address(plain or bracketed, int(port))


def _correct_address(text: str) -> str:
    """Suggest a correction; empty if there is none."""
    if re.fullmatch(r":?[0-9]{1,5}", text):
        port = text.removeprefix(":")
        return f"; write 127.0.0.1:{port} for this machine only, 0.0.0.0:{port} for every network"
    host, _, port = text.rpartition(":")
    meant = ""
    if match := re.fullmatch(r"https?://([^/@]+)/?", text):
        meant = match[1]
    elif _is_ipv6(host) and port.isdigit():
        meant = f"[{host}]:{port}"
    elif _is_ipv6(text):
        meant = f"[{text}]:8000"
    elif re.fullmatch(r"[\w.-]+", text):
        meant = f"{text}:8000"
    return f', did you mean "{meant}"?' if meant else ""


def _is_ipv6(text: str) -> bool:
    try:
        return ip_address(text).version == 6
    except ValueError:
        return False


class Database(Struct, frozen=True):
    """A database: `location` is the path of a file, the URL of a server, or empty."""

    engine: Literal["sqlite", "postgresql", "memory"]
    location: str = ""

    @property
    def redacted(self) -> str:
        """Write it without the password."""
        return conceal(self.location) if self.engine == "postgresql" else f"{self.engine}:{self.location}"

    def __str__(self) -> str:
        """Write it without the password."""
        return self.redacted

    def __repr__(self) -> str:
        """Write it without the password: tracebacks and logs show this."""
        return f"Database({self.redacted!r})"


def parse_database(text: str) -> Database:
    """Read sqlite:PATH, sqlite:///PATH, postgresql://…, postgres://… or memory:."""
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    if scheme == "sqlite":
        return Database("sqlite", _sqlite_path(text[len("sqlite:") :]))
    if scheme in _POSTGRES:
        return Database("postgresql", _postgres_url(text))
    if scheme == "memory":
        if text[len("memory:") :].strip("/"):
            raise ValueError("memory: takes nothing after the colon: it stores no data")
        return Database("memory")
    # Without a known scheme, any part of the text may be secret.
    found = (
        f"found {scheme}:"
        if scheme
        else f"found no such beginning; did you mean sqlite:{'…' if '@' in text else text}?"
    )
    raise ValueError(f"expected sqlite:PATH, postgresql://USER@HOST/NAME or memory:, {found}")


def _sqlite_path(rest: str) -> str:
    """Return the path after `sqlite:`; after three slashes it is absolute, as in any URL."""
    if rest.startswith("//") and not rest.startswith("///"):
        raise ValueError(f"sqlite://{rest[2:]} names a host: write sqlite:{rest[2:]} or sqlite:///{rest[2:]}")
    path = "/" + rest.lstrip("/") if rest.startswith("///") else rest
    if path in ("", "/", ":memory:", "/:memory:"):
        raise ValueError("sqlite: needs the path of a file, such as sqlite:hyperfleet.db; memory: keeps no file")
    if "\0" in path or "?" in path:
        raise ValueError("the path after sqlite: cannot contain ? or NUL; SQLite's own options cannot be set")
    return path


def _postgres_url(text: str) -> str:
    """Return the URL if it is unambiguous; otherwise a driver might take part of the password for a host."""
    try:
        parts = urlsplit(text)
    except ValueError:
        # Not chained: the library quotes the URL, including the password.
        raise ValueError(f"this URL cannot be parsed: {_ENCODE}") from None
    if not text[len(parts.scheme) :].startswith("://"):
        raise ValueError("expected postgresql://USER:PASSWORD@HOST:PORT/NAME, the two slashes are missing")
    hosts = parts.netloc.rpartition("@")[2].split(",")
    is_valid = not (parts.fragment or "@" in parts.path + parts.query or re.search(r"\s", text))
    if not is_valid or not all(_POSTGRES_HOST.fullmatch(host) for host in hosts):
        raise ValueError(f"expected postgresql://USER:PASSWORD@HOST:PORT/NAME, this one cannot be parsed: {_ENCODE}")
    return "postgresql" + text[len(parts.scheme) :]


def parse_collector(text: str) -> str:
    """Parse the URL of a trace collector; the default path is that of OTLP."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parts.query or parts.fragment:
        raise ValueError("expected the URL of a collector, such as http://localhost:4318")  # it may have a password
    return text if parts.path.strip("/") else text.rstrip("/") + "/v1/traces"


def parse_rabbit_url(text: str) -> str:
    """Return the URL of a RabbitMQ server if it is one."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("amqp", "amqps") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    is_vhost = is_valid and (parts.path == "//" or not re.search("[/@]", parts.path[1:]))  # // is the vhost /
    if not is_vhost or parts.fragment or re.search(r"\s", text):
        raise ValueError(f"expected amqp://USER:PASSWORD@HOST/VHOST, or amqps:// for TLS; {_ENCODE}")
    return text


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read addresses and networks such as 10.0.0.0/8."""
    return tuple(map(_parse_network, texts))


def _parse_network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; expected an address or a network such as 10.0.0.0/8") from None


def conceal(text: str) -> str:
    """Replace every password of a URL in a text by ***, with what follows where its end is unclear."""
    return _PARAMETER.sub(r"\1***", _CREDENTIALS.sub(_star, text))


def _star(match: re.Match[str]) -> str:
    return match[1] + ("***@" if match[0].endswith("@") else "***")
