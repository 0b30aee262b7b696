"""Which URL a call means, and whether it is of our own API: only that gets the token.

A path is of the HyperFleet API: as it is if it begins with `api/`, otherwise below `/api/hyperfleet/<version>/`. A
whole URL is used as it is. Query strings are kept (the Go adapter drops them), and no path leads out of the base URL.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

_SCHEMES: Final = {"http": 80, "https": 443}
_ABSOLUTE: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_BAD: Final = re.compile(r"[\x00-\x20\x7f]")  # a line break or a blank in a URL is a value that was not checked


class ResolvedUrl(NamedTuple):
    """The URL to call, or why there is none."""

    url: str
    is_own: bool = False  # the origin of the HyperFleet API
    fault: str = ""


def resolve_url(text: str, base_url: str, version: str = "v1") -> ResolvedUrl:
    """Return the URL that a rendered text means."""
    text = text.strip()
    if not text:
        return ResolvedUrl("", fault="the URL is empty")
    if _BAD.search(text):
        return ResolvedUrl("", fault="the URL has a blank or a control character")
    try:
        return _resolve_absolute(text, base_url) if _ABSOLUTE.match(text) else _resolve_path(text, base_url, version)
    except ValueError as error:  # a port that is no number, a bad IPv6 address
        return ResolvedUrl("", fault=f"the URL is not valid: {error}")


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port; ValueError if the port is no number."""
    parts = urlsplit(url)
    return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _SCHEMES.get(parts.scheme.lower())


def shown_url(url: str) -> str:
    """Return a URL without what may be secret: its query, and a user with a password."""
    base = url.partition("?")[0].partition("#")[0]
    scheme, separator, rest = base.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else base


def _resolve_absolute(text: str, base_url: str) -> ResolvedUrl:
    parts = urlsplit(text)
    if parts.scheme.lower() not in _SCHEMES or not parts.hostname:
        return ResolvedUrl("", fault="the URL must begin with http:// or https:// and name a host")
    is_own = bool(base_url) and origin_of(text) == origin_of(base_url)
    return ResolvedUrl(_join(parts, _clean(parts.path)), is_own)


def _resolve_path(text: str, base_url: str, version: str) -> ResolvedUrl:
    if not base_url:
        return ResolvedUrl("", fault="a path needs clients.hyperfleet_api.base_url or HYPERFLEET_API_BASE_URL")
    path, mark, query = text.partition("#")[0].partition("?")
    path = _clean("/" + path)
    if not path.startswith("/api/"):
        path = f"/api/hyperfleet/{version}{path}"
    return ResolvedUrl(f"{base_url.rstrip('/')}{quote(path, safe=_SAFE)}{mark}{query}", is_own=True)


_SAFE: Final = "/:@!$&'()*+,;=~-._%"  # what a path may have as it is


def _clean(path: str) -> str:
    """Remove `.`, `..` and doubled slashes; a slash at the end goes too, as in Go."""
    return posixpath.normpath("/" + path.lstrip("/")) if path else ""


def _join(parts: SplitResult, path: str) -> str:
    return parts._replace(path=quote(path, safe=_SAFE), fragment="").geturl()
