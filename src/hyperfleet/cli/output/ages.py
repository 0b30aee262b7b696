"""Times as people read them: `3m6s`, in at most two units, the coarser the longer ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"  # in the future: the clocks of server and terminal differ

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

# Below so many seconds: the greater unit, the smaller one if it is shown too. The steps are those of kubectl.
_STEPS: Final = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)
_OLDEST: Final = (_YEAR, "y")
_TOLERANCE: Final = timedelta(seconds=2)  # clocks are never quite the same


def tell_age(instant: datetime | str | None, now: datetime) -> str:
    """Say how long ago something was: `3m6s`, `<unknown>` without a time, `<invalid>` of the future."""
    moment = parse_time(instant) if isinstance(instant, str) else instant
    if moment is None:
        return UNKNOWN
    if moment - now > _TOLERANCE:
        return INVALID
    return tell_length(now - moment)


def tell_length(duration: timedelta) -> str:
    """Say how long something took or lasts, as precisely as its length deserves."""
    seconds = max(0, int(duration.total_seconds()))
    for limit, greater, smaller in _STEPS:
        if seconds < limit:
            return _write(seconds, greater, smaller)
    return _write(seconds, _OLDEST, None)


def parse_time(text: str) -> datetime | None:
    """Read a time of the server; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _write(seconds: int, greater: tuple[int, str], smaller: tuple[int, str] | None) -> str:
    length, unit = greater
    whole, rest = divmod(seconds, length)
    text = f"{whole}{unit}"
    if smaller is None:
        return text
    length, unit = smaller
    return f"{text}{rest // length}{unit}" if rest // length else text
