"""The access log: a line for every request but the probes'. Stands around the application if it is wanted."""

from __future__ import annotations

import logging
import time
from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.exchanges import PROBES, Exchange

_LOG: Final = logging.getLogger(__name__)
_LINE: Final = "%s %s: %s, %s bytes in %.1f ms to %s at %s (request %s)"


class AccessLog(Struct, frozen=True):
    """An application whose requests are logged."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log what became of it."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        exchange, begun = Exchange(scope, send), time.perf_counter()
        try:
            await self.app(scope, receive, exchange.send)
        finally:
            self._write(scope, exchange, (time.perf_counter() - begun) * 1000)

    def _write(self, scope: Scope, exchange: Exchange, duration: float) -> None:
        told = {
            "method": scope["method"],
            "route": exchange.route,
            "status": exchange.status,
            "bytes": exchange.size,
            "duration_ms": round(duration, 3),
            "caller": exchange.caller,
            "remote": exchange.remote,
            "request_id": exchange.request_id,
        }
        fields = {name: value for name, value in told.items() if value != ""}
        _LOG.info(_LINE, *told.values(), extra={"fields": fields})
