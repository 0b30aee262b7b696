"""What every answer has: typed fields for programs, and the document as the server sent it for display.

The types are tolerant: fields that a newer server adds are ignored (but are in `raw`), those that `fields` left out
have defaults, and phases and the like are plain text, because a newer server may have more of them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

D = TypeVar("D", bound="ApiDocument")


class ApiDocument(Struct, frozen=True, rename="camel", dict=True):
    """An answer of the server. Equality compares the typed fields, not the bytes."""

    @property
    def raw_json(self) -> bytes:
        """Return the bytes that the server sent, or the encoded fields if this did not come from a server."""
        sent: bytes = self.__dict__.get("raw_json_") or msgspec.json.encode(self)
        return sent

    @property
    def raw(self) -> Any:
        """Return the document as plain values, with all fields in the order in which the server sent them."""
        return msgspec.json.decode(self.raw_json)

    @property
    def etag(self) -> str:
        """Return its ETag, or an empty text."""
        tag: str = self.__dict__.get("etag_", "")
        return tag


def read_document(type_: type[D], body: bytes, etag: str = "") -> D:
    """Decode an answer and keep its bytes; raise `msgspec.DecodeError` if it is not such a document."""
    document = msgspec.json.decode(body, type=type_)
    document.__dict__.update(raw_json_=bytes(body), etag_=etag)
    return document
