"""Dates, durations, zones and layouts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprRuntimeError
from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.temporal.dates import parse_time
from hyperfleet.expr.temporal.durations import Duration, parse_duration
from hyperfleet.expr.temporal.layouts import RFC3339_NANO, format_time
from hyperfleet.expr.temporal.times import Time, civil_from_days, days_from_civil, iso_week
from hyperfleet.expr.temporal.zones import load_zone
from hyperfleet.expr.types import DURATION, TIME


def value_of(source: str, **values: Any) -> Any:
    return expr.compile(source).evaluate(values)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "shown"),
    [
        ("1h30m", 5_400_000_000_000, "1h30m0s"),
        ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
        ("1.5µs", 1_500, "1.5µs"),
        ("100ns", 100, "100ns"),
        ("2ms", 2_000_000, "2ms"),
        ("0", 0, "0s"),
        (".5s", 500_000_000, "500ms"),
        ("1m0.25s", 60_250_000_000, "1m0.25s"),
    ],
)
def test_durations(text: str, nanoseconds: int, shown: str) -> None:
    found = parse_duration(text)
    assert (found, str(found)) == (nanoseconds, shown)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'time: invalid duration ""'),
        ("1", 'time: missing unit in duration "1"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
    ],
)
def test_no_durations(text: str, complaint: str) -> None:
    with pytest.raises(EvaluationFault, match="time:") as raised:
        parse_duration(text)
    assert str(raised.value) == complaint


@pytest.mark.parametrize(
    ("layout", "shown"),
    [
        ("2006-01-02T15:04:05Z07:00", "2023-08-04T16:05:06+02:00"),
        ("Mon Jan _2 3:04PM 2006", "Fri Aug  4 4:05PM 2023"),
        ("Monday, January 2, 06", "Friday, August 4, 23"),
        ("002 __2", "216 216"),
        ("05.000 05.999 05,000000", "06.120 06.12 06,120000"),
        ("-0700 -07 Z0700 -07:00:00 MST", "+0200 +02 +0200 +02:00:00 CEST"),
        ("Z0700:002", "+0200:216"),
        ("Jane _2006 pm", "Jane _2023 pm"),
    ],
)
def test_layouts_show_by_example(layout: str, shown: str) -> None:
    moment = parse_time("2023-08-04T14:05:06.12Z", "2006-01-02T15:04:05Z07:00").within(load_zone("Europe/Zurich"))
    assert format_time(moment, layout) == shown


@pytest.mark.parametrize(
    ("text", "layout", "wanted"),
    [
        ("2023-08-14", "2006-01-02", "2023-08-14T00:00:00Z"),
        ("14 Aug 23 10:11 MST", "02 Jan 06 15:04 MST", "2023-08-14T10:11:00Z"),
        ("4 Aug 2023 UTC", "2 Jan 2006 MST", "2023-08-04T00:00:00Z"),
        ("2023-08-14 10:11:12.5", "2006-01-02 15:04:05", "2023-08-14T10:11:12.5Z"),
        ("10:11PM", "3:04PM", "0000-01-01T22:11:00Z"),
        ("2023 045", "2006 002", "2023-02-14T00:00:00Z"),
        ("2023-08-14T10:00:00-07:00", "2006-01-02T15:04:05Z07:00", "2023-08-14T10:00:00-07:00"),
    ],
)
def test_reading(text: str, layout: str, wanted: str) -> None:
    assert format_time(parse_time(text, layout), RFC3339_NANO) == wanted


@pytest.mark.parametrize(
    ("text", "layout", "complaint"),
    [
        ("x", "2006", 'parsing time "x" as "2006": cannot parse "x" as "2006"'),
        ("2023-13-01", "2006-01-02", 'parsing time "2023-13-01": month out of range'),
        ("2023-02-30", "2006-01-02", 'parsing time "2023-02-30": day out of range'),
        ("2023!", "2006", 'parsing time "2023!": extra text: "!"'),
    ],
)
def test_no_times(text: str, layout: str, complaint: str) -> None:
    with pytest.raises(EvaluationFault, match="parsing") as raised:
        parse_time(text, layout)
    assert str(raised.value) == complaint


def test_clocks_that_are_turned() -> None:
    zurich = load_zone("Europe/Zurich")
    skipped = parse_time("2023-03-26 02:30:00", "2006-01-02 15:04:05", zurich)
    twice = parse_time("2023-10-29 02:30:00", "2006-01-02 15:04:05", zurich)
    assert format_time(skipped, RFC3339_NANO) == "2023-03-26T03:30:00+02:00"
    assert format_time(twice, RFC3339_NANO) == "2023-10-29T02:30:00+01:00"


def test_dates_of_any_year() -> None:
    for days in (-719_528, -1, 0, 11_016, 2_932_896, 10_000_000):
        assert days_from_civil(*civil_from_days(days)) == days
    assert civil_from_days(-719_528) == (0, 1, 1)
    assert iso_week(parse_time("2021-01-03", "2006-01-02")) == (2020, 53)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('date("2023-08-14").Year()', 2023),
        ('string(date("2023-08-14").Month())', "August"),
        ('date("2023-08-14").Weekday().String()', "Monday"),
        ('date("2024-12-31").YearDay()', 366),
        ('date("2023-08-14T10:11:12Z").Unix()', 1_692_007_872),
        ('(date("2023-08-14") - date("2023-08-13")).Hours()', 24.0),
        ('date("2023-08-14") + duration("36h") == date("2023-08-15 12:00:00")', True),
        ('date("2023-01-31").AddDate(0, 1, 0).Format("2006-01-02")', "2023-03-03"),
        ('date("2023-08-14 01:29:31").Round(duration("1h")).Format("15:04")', "01:00"),
        ('date("2023-08-14").Before(date("2023-08-15"))', True),
        ('duration("90m") * 2 == duration("3h")', True),
        ('duration("1h").Seconds()', 3600.0),
        ('timezone("Europe/Zurich").String()', "Europe/Zurich"),
        ('date(timezone("Asia/Kolkata"), "2023-08-14").Format("-07:00")', "+05:30"),
        ('date("2023-08-14").In(timezone("America/New_York")).Day()', 13),
    ],
)
def test_functions_and_methods(source: str, wanted: Any) -> None:
    program = expr.compile(source)
    assert program.evaluate({}) == wanted
    assert program.interpret({}) == wanted


def test_hosts_hand_in_their_own_times() -> None:
    schema = {"at": TIME, "every": DURATION}
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone(timedelta(hours=2)))
    values = {"at": moment, "every": timedelta(minutes=5)}
    assert expr.compile("at.Hour()", schema).evaluate(values) == 7
    assert expr.compile("every.Seconds()", schema).evaluate(values) == 300.0
    assert expr.compile("at + every > at && every < 2 * every", schema).evaluate(values) is True
    later = expr.compile("at + every", schema).evaluate(values)
    assert isinstance(later, Time)
    assert later.to_datetime() == moment + timedelta(minutes=5)
    assert isinstance(expr.compile("at - at", schema).evaluate(values), Duration)


def test_now_asks_the_callers_clock() -> None:
    options = expr.ExprOptions(clock=lambda: datetime(2024, 5, 6, 7, tzinfo=UTC))
    assert expr.compile('now().Format("2006-01-02 15:04")', options=options).evaluate({}) == "2024-05-06 07:00"
    assert expr.compile('now(timezone("Asia/Tokyo")).Hour()', options=options).evaluate({}) == 16


def test_without_a_clock_there_is_no_now() -> None:
    with pytest.raises(ExprRuntimeError, match="no clock was given"):
        value_of("now()")
