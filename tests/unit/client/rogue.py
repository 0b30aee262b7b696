"""A server with bad manners, on a real socket: it answers each connection as it was told to, then hangs up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct


class Say(Struct, frozen=True):
    """Read the request, say these bytes, and hang up."""

    said: bytes


class HangUp(Struct, frozen=True):
    """Take the connection and hang up, before or after the request was read."""

    is_read: bool = True


class Stall(Struct, frozen=True):
    """Read the request, say these bytes one after the other with pauses between them, then nothing until the end."""

    said: tuple[bytes, ...] = ()
    pause: float = 0.0


Manner = Say | HangUp | Stall


class Rogue:
    """The server; `heard` has the requests in the order in which they came."""

    def __init__(self, manners: tuple[Manner, ...]) -> None:
        """Behave like this, one after the other; then like the last one for ever."""
        self._manners = manners
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.heard: list[bytes] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        """Return where it is."""
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
                self._behave(connection, self._manners[min(number, len(self._manners) - 1)])
            number += 1

    def _behave(self, connection: socket.socket, manner: Manner) -> None:
        match manner:
            case Say(said):
                self.heard.append(_read_request(connection))
                connection.sendall(said)
            case HangUp(is_read):
                if is_read:
                    self.heard.append(_read_request(connection))
            case Stall(said, pause):
                self.heard.append(_read_request(connection))
                for each in said:
                    connection.sendall(each)
                    self._end.wait(pause)
                self._end.wait()


@contextmanager
def rogue(*manners: Manner) -> Iterator[Rogue]:
    """Run such a server for the length of a block."""
    server = Rogue(manners)
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
    heard = b""
    while b"\r\n\r\n" not in heard:
        piece = connection.recv(65536)
        if not piece:
            return heard
        heard += piece
    head, _, body = heard.partition(b"\r\n\r\n")
    length = next((int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")), 0)
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body
