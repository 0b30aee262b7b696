"""Parsing server-sent events as they come in. Pure: `exchange` passes in what was read."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_MAX_BYTES: Final = 64 * 1024 * 1024  # bytes of one event; an endless one must not fill the memory


class ServerEvent(Struct, frozen=True):
    """One event of a stream. A watch can resume after its `position`."""

    name: str
    data: bytes
    position: int | None = None


class EventReader:
    """Parses a stream, however it is cut into pieces. Comments are ignored."""

    def __init__(self) -> None:
        """Begin with an empty buffer."""
        self._pause_before_retry = bytearray()
        self._searched = 0  # the buffer contains no end of an event up to here

    def take(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that are complete now; raise ValueError if one is too long."""
        self._pause_before_retry += piece.replace(b"\r", b"")  # the server writes \n; a proxy may not
        events = []
        while (end := self._pause_before_retry.find(b"\n\n", self._searched)) >= 0:
            block = bytes(self._pause_before_retry[:end])
            del self._pause_before_retry[: end + 2]
            self._searched = 0
            if event := _read(block):
                events.append(event)
        self._searched = max(len(self._pause_before_retry) - 1, 0)
        if len(self._pause_before_retry) > _MAX_BYTES:
            raise ValueError(f"an event is longer than {_MAX_BYTES} bytes")
        return events


def _read(block: bytes) -> ServerEvent | None:
    name, data, position = "message", [], None
    for line in block.split(b"\n"):
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"event":
            name = value.decode("utf-8", "replace")
        elif key == b"data":
            data.append(value)
        elif key == b"id" and value.isdigit():
            position = int(value)
    return ServerEvent(name, b"\n".join(data), position) if data else None
