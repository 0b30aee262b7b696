"""A real HTTP server on loopback that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from msgspec import Struct, field

TLS = ssl.create_default_context()  # one for all clients: making it takes longer than most tests


class SeenRequest(Struct, frozen=True):
    """A request as it arrived."""

    method: str
    path: str  # with its query
    headers: dict[str, str]  # names in small letters
    body: bytes


class Scripted(Struct, frozen=True):
    """An answer to give."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[[SeenRequest], Scripted]


class ScriptedApi:
    """Answers by a function; `seen` has every request."""

    def __init__(self, url: str) -> None:
        """Answer `{}` until told otherwise."""
        self.url = url
        self.seen: list[SeenRequest] = []
        self.answer: Answer = lambda request: Scripted()

    def answer_in_turn(self, *answers: Scripted) -> None:
        """Give these answers one after the other; the last one repeats."""
        first = len(self.seen)
        self.answer = lambda request: answers[min(len(self.seen) - first, len(answers)) - 1]


@contextmanager
def scripted_api() -> Iterator[ScriptedApi]:
    """Run a server for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: two would wait for each other

        def handle_any(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = SeenRequest(self.command, self.path, headers, self.rfile.read(length))
            api.seen.append(request)
            given = api.answer(request)
            body = given.body if isinstance(given.body, bytes) else msgspec.json.encode(given.body)
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api = ScriptedApi(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
