"""Durations: Go's grammar, our limits, and the short form."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hyperfleet.documents.durations import MAX_DURATION, format_duration, parse_duration, short_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("90s", 90),
        ("500ms", 0.5),
        ("0s", 0),
        ("0", 0),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("+5s", 5),
        ("30m1h", 5400),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("250μs", 0.00025),
        ("3000ns", 0.000003),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'expected a duration such as 10m or 1h30m, found ""'),
        ("soon", 'expected a duration such as 10m or 1h30m, found "soon"'),
        ("10 m", 'expected a duration such as 10m or 1h30m, found "10 m"'),
        ("10M", 'expected a duration such as 10m or 1h30m, found "10M"'),
        ("10m\n", 'expected a duration such as 10m or 1h30m, found "10m\n"'),
        ("٣m", 'expected a duration such as 10m or 1h30m, found "٣m"'),
        (".s", 'expected a duration such as 10m or 1h30m, found ".s"'),
        ("90", 'a duration needs a unit (ms, s, m or h): "90" could be 90s or 90m'),
        ("7d", 'a duration has no unit for days: write 168h for "7d"'),
        ("-5m", 'a duration must not be negative, found "-5m"'),
        ("1ns", 'a duration counts whole microseconds, "1ns" is finer'),
        ("9999999h", 'a duration is at most about 292 years, "9999999h" is longer'),
        ("1" * 70, "a duration has at most 64 characters, found 70"),
    ],
)
def test_what_is_no_duration_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="duration") as caught:
        parse_duration(text)
    assert str(caught.value) == message


def test_negative_durations_on_request() -> None:
    assert parse_duration("-1h", allow_negative=True) == timedelta(hours=-1)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(minutes=10), "10m"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=2), "48h"),
        (timedelta(hours=1, seconds=5), "1h5s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=1), "1us"),
        (timedelta(seconds=1, microseconds=1), "1.000001s"),
        (timedelta(minutes=-10), "-10m"),
        (MAX_DURATION, "2562047h47m16.854775s"),
    ],
)
def test_format(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.25, "250ms"), (1, "1s"), (14.46697, "14s"), (598.062521, "9m58s"), (3600.5, "1h")],
)
def test_people_are_spared_fractions(seconds: float, text: str) -> None:
    assert short_duration(timedelta(seconds=seconds)) == text
