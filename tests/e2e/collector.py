"""A collector of traces for tests: takes what a real server sends by OTLP over HTTP. Nothing here knows pytest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class CollectedSpan(Struct, frozen=True):
    """A span as it came; ids are written in hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    state: str
    is_server: bool
    is_error: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]
    links: tuple[str, ...]  # ids of spans


class Collector:
    """What was sent so far."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[CollectedSpan] = []

    def find(self, name: str, **attributes: Any) -> list[CollectedSpan]:
        """Return the spans of a name that have these attributes, in which `_` stands for a dot."""
        wanted = {key.replace("_", ".", 1): value for key, value in attributes.items()}
        return [each for each in self.spans if each.name == name and wanted.items() <= each.attributes.items()]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector for the length of a block."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Take what is sent."""
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.spans += _read(ExportTraceServiceRequest.FromString(body))
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the library's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _read(request: ExportTraceServiceRequest) -> Iterator[CollectedSpan]:
    for sent in request.resource_spans:
        resource = _attributes(sent.resource.attributes)
        for span in (each for scope in sent.scope_spans for each in scope.spans):
            yield CollectedSpan(
                name=span.name,
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                parent_id=span.parent_span_id.hex(),
                state=span.trace_state,
                is_server=span.kind == span.SPAN_KIND_SERVER,
                is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                attributes=_attributes(span.attributes),
                resource=resource,
                links=tuple(link.span_id.hex() for link in span.links),
            )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
