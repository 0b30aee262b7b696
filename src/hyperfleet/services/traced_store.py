"""A store with spans for its calls. The composition root wraps the real store in it if traces are collected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from hyperfleet.ports import Store
from hyperfleet.services.tracing import CURRENT_SPAN, Tracer


def trace_store(store: Store, tracer: Tracer) -> Store:
    """Return the store with a span around every call of a recorded request."""
    return cast("Store", _TracedStore(store, tracer))


class _TracedStore:
    """Forwards everything to the store, so that new methods need no change here."""

    def __init__(self, store: Store, tracer: Tracer) -> None:
        self._store = store
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if iscoroutinefunction(found):
            found = self._trace(found, f"store {name}")
            setattr(self, name, found)  # cached: the next access does not come here
        return found

    def _trace(self, call: Callable[..., Awaitable[Any]], span: str) -> Callable[..., Awaitable[Any]]:
        async def traced(*arguments: Any, **options: Any) -> Any:
            current = CURRENT_SPAN.get()
            if current is None or not current.is_recorded:
                return await call(*arguments, **options)
            with self._tracer.span(span):
                return await call(*arguments, **options)

        return traced
