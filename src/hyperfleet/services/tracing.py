"""Traces, as far as the rest of the program knows them: where we are in one, and how to open a span.

OpenTelemetry is behind this in `backends/telemetry`, and only if somebody collects traces: nothing else imports it.
Without a collector every span is the same object that does nothing.
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
    """A place in a trace, by its W3C ids; of some traces nothing is recorded but these."""

    trace_id: str
    span_id: str
    is_recorded: bool


# Where the task that runs now is; None: in no trace. Whoever opens a span sets it, the log and the committer read it.
HERE: Final[ContextVar[TracePoint | None]] = ContextVar("hyperfleet.here", default=None)


class Span(Protocol):
    """Something that takes time and is shown in a trace."""

    @property
    def is_recorded(self) -> bool:
        """Tell whether it will be seen; if not, nothing needs to be told of it."""
        ...

    def rename(self, name: str) -> None:
        """Give it the name that was not known at its beginning."""
        ...

    def tell(self, attributes: Attributes) -> None:
        """Tell something of it."""
        ...

    def fail(self, kind: str) -> None:
        """Show it as failed; `kind` is a word, never a message, which might have a secret in it."""
        ...


class Tracer(Protocol):
    """Opens spans; each is ended with the block, and failed by an error that leaves it."""

    def span(
        self, name: str, attributes: Attributes = _NONE, origins: Sequence[TracePoint] | None = None
    ) -> AbstractContextManager[Span | None]:
        """Open a span below the one we are in.

        With `origins` it is done for them instead: a trace of its own that is linked to those recorded, if any is.
        """
        ...


class Untraced:
    """Nobody collects traces."""

    def span(
        self, name: str, attributes: Attributes = _NONE, origins: Sequence[TracePoint] | None = None
    ) -> AbstractContextManager[Span | None]:
        """Do nothing."""
        return _NOTHING


_NOTHING: Final = nullcontext()
UNTRACED: Final = Untraced()
