"""JSON pointers (RFC 6901): the address of a value inside a document, such as /rules/2/when."""

from __future__ import annotations


def join(pointer: str, *tokens: str | int) -> str:
    """Append keys and list positions to a pointer."""
    return pointer + "".join("/" + _escape(str(token)) for token in tokens)


def split(pointer: str) -> tuple[str, ...]:
    """Return the keys and list positions of a pointer; the root has none."""
    return tuple(_unescape(token) for token in pointer.split("/")[1:])


def _escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def _unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
