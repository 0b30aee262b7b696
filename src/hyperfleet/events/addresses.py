"""Tells public addresses from those inside a network, which webhooks refuse unless they are allowed.

An address may carry another one: IPv4 in IPv6, NAT64, 6to4, Teredo. Then that one decides.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

# The well-known prefix of NAT64 (RFC 6052): the last four bytes are an IPv4 address. The prefix for local use
# (RFC 8215) is not public.
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
_LAST_FOUR_BYTES: Final = 0xFFFF_FFFF


def is_public(text: str) -> bool:
    """Tell whether an address is one of the internet; what is no address at all is not."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return all(map(_is_global, _carried_by(address)))


def _carried_by(address: IPv4Address | IPv6Address) -> tuple[IPv4Address | IPv6Address, ...]:
    """Return the addresses that traffic to this one may reach."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(int(address) & _LAST_FOUR_BYTES),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    return (address,)


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_private
    if isinstance(address, IPv6Address):
        is_special = is_special or address.is_site_local or address in _LOCAL_NAT64
    return address.is_global and not is_special
