"""Traces by OpenTelemetry, sent to a collector by OTLP over HTTP. The only module that imports OpenTelemetry.

The composition root loads this if a collector is configured, in the serving process: the exporter has a thread, which a
fork would lose. Spans wait in a bounded queue; what a collector does not accept is lost and logged now and then, but no
request ever waits for it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import getrandbits, random
from threading import Thread
from typing import Final

from msgspec import Struct
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import Attributes as OtelAttributes

from hyperfleet import __version__
from hyperfleet.services.tracing import CURRENT_SPAN, Attributes, TracePoint

_QUEUE: Final = 8_192  # spans waiting to be sent, a few MB; more are dropped
_SEND_EVERY: Final = 1_000  # milliseconds, so that a trace shows soon after its request
_DELIVERY: Final = 5.0  # seconds of one export with its retries; the queue holds more than that
_INTERVAL: Final = 60.0  # seconds between two warnings about a collector
_W3C: Final = TraceContextTextMapPropagator()
_ROOT: Final = Context()
# A valid `traceparent`: trace, span, flags. Neither id is all zeros.
_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class Telemetry:
    """Opens spans and exports them."""

    def __init__(self, endpoint: str, ratio: float, service: str) -> None:
        """Export to the collector at `endpoint`; `ratio` is the share of sampled traces that begin here."""
        logging.getLogger(trace_exporter.__name__).addFilter(_RateLimit())
        self._exporter = trace_exporter.OTLPSpanExporter(endpoint=endpoint, timeout=_DELIVERY)
        self._ratio = ratio
        # Sampling is decided here, before OpenTelemetry does any work.
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=_describe(service), shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(self._exporter, max_queue_size=_QUEUE, schedule_delay_millis=_SEND_EVERY)
        )
        self._tracer = self._provider.get_tracer("hyperfleet", __version__)

    def request(self, traceparent: str, tracestate: str) -> AbstractContextManager[_Span | _Unrecorded]:
        """Open the span of a request, below the one in its headers, if any.

        The caller of a trace has decided whether it is sampled. What is not sampled costs almost nothing.
        """
        parent = _PARENT.fullmatch(traceparent)
        if parent is None and self._is_chosen():
            return _enter(self._tracer.start_span("HTTP", _ROOT, SpanKind.SERVER))
        if parent is None:
            return _Unrecorded(TracePoint(f"{getrandbits(128):032x}", f"{getrandbits(64):016x}", is_recorded=False))
        if not int(parent[3], 16) & TraceFlags.SAMPLED:
            return _Unrecorded(TracePoint(parent[1], parent[2], is_recorded=False))
        context = _W3C.extract({"traceparent": traceparent, "tracestate": tracestate}, _ROOT)
        return _enter(self._tracer.start_span("HTTP", context, SpanKind.SERVER))

    def span(
        self, name: str, attributes: Attributes | None = None, origins: Sequence[TracePoint] | None = None
    ) -> AbstractContextManager[_Span | None]:
        """Open a span below the current one, or one that is linked to `origins`."""
        links = [Link(_context_of(point)) for point in dict.fromkeys(origins or ()) if point.is_recorded]
        here = CURRENT_SPAN.get()
        is_recorded = bool(links) if origins is not None else self._is_chosen() if here is None else here.is_recorded
        if not is_recorded:
            return nullcontext()
        context = _ROOT if origins is not None or here is None else trace.set_span_in_context(_as_span(here))
        return _enter(self._tracer.start_span(name, context, attributes=dict(attributes or {}), links=links))

    def _is_chosen(self) -> bool:
        """Decide whether to sample a trace that begins here."""
        return random() < self._ratio  # noqa: S311  # no need for unpredictability

    def close(self, timeout: float) -> None:
        """Export what is queued, for at most `timeout` seconds."""
        closing = Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(timeout)
        if closing.is_alive():
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # theirs; ends running retries


class _Span(Struct, frozen=True):
    span: trace.Span

    @property
    def is_recorded(self) -> bool:
        """Tell whether it is sampled."""
        return self.span.is_recording()

    def rename(self, name: str) -> None:
        """Set its name."""
        self.span.update_name(name)

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes."""
        self.span.set_attributes(attributes)

    def fail(self, kind: str) -> None:
        """Mark it as failed."""
        self.span.set_attribute("error.type", kind)
        self.span.set_status(Status(StatusCode.ERROR))


class _Unrecorded:
    """A request that is not sampled; the log still names its trace."""

    is_recorded = False

    def __init__(self, point: TracePoint) -> None:
        self._point = point

    def __enter__(self) -> _Unrecorded:
        self._token = CURRENT_SPAN.set(self._point)
        return self

    def __exit__(self, *error: object) -> None:
        CURRENT_SPAN.reset(self._token)

    def rename(self, name: str) -> None:
        """Do nothing."""

    def set_attributes(self, attributes: Attributes) -> None:
        """Do nothing."""

    def fail(self, kind: str) -> None:
        """Do nothing."""


@contextmanager
def _enter(span: trace.Span) -> Iterator[_Span]:
    """Make a span the current one for the length of a block."""
    at = span.get_span_context()
    token = CURRENT_SPAN.set(TracePoint(f"{at.trace_id:032x}", f"{at.span_id:016x}", is_recorded=True))
    entered = _Span(span)
    try:
        yield entered
    except BaseException as error:
        entered.fail(type(error).__qualname__)
        raise
    finally:
        CURRENT_SPAN.reset(token)
        span.end()


def _as_span(point: TracePoint) -> trace.Span:
    return NonRecordingSpan(_context_of(point))


def _context_of(point: TracePoint) -> SpanContext:
    return SpanContext(int(point.trace_id, 16), int(point.span_id, 16), is_remote=False, trace_flags=_SAMPLED)


def _describe(service: str) -> Resource:
    """Describe this process; OTEL_RESOURCE_ATTRIBUTES of the environment is added."""
    ours: OtelAttributes = {"service.name": service, "service.version": __version__, "process.pid": os.getpid()}
    return Resource.create(ours)


class _RateLimit(logging.Filter):
    """Logs the exporter's errors as rare warnings: the fleet does not depend on the collector."""

    def __init__(self) -> None:
        super().__init__()
        self._due = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + _INTERVAL
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg = f"traces are not delivered (logged at most every {_INTERVAL:g}s): {record.msg}"
        return True
