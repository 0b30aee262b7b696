"""The address of the client behind trusted proxies (`X-Forwarded-For`).

The outermost layer, if trusted proxies are configured; the composition root adds it. All layers inside see the address
of the client. The header of an untrusted peer is ignored, because anybody can send one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Bytes of the header that are read, from its end: proxies append, so the end is what trusted proxies wrote.
_MAX_HEADER: Final = 1_024


class Forwarding:
    """ASGI middleware that puts the address of the client into the scope."""

    def __init__(self, app: ASGIApp, trusted: Sequence[Network]) -> None:
        """Trust the header of proxies in these networks."""
        self._app = app
        self._trusted = tuple(trusted)
        self._trace = lru_cache(maxsize=4096)(self._trace_back)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the address of the client into the scope, and pass the request on."""
        client = scope.get("client")
        if scope["type"] == "http" and client:
            header = b",".join([value for name, value in scope["headers"] if name == b"x-forwarded-for"])
            if header:
                scope["client"] = (self._trace(str(client[0]), header[-_MAX_HEADER:]), client[1])
        await self._app(scope, receive, send)

    def _trace_back(self, peer: str, header: bytes) -> str:
        """Walk back along trusted proxies; the address that the last of them names is the client."""
        found = peer
        for text in reversed(header.decode("latin-1").split(",")):
            address, before = _parse(found), _parse(text)
            if address is None or before is None or not self._is_trusted(address):
                break
            found = str(before)
        return found

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def _parse(text: str) -> Address | None:
    """Read an address; some proxies append a port."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
