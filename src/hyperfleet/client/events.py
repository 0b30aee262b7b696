"""Server-sent events, taken apart as they come in. Pure: `exchange` feeds it what was read."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_MOST: Final = 64 * 1024 * 1024  # bytes of one event; a server that never ends one must not fill our memory


class ServerEvent(Struct, frozen=True):
    """One event of a stream. `position`: a watch can go on after it."""

    name: str
    data: bytes
    position: int | None = None


class EventReader:
    """Takes a stream apart, however it is cut into pieces. Comments are not events, and left out."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._rest = bytearray()
        self._searched = 0  # how far the rest is known to have no end of an event

    def take(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that are complete now; raise ValueError if one is too long."""
        self._rest += piece.replace(b"\r", b"")  # our server writes \n; somebody between us may not
        events = []
        while (end := self._rest.find(b"\n\n", self._searched)) >= 0:
            block = bytes(self._rest[:end])
            del self._rest[: end + 2]
            self._searched = 0
            if event := _read(block):
                events.append(event)
        self._searched = max(len(self._rest) - 1, 0)
        if len(self._rest) > _MOST:
            raise ValueError(f"an event is longer than {_MOST} bytes")
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
