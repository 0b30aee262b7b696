"""The access log: one line for every request except probes. Wraps the application if the access log is enabled."""

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
    """ASGI middleware that logs requests."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and log the result."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        exchange, begun = Exchange(scope, send), time.perf_counter()
        try:
            await self.app(scope, receive, exchange.send)
        finally:
            self._write(scope, exchange, (time.perf_counter() - begun) * 1000)

    def _write(self, scope: Scope, exchange: Exchange, duration: float) -> None:
        values = {
            "method": scope["method"],
            "route": exchange.route,
            "status": exchange.status,
            "bytes": exchange.size,
            "duration_ms": round(duration, 3),
            "caller": exchange.caller,
            "remote": exchange.remote,
            "request_id": exchange.request_id,
        }
        fields = {name: value for name, value in values.items() if value != ""}
        _LOG.info(_LINE, *values.values(), extra={"fields": fields})
