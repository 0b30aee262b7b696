"""A receiver of webhooks for tests: a real HTTP or HTTPS server of this machine that keeps what it gets."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct


class Received(Struct, frozen=True):
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body."""
        return msgspec.json.decode(self.body)


class Receiver:
    """Answers 200, or what `answers` has for the next requests: a status and headers."""

    def __init__(self, certificate: tuple[Path, Path] | None) -> None:
        self.requests: list[Received] = []
        self.answers: list[tuple[int, Mapping[str, str]]] = []
        self.status = 200  # when there are no more answers
        self.body = b""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                receiver.requests.append(Received(self.path, dict(self.headers), self.rfile.read(length)))
                status, headers = receiver.answers.pop(0) if receiver.answers else (receiver.status, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(receiver.body)))
                self.end_headers()
                self.wfile.write(receiver.body)

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://localhost:{self.port}/hook/s3cr3t-path"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @contextmanager
    def serving(self) -> Iterator[Receiver]:
        """Serve for the length of a block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def events(self) -> list[Any]:
        """Return the bodies of all requests."""
        return [each.json for each in self.requests]


@contextmanager
def receiving(certificate: tuple[Path, Path] | None = None) -> Iterator[Receiver]:
    """Give a receiver; with a certificate and its key it speaks HTTPS."""
    with Receiver(certificate).serving() as receiver:
        yield receiver
