"""A store that is seen in traces. The composition root puts it before the real one if traces are collected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from hyperfleet.ports import Store
from hyperfleet.services.tracing import HERE, Tracer


def show_store(store: Store, tracer: Tracer) -> Store:
    """Return the store with a span around everything that a recorded request asks of it."""
    return cast("Store", _TracedStore(store, tracer))


class _TracedStore:
    """Is the store, whatever it can do: so nothing needs to be added here when it learns something."""

    def __init__(self, store: Store, tracer: Tracer) -> None:
        self._store = store
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if iscoroutinefunction(found):
            found = self._show(found, f"store {name}")
            setattr(self, name, found)  # the next one who looks finds it at once
        return found

    def _show(self, ask: Callable[..., Awaitable[Any]], span: str) -> Callable[..., Awaitable[Any]]:
        async def ask_seen(*arguments: Any, **options: Any) -> Any:
            here = HERE.get()
            if here is None or not here.is_recorded:
                return await ask(*arguments, **options)
            with self._tracer.span(span):
                return await ask(*arguments, **options)

        return ask_seen
