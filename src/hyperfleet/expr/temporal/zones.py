"""Time zones: UTC, fixed offsets and the zones of the IANA database.

Used by times and by `timezone()`, `date()` and `In()`. The machine's own zone is not read: `Local` is UTC.
"""

from __future__ import annotations

from datetime import UTC as PYTHON_UTC
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hyperfleet.expr.faults import EvaluationFault

_EPOCH = datetime(1970, 1, 1, tzinfo=PYTHON_UTC)
# The database is asked through datetime, which knows the years 1 to 9999; outside, the nearest answer holds.
_FIRST, _LAST = -62_135_510_400, 253_402_214_400


class Zone:
    """Where a clock hangs: a name, and the offset that holds at an instant."""

    __slots__ = ("_abbreviation", "_offset", "_rules", "name")

    def __init__(self, name: str, *, offset: int = 0, rules: ZoneInfo | None = None, shown: str = "") -> None:
        """Make a zone with a fixed `offset` in seconds, or one that follows `rules`."""
        self.name = name
        self._abbreviation = shown or name
        self._offset = offset
        self._rules = rules

    def at(self, unix: int) -> tuple[str, int]:
        """Return the abbreviation and the offset in seconds that hold at a Unix time."""
        if self._rules is None:
            return self._abbreviation, self._offset
        local = self._local(unix)
        offset = local.utcoffset() or timedelta()
        return local.tzname() or "", int(offset.total_seconds())

    def is_dst(self, unix: int) -> bool:
        """Tell whether summer time holds at a Unix time."""
        return self._rules is not None and bool(self._local(unix).dst())

    def to_unix(self, wall: int) -> int:
        """Return the Unix time at which this zone's clocks show `wall` (seconds, as if they were UTC).

        When clocks are turned, a wall time can occur twice or never; then one of the two readings is taken.
        """
        _, offset = self.at(wall)
        _, actual = self.at(wall - offset)
        return wall - actual

    def _local(self, unix: int) -> datetime:
        clamped = min(max(unix, _FIRST), _LAST)
        return (_EPOCH + timedelta(seconds=clamped)).astimezone(self._rules)

    def __eq__(self, other: object) -> bool:
        """Compare by name and offset: the database gives the same rules for the same name."""
        if not isinstance(other, Zone):
            return NotImplemented
        return (self.name, self._offset) == (other.name, other._offset)

    def __hash__(self) -> int:
        """Hash by what is compared."""
        return hash((self.name, self._offset))


UTC = Zone("UTC")
LOCAL = Zone("Local", shown="UTC")


def load_zone(name: str) -> Zone:
    """Return the zone with this name of the IANA database."""
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return LOCAL
    if ".." in name or name[0] in "/\\":
        raise EvaluationFault("time: invalid location name")
    try:
        return Zone(name, rules=ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationFault(f"unknown time zone {name}") from None


def fixed_zone(name: str, offset: int) -> Zone:
    """Return a zone that is always `offset` seconds east of UTC."""
    return Zone(name, offset=offset)
