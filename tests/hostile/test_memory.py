"""A real server whose readers do not read: what waits for them must fit into memory."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.server import Server, await_state, running

pytestmark = pytest.mark.long

CLUSTERS: Final = 60
SPEC: Final = 900_000  # bytes
READERS: Final = 60
MOST: Final = 300  # megabytes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server with clusters near the limit of size."""
    directory = tmp_path_factory.mktemp("memory")
    with running(directory, f"sqlite:{directory / 'fleet.db'}") as server:
        for number in range(CLUSTERS):
            spec = {"text": "x" * SPEC}
            assert server.http.post("/clusters", json={"name": f"c{number}", "spec": spec}).status_code == 201
        yield server


def memory_of(server: Server) -> int:
    """Return the resident memory of a server in megabytes."""
    text = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
    return int(text.partition("VmRSS:")[2].split()[0]) // 1024


def ask_without_reading(server: Server, path: str, stack: ExitStack) -> socket.socket:
    """Send a request over a connection with a tiny buffer, and read nothing."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.connect((host, int(port)))
    base = server.api.removeprefix(server.url)
    connection.sendall(f"GET {base}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize("path", ["/clusters?watch=true", "/clusters?limit=500", "/clusters/{id}", "/clusters?limit=3"])
def test_readers_that_do_not_read(server: Server, path: str) -> None:
    some = server.http.get("/clusters?limit=1&fields=id").json()["items"][0]["id"]
    with ExitStack() as stack:
        for _ in range(READERS):
            ask_without_reading(server, path.format(id=some), stack)
            assert server.http.get(f"{server.url}/healthz").status_code == 200
        assert memory_of(server) < MOST
        assert server.http.get("/clusters?limit=1&fields=name").status_code in (200, 503)
    await_state(lambda: server.http.get("/clusters?limit=500").status_code == 200)
    assert memory_of(server) < MOST


def test_a_connection_that_sends_nothing_is_closed(server: Server) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as silent:
        silent.settimeout(60)
        assert silent.recv(1) == b"", "thirty seconds later"
