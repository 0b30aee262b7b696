"""Whose address a request has: a proxy is believed only if it is ours."""

from __future__ import annotations

import asyncio
import tracemalloc
from ipaddress import ip_network
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from hyperfleet.api.forwarding import Forwarding

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "said", "expected", "because"),
    [
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9", "our proxy says so"),
        ("10.0.0.1", ["203.0.113.9, 10.0.0.7"], "203.0.113.9", "the proxy before it is ours too"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9", "what that one says may be a lie"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9", "several headers are one list"),
        ("203.0.113.9", ["1.1.1.1"], "203.0.113.9", "it is not our proxy"),
        ("10.0.0.1", [], "10.0.0.1", "nothing is said"),
        ("10.0.0.1", ["unknown"], "10.0.0.1", "that is no address"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9", "some add a port"),
        ("fd00::1", ["[2001:db8::5]:4711"], "2001:db8::5", "also to these"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9", "the same address, written otherwise"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3", "all are ours: the first began"),
        ("10.0.0.1", ["\xff\xfe"], "10.0.0.1", "that is nothing at all"),
        ("10.0.0.1", ["x" * 100_000 + ", 203.0.113.9"], "203.0.113.9", "whatever somebody put before it"),
    ],
)
def test_who_is_believed(peer: str, said: list[str], expected: str, because: str) -> None:
    seen: list[Any] = []

    async def look(scope: Scope, _: Receive, __: Send) -> None:
        seen.append(scope["client"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nobody asks")

    headers = [(b"x-forwarded-for", text.encode("latin-1")) for text in said]
    scope = {"type": "http", "client": (peer, 4711), "headers": headers}
    asyncio.run(Forwarding(look, TRUSTED)(scope, nothing, nothing))
    assert seen == [(expected, 4711)], because


def test_what_is_said_does_not_fill_the_memory() -> None:
    async def pass_by(*_: Any) -> Any:
        """Look at nothing."""

    forwarding, long = Forwarding(pass_by, TRUSTED), "1.2.3.4, " * 10_000

    async def ask(peer: str) -> None:
        for number in range(200):
            headers = [(b"x-forwarded-for", f"{number}, {long}{number}, 203.0.113.9".encode())]
            await forwarding({"type": "http", "client": (peer, 1), "headers": headers}, pass_by, pass_by)

    tracemalloc.start()
    asyncio.run(ask("10.0.0.1"))
    asyncio.run(ask("203.0.113.7"))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000
