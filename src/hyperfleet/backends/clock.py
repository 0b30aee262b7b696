"""The machine's clock, for stores that have none of their own."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, with zone UTC."""
        return datetime.now(UTC)
