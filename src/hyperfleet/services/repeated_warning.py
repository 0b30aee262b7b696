"""Keeps a failure that repeats every second from filling the log, for as long as a broker or a store is away."""

from __future__ import annotations

import logging
import time
from typing import Final

_INTERVAL: Final = 60.0  # seconds between warnings about the same failure


class RepeatedWarning:
    """Logs a failure the first time, when its text changes, and once a minute."""

    def __init__(self, logger: logging.Logger) -> None:
        """Log to `logger`."""
        self._logger = logger
        self._text = ""
        self._due = 0.0
        self._unlogged = 0

    def log(self, text: str) -> None:
        """Log a failure, unless it was logged less than a minute ago."""
        if text == self._text and time.monotonic() < self._due:
            self._unlogged += 1
            return
        again = f" ({self._unlogged} more times since the last line)" if self._unlogged else ""
        self._text, self._due, self._unlogged = text, time.monotonic() + _INTERVAL, 0
        self._logger.warning("%s%s", text, again)

    def end(self) -> None:
        """Log the next failure at once: it is another one."""
        self._text, self._unlogged = "", 0
