"""A misbehaving server on a real socket: it treats each connection as configured, then closes it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct


class Respond(Struct, frozen=True):
    """Read the request, send these bytes, and disconnect."""

    data: bytes


class Disconnect(Struct, frozen=True):
    """Accept the connection and disconnect, before or after reading the request."""

    is_read: bool = True


class Stall(Struct, frozen=True):
    """Read the request, send these pieces with pauses between them, then nothing until the end."""

    data: tuple[bytes, ...] = ()
    pause: float = 0.0


Behaviour = Respond | Disconnect | Stall


class MisbehavingServer:
    """The server; `received` has the requests in order."""

    def __init__(self, behaviours: tuple[Behaviour, ...]) -> None:
        """Use one behaviour per connection; then the last one for ever."""
        self._behaviours = behaviours
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.received: list[bytes] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._end.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        number = 0
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # it was stopped
            with connection:
                self._behave(connection, self._behaviours[min(number, len(self._behaviours) - 1)])
            number += 1

    def _behave(self, connection: socket.socket, behaviour: Behaviour) -> None:
        match behaviour:
            case Respond(data):
                self.received.append(_read_request(connection))
                connection.sendall(data)
            case Disconnect(is_read):
                if is_read:
                    self.received.append(_read_request(connection))
            case Stall(data, pause):
                self.received.append(_read_request(connection))
                for each in data:
                    connection.sendall(each)
                    self._end.wait(pause)
                self._end.wait()


@contextmanager
def misbehaving_server(*behaviours: Behaviour) -> Iterator[MisbehavingServer]:
    """Run such a server for the length of a block."""
    server = MisbehavingServer(behaviours)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def response(body: bytes, status: str = "200 OK", media_type: str = "application/json", *headers: str) -> bytes:
    """Write a whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def _read_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            return received
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")), 0)
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body
