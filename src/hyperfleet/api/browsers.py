"""Keeps web pages of other sites from using this server through the browser of somebody who can reach it.

Without authentication, whoever reaches the server may use it, and a browser reaches more than its user knows: a page
may send requests to localhost, or let its own name point there. The layer around authentication; it also adds the
headers that tell browsers to be careful with answers.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.api.boundary import send_problem
from hyperfleet.api.context import BrowserRules
from hyperfleet.api.problems import Problem

_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
_HSTS: Final = (b"strict-transport-security", b"max-age=31536000")  # a year, as browsers recommend
_READ: Final = frozenset({b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode"})
_OWN_SITES: Final = frozenset({b"same-origin", b"none"})  # `none`: the user typed the address


class BrowserGuard:
    """ASGI middleware that refuses requests of foreign web pages."""

    def __init__(self, app: ASGIApp, rules: BrowserRules) -> None:
        """Guard `app`."""
        self._app = app
        self._hosts = rules.hosts
        self._headers = [_NOSNIFF, _HSTS] if rules.has_tls else [_NOSNIFF]

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass a request on, unless a web page of another site sent it."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)

        async def send_carefully(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        problem = self._find_problem(scope)
        if problem is not None:
            return send_problem(problem, scope, send_carefully)
        return self._app(scope, receive, send_carefully)

    def _find_problem(self, scope: Scope) -> Problem | None:
        headers = {name: value for name, value in scope["headers"] if name in _READ}
        host = headers.get(b"host", b"")
        if self._hosts is not None and host and not self._is_known(_name_of(host)):
            return Problem("UnknownHost", "this server does not use the name in the header Host: see allowedHosts")
        if len(headers) > 1 and self._is_foreign(headers, scope["method"]):
            return Problem("CrossSite", "a web page of another site sent this request")
        return None

    def _is_known(self, name: str) -> bool:
        return self._hosts is None or name in self._hosts or name.endswith(".localhost")

    def _is_foreign(self, headers: dict[bytes, bytes], method: str) -> bool:
        """Return whether a page of another site sent a request; following a link to this server is allowed."""
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
        if site is not None:
            is_link = method in ("GET", "HEAD") and headers.get(b"sec-fetch-mode") == b"navigate"
            return site not in _OWN_SITES and not is_link
        if origin is None:
            return False
        return origin.partition(b"://")[2] != headers.get(b"host")


def _name_of(host: bytes) -> str:
    """Return the name in a `Host` header, without the port."""
    try:
        return urlsplit(f"//{host.decode('latin-1')}").hostname or ""
    except ValueError:
        return ""
