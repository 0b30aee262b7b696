"""Which addresses are of the internet; all others are refused unless they are allowed."""

from __future__ import annotations

import pytest

from hyperfleet.events.addresses import is_public

PRIVATE = (
    "127.0.0.1 127.255.255.254 0.0.0.0 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 "
    "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 192.0.0.1 "
    ":: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12:3456::1 fec0::1 ff02::1 2001:db8::1 100::1 64:ff9b:1::1 "
    "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::a00:1 2002:7f00:1::1 "
    "2002:a00:1:: 2001:0:7f00:1::1 ::127.0.0.1 ::10.0.0.1"
)
PUBLIC = "8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1"


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "8.8.8.8.8", "0x7f000001", "127.1", "[::1]"])
def test_what_is_no_address_is_not_public(text: str) -> None:
    assert not is_public(text)
