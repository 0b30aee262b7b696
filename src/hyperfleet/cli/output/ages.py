"""Ages for people: `3m6s`, in at most two units, coarser for older times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"  # in the future: the clocks of server and client differ

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

# Up to this many seconds: the greater unit, and the smaller one if shown. The steps are those of kubectl.
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
_TOLERANCE: Final = timedelta(seconds=2)  # clocks are never exactly equal


def format_age(instant: datetime | str | None, now: datetime) -> str:
    """Format how long ago something was: `3m6s`, `<unknown>` without a time, `<invalid>` in the future."""
    moment = parse_time(instant) if isinstance(instant, str) else instant
    if moment is None:
        return UNKNOWN
    if moment - now > _TOLERANCE:
        return INVALID
    return format_length(now - moment)


def format_length(duration: timedelta) -> str:
    """Format a duration, with a precision that depends on its length."""
    seconds = max(0, int(duration.total_seconds()))
    for limit, greater, smaller in _STEPS:
        if seconds < limit:
            return _write(seconds, greater, smaller)
    return _write(seconds, _OLDEST, None)


def parse_time(text: str) -> datetime | None:
    """Parse a time of the server; None if it is invalid."""
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
