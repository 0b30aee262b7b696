"""Metadata of reports: the six fields that the Go clients decode, each with the type that they decode it to.

A field of another type makes a typed client fail on the whole list of reports. So a report of the compat API with such
a field is refused, and what was reported through our own API, which has free-form metadata, is converted or left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from hyperfleet.aggregation import BodyProblem


class CompatReportMetadata(Struct, frozen=True):
    """What an adapter says about its job."""

    job_name: str | UnsetType = UNSET
    job_namespace: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    started_time: str | UnsetType = UNSET  # times are kept as they were sent
    completed_time: str | UnsetType = UNSET
    duration: str | UnsetType = UNSET


_KEYS: Final = CompatReportMetadata.__struct_fields__
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1  # an int32 in the original
# What Go decodes: it insists on capitals, on both separators and on a zone.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def read_metadata(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[BodyProblem, ...]]:
    """Return the known fields of a report's metadata without nulls, and an error for each of another type."""
    known = {key: given[key] for key in _KEYS if given.get(key) is not None}
    errors = [
        BodyProblem(f"/metadata/{key}", "WrongType", f"field 'metadata.{key}' must be {_FIELDS[key].rule}")
        for key, value in known.items()
        if not _FIELDS[key].is_valid(value)
    ]
    return known, tuple(errors)


def show_metadata(stored: Mapping[str, Any]) -> CompatReportMetadata | UnsetType:
    """Return what can be shown of stored metadata: a value of another type is converted or left out."""
    shown = {key: value for key in _KEYS if key in stored and (value := _show(key, stored[key])) is not None}
    return CompatReportMetadata(**shown) if shown else UNSET


def _show(key: str, value: object) -> Any:
    field = _FIELDS[key]
    return value if field.is_valid(value) else field.convert(value)


class _Field(Struct, frozen=True):
    """The type of a field, and how a value of another type is converted; None: it cannot be."""

    rule: str
    is_valid: Callable[[object], bool]
    convert: Callable[[object], object] = lambda _: None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and _SMALLEST <= value <= _LARGEST


def _to_integer(value: object) -> int | None:
    """Convert 2.0, which is an integer to JSON but not to Go."""
    return int(value) if isinstance(value, float) and value.is_integer() and _is_integer(int(value)) else None


def _is_time(value: object) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None and _to_instant(value) is not None


def _to_time(value: object) -> str | None:
    """Convert a time that only Go does not read, such as one with a blank instead of the T."""
    instant = _to_instant(value)
    return msgspec.json.encode(instant).decode().strip('"') if instant is not None else None


def _to_instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        time = msgspec.convert(value, datetime)
        return time.astimezone(UTC) if time.tzinfo is not None else None
    except (msgspec.ValidationError, OverflowError):  # OverflowError: the zone moves it before year 1 or after 9999
        return None


_TEXT_FIELD: Final = _Field("a string", _is_text)
_TIME_FIELD: Final = _Field("a time such as '2026-01-31T12:00:00Z'", _is_time, _to_time)
_FIELDS: Final[Mapping[str, _Field]] = {
    "job_name": _TEXT_FIELD,
    "job_namespace": _TEXT_FIELD,
    "attempt": _Field("an integer of 32 bits", _is_integer, _to_integer),
    "started_time": _TIME_FIELD,
    "completed_time": _TIME_FIELD,
    "duration": _TEXT_FIELD,
}
