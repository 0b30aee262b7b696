"""Instants with a zone, to the nanosecond and for any year.

`datetime` ends at microseconds and the year 9999, so times are our own here: nanoseconds since 1970
and the zone in which it is shown. Hosts may pass a `datetime` and get one back with `Time.to_datetime`.
"""

from __future__ import annotations

from datetime import UTC as PYTHON_UTC
from datetime import datetime, timedelta, timezone
from functools import total_ordering

from hyperfleet.expr.temporal.durations import LONGEST, MICROSECOND, SECOND, SHORTEST, Duration
from hyperfleet.expr.temporal.zones import UTC, Zone, fixed_zone

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
DAY = 86_400

_EPOCH = datetime(1970, 1, 1, tzinfo=PYTHON_UTC)


class Month(int):
    """A month, 1 to 12. Its own class: `== 8` is no question one can ask of it."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the English name."""
        return MONTHS[self - 1] if 1 <= self <= 12 else f"%!Month({int(self)})"


class Weekday(int):
    """A day of the week, 0 (Sunday) to 6."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the English name."""
        return WEEKDAYS[self] if 0 <= self <= 6 else f"%!Weekday({int(self)})"


@total_ordering
class Time:
    """An instant and the zone in which it is shown. Two are equal when the instant is."""

    __slots__ = ("nanoseconds", "zone")

    def __init__(self, nanoseconds: int, zone: Zone = UTC) -> None:
        """Hold an instant, in nanoseconds since 1970 UTC."""
        self.nanoseconds = nanoseconds
        self.zone = zone

    @classmethod
    def from_unix(cls, seconds: int, nanosecond: int, zone: Zone = UTC) -> Time:
        """Return the instant `seconds` after 1970 UTC."""
        return cls(seconds * SECOND + nanosecond, zone)

    @classmethod
    def from_datetime(cls, moment: datetime) -> Time:
        """Return a host's time; one without a zone counts as UTC."""
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=PYTHON_UTC)
        elapsed = aware - _EPOCH
        microseconds = (elapsed.days * DAY + elapsed.seconds) * 1_000_000 + elapsed.microseconds
        offset = aware.utcoffset() or timedelta()
        seconds = int(offset.total_seconds())
        zone = fixed_zone(aware.tzname() or "", seconds) if seconds else UTC
        return cls(microseconds * MICROSECOND, zone)

    def to_datetime(self) -> datetime:
        """Return this time for a host, cut to microseconds; fails outside the years 1 to 9999."""
        _, offset = self.zone.at(self.unix)
        moment = _EPOCH + timedelta(microseconds=self.nanoseconds // MICROSECOND)
        return moment.astimezone(timezone(timedelta(seconds=offset)))

    @property
    def unix(self) -> int:
        """Return the whole seconds since 1970."""
        return self.nanoseconds // SECOND

    @property
    def nanosecond(self) -> int:
        """Return the nanoseconds within the second."""
        return self.nanoseconds % SECOND

    def wall(self) -> int:
        """Return the seconds that a clock in this zone shows, counted as if they were UTC."""
        return self.unix + self.zone.at(self.unix)[1]

    def date(self) -> tuple[int, int, int]:
        """Return year, month and day as shown in this zone."""
        return civil_from_days(self.wall() // DAY)

    def clock(self) -> tuple[int, int, int]:
        """Return hour, minute and second as shown in this zone."""
        minutes, second = divmod(self.wall() % DAY, 60)
        return minutes // 60, minutes % 60, second

    def weekday(self) -> Weekday:
        """Return the day of the week as shown in this zone."""
        return Weekday((self.wall() // DAY + 4) % 7)  # 1970-01-01 was a Thursday

    def year_day(self) -> int:
        """Return the day of the year, from 1."""
        days = self.wall() // DAY
        return days - days_from_civil(civil_from_days(days)[0], 1, 1) + 1

    def plus(self, duration: int) -> Time:
        """Return the instant `duration` nanoseconds later."""
        return Time(self.nanoseconds + duration, self.zone)

    def minus(self, other: Time) -> Duration:
        """Return how long after `other` this is, cut to what a duration can hold."""
        return Duration(min(max(self.nanoseconds - other.nanoseconds, SHORTEST), LONGEST))

    def within(self, zone: Zone) -> Time:
        """Return the same instant, shown in another zone."""
        return Time(self.nanoseconds, zone)

    def __eq__(self, other: object) -> bool:
        """Compare instants; the zone does not matter."""
        return self.nanoseconds == other.nanoseconds if isinstance(other, Time) else NotImplemented

    def __lt__(self, other: Time) -> bool:
        """Compare instants."""
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        """Hash by instant."""
        return hash(self.nanoseconds)


def make_time(date: tuple[int, int, int], clock: tuple[int, int, int], nanosecond: int, zone: Zone) -> Time:
    """Return the instant at which clocks in `zone` show this; values out of range carry over."""
    year, month, day = date
    hour, minute, second = clock
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    days = days_from_civil(year, month, 1) + day - 1
    wall = days * DAY + hour * 3600 + minute * 60 + second + nanosecond // SECOND
    return Time.from_unix(zone.to_unix(wall), nanosecond % SECOND, zone)


# The next two follow "chrono-Compatible Low-Level Date Algorithms": years begin in March, and 400 years, of which all
# have the same number of days, make an era.


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar, for any year."""
    year -= month <= 2  # a leap day is a year's last
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return the date that lies `days` after 1970-01-01."""
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def days_in_month(year: int, month: int) -> int:
    """Return how many days a month has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def iso_week(moment: Time) -> tuple[int, int]:
    """Return the ISO 8601 year and week."""
    days = moment.wall() // DAY
    thursday = days - (days + 3) % 7 + 3  # the week belongs to the year of its Thursday
    year = civil_from_days(thursday)[0]
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1
