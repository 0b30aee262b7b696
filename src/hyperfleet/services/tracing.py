"""The port for tracing: the current place in a trace, and how to open a span.

`backends/telemetry` implements it with OpenTelemetry, and only if a collector is configured; nothing else imports that
library. Without a collector every span is the same object, which does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Final, Protocol

from msgspec import Struct

Attributes = Mapping[str, str | int | float | bool]

_NONE: Final[Attributes] = {}


class TracePoint(Struct, frozen=True):
    """A span, by its W3C ids; for traces that are not sampled, nothing but these is recorded."""

    trace_id: str
    span_id: str
    is_recorded: bool


# The span of the running task; None: no trace. Opening a span sets it; the log and the committer read it.
CURRENT_SPAN: Final[ContextVar[TracePoint | None]] = ContextVar("hyperfleet.here", default=None)


class Span(Protocol):
    """A timed operation in a trace."""

    @property
    def is_recorded(self) -> bool:
        """Tell whether it is sampled; if not, attributes are not needed."""
        ...

    def rename(self, name: str) -> None:
        """Set the name, if it was not known at the start."""
        ...

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def fail(self, kind: str) -> None:
        """Mark it as failed; `kind` is a word, never a message, which might contain a secret."""
        ...


class Tracer(Protocol):
    """Opens spans; a span ends with its block, and fails if an error leaves the block."""

    def span(
        self, name: str, attributes: Attributes = _NONE, origins: Sequence[TracePoint] | None = None
    ) -> AbstractContextManager[Span | None]:
        """Open a span below the current one.

        With `origins` it starts a trace of its own instead, linked to those of them that are recorded, if any is.
        """
        ...


class Untraced:
    """The tracer without a collector."""

    def span(
        self, name: str, attributes: Attributes = _NONE, origins: Sequence[TracePoint] | None = None
    ) -> AbstractContextManager[Span | None]:
        """Do nothing."""
        return _NOTHING


_NOTHING: Final = nullcontext()
UNTRACED: Final = Untraced()
