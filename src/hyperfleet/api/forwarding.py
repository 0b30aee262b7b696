"""Where requests really come from, if proxies that we trust say so (`X-Forwarded-For`).

The outermost layer, where there are such proxies; the composition root puts it there. Everything inside sees the
address of the client. A proxy that is not ours could say anything, so it is not believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_HEARD: Final = 1_024  # bytes of what is said, from its end; proxies add behind what anybody may have put before it


class Forwarding:
    """An application that sees through proxies."""

    def __init__(self, app: ASGIApp, trusted: Sequence[Network]) -> None:
        """Believe what proxies of these networks say."""
        self._app = app
        self._trusted = tuple(trusted)
        self._trace = lru_cache(maxsize=4096)(self._trace_back)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the address of the client into the scope, and pass the request on."""
        client = scope.get("client")
        if scope["type"] == "http" and client:
            said = b",".join([value for name, value in scope["headers"] if name == b"x-forwarded-for"])
            if said:
                scope["client"] = (self._trace(str(client[0]), said[-_HEARD:]), client[1])
        await self._app(scope, receive, send)

    def _trace_back(self, peer: str, said: bytes) -> str:
        """Go back along the proxies for as long as they are ours; whom the last of them names is the client."""
        found = peer
        for text in reversed(said.decode("latin-1").split(",")):
            address, before = _parse(found), _parse(text)
            if address is None or before is None or not self._is_trusted(address):
                break
            found = str(before)
        return found

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def _parse(text: str) -> Address | None:
    """Read an address; some proxies put a port behind it."""
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
