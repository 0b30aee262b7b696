"""The token of the HyperFleet API: read from its file, which Kubernetes replaces while the adapter runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

_MAX_TOKEN: Final = 64 * 1024  # bytes; servers refuse longer headers


class ReadToken(NamedTuple):
    """A token, or why there is none."""

    text: str
    fault: str = ""


class TokenFile:
    """Reads the token for every request, or keeps it for a while."""

    def __init__(
        self, path: str, lifetime: timedelta = timedelta(), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Name the file; with a lifetime of 0 it is read for every request."""
        self._path = Path(path)
        self._lifetime = lifetime.total_seconds()
        self._clock = clock
        self._kept: tuple[str, float] | None = None

    async def read(self) -> ReadToken:
        """Return the token."""
        if self._kept is not None and self._clock() < self._kept[1]:
            return ReadToken(self._kept[0])
        found = await asyncio.to_thread(self._read)
        if self._lifetime and not found.fault:
            self._kept = found.text, self._clock() + self._lifetime
        return found

    def forget(self) -> None:
        """Read the file the next time, whatever the lifetime."""
        self._kept = None

    def _read(self) -> ReadToken:
        try:
            with self._path.open("rb") as stream:
                raw = stream.read(_MAX_TOKEN + 1)
            text = raw.decode("ascii").strip()
        except OSError as error:
            return ReadToken("", f"the token file {self._path} cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            return ReadToken("", f"the token file {self._path} holds something that is no token")
        if not text or len(raw) > _MAX_TOKEN or not text.isprintable():
            return ReadToken("", f"the token file {self._path} is empty, or holds something that is no token")
        return ReadToken(text)
