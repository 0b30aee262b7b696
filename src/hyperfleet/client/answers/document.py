"""What every answer has: typed fields for programs, and the document as the server sent it for those who show it.

The types are tolerant: what a newer server adds is not looked at (but is in `raw`), what `fields` left out has a
default, and words such as phases are plain text, because a newer server may know more of them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

D = TypeVar("D", bound="Document")


class Document(Struct, frozen=True, rename="camel", dict=True):
    """An answer. Two are equal if they say the same; how they were written does not matter."""

    @property
    def raw_json(self) -> bytes:
        """Return the very bytes that the server sent; if this was not sent by one, what it would look like."""
        sent: bytes = self.__dict__.get("raw_json_") or msgspec.json.encode(self)
        return sent

    @property
    def raw(self) -> Any:
        """Return the document as plain values, in the order and with all the fields that the server sent."""
        return msgspec.json.decode(self.raw_json)

    @property
    def etag(self) -> str:
        """Return the ETag that it came with; empty if it came with none."""
        tag: str = self.__dict__.get("etag_", "")
        return tag


def read_document(type_: type[D], body: bytes, etag: str = "") -> D:
    """Read an answer and keep what it was read from; raise `msgspec.DecodeError` if it is not such a document."""
    document = msgspec.json.decode(body, type=type_)
    document.__dict__.update(raw_json_=bytes(body), etag_=etag)
    return document
