"""Migration steps that SQL cannot do: a row is read, converted here and written, in the migration's transaction.

The migration `NNNN_name.sql` runs first; then each row of the statement `read_name` is converted by `CONVERSIONS[name]`
and passed to `write_name`. Both engines work the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from hyperfleet.aggregation import digest_of
from hyperfleet.model.report import Report

Row = tuple[object, ...]


class _OldReport(msgspec.Struct, frozen=True):
    """The fields read from a report that schema version 4 (SQLite) or 5 (PostgreSQL) stored."""

    report: Report
    effective_time: datetime
    last_heard: datetime
    id: str = ""


_decode_report: Final = msgspec.json.Decoder(_OldReport).decode
_decode_pulse: Final = msgspec.msgpack.Decoder(list[Any]).decode


def report_row(resource_id: str, adapter: str, body: str, pulse: bytes | None) -> Row:
    """Make the row of a report; the resource's `pulse` may have later times than its body.

    It is not calm yet: the first write to the resource decides that.
    """
    old = _decode_report(body)
    effective, heard = max([(old.effective_time, old.last_heard), *_pulse_times(adapter, pulse)], key=lambda t: t[1])
    return (
        resource_id,
        adapter,
        old.report.observed_generation,
        digest_of(old.report),
        old.id,
        effective,
        heard,
        False,
    )


def _pulse_times(adapter: str, pulse: bytes | None) -> list[tuple[datetime, datetime]]:
    """Return effective time and last heard of an adapter's heartbeats, if it sent any since its report was stored."""
    if pulse is None:
        return []
    beats = _decode_pulse(pulse)[3]
    return [(_as_time(beat[2]), _as_time(beat[3])) for beat in beats if beat[0] == adapter]


def _as_time(value: object) -> datetime:
    return msgspec.convert(value, datetime)


CONVERSIONS: Final[Mapping[str, Callable[..., Row]]] = {"report_rows": report_row}
