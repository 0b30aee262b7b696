"""The pulse of a record: the times that heartbeats move, kept beside the answer, apart from what they leave alone.

Nearly all reports say what was said before. The SQL stores then write the answer and this, some hundred bytes, and
neither the status nor the report, which are therefore *behind*: whoever reads them brings them up to date with the
pulse. What is written in full is no longer behind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.rows import decode_report
from hyperfleet.model.report import StoredReport
from hyperfleet.model.reports import Bodies, Body, Reports
from hyperfleet.model.status import Status


class Beat(Struct, frozen=True, array_like=True, gc=False):
    """What a report that said the same has moved: everything of the stored one but its words."""

    adapter: str
    observed_time: datetime | None
    effective_time: datetime
    last_heard: datetime
    accepted: tuple[str, ...]
    out_of_order: int
    has_verdict: bool
    last_unknown: datetime | None
    id: str

    def bring_up(self, stored: StoredReport) -> StoredReport:
        """Return a report that is behind as it would be had it been written; a later one is not behind.

        That one was written by a version of this program that knows no pulse, while a new one takes its place.
        """
        if stored.last_heard > self.last_heard:
            return stored
        return StoredReport(
            replace(stored.report, observed_time=self.observed_time),
            self.effective_time,
            self.last_heard,
            self.accepted,
            self.out_of_order,
            self.has_verdict,
            self.last_unknown,
            self.id,
        )


class Pulse(Struct, frozen=True, array_like=True, gc=False):
    """What is behind, and by how much."""

    written_time: datetime | None  # None: the status is not behind
    last_updated: datetime | None
    heard: tuple[datetime, ...]  # when each adapter of the status was last updated, in their order
    beats: tuple[Beat, ...]  # of the reports that are behind

    @property
    def adapters(self) -> frozenset[str]:
        """Return whose reports are behind."""
        return frozenset([beat.adapter for beat in self.beats])

    def reports(self, bodies: Bodies) -> Reports:
        """Return the reports of a record, to be read from their bodies and brought up when they are looked at."""
        return Reports(bodies, _Reader({beat.adapter: beat for beat in self.beats}))

    def bring_up(self, status: Status) -> Status:
        """Return the status of a record as it is; a later one, or one of other adapters, is not behind."""
        if self.written_time is None or self.last_updated is None or self.written_time < status.memory.written_time:
            return status
        if len(self.heard) != len(status.adapters):  # that of a version without pulses, by a clock that is late
            return status
        heard = zip(status.adapters, self.heard, strict=True)
        adapters = tuple([replace(adapter, last_updated=time) for adapter, time in heard])
        memory = replace(status.memory, written_time=self.written_time)
        return replace(status, adapters=adapters, last_updated=self.last_updated, memory=memory)


class _Reader(Struct, frozen=True):
    """Reads the reports of one record."""

    beats: Mapping[str, Beat]

    def __call__(self, adapter: str, body: Body) -> StoredReport:
        stored, beat = decode_report(body), self.beats.get(adapter)
        return stored if beat is None else beat.bring_up(stored)


_NONE: Final = Pulse(None, None, (), ())
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Pulse).decode


def encode_pulse(status: Status | None, reports: Mapping[str, StoredReport], behind: Collection[str]) -> bytes | None:
    """Write the times of a status, if it is behind, and of the reports of the adapters that are; None: nothing is.

    A version of this program that knows no pulse may have retired one of these adapters.
    """
    beats = [_beat_of(adapter, reports) for adapter in behind if adapter in reports]
    if status is None and not beats:
        return None
    if status is None:
        return _encode((None, None, (), beats))
    heard = [adapter.last_updated for adapter in status.adapters]
    return _encode((status.memory.written_time, status.last_updated, heard, beats))


def decode_pulse(raw: bytes | None) -> Pulse:
    """Read what `encode_pulse` wrote."""
    return _NONE if raw is None else _decode(raw)


def tell_current(rows: Sequence[tuple[str, Body, bytes | None]]) -> dict[str, StoredReport]:
    """Return reports of one record by adapter, from rows with their bodies and the record's pulse."""
    bodies: Bodies = {adapter: body for adapter, body, _ in rows}
    return dict(decode_pulse(rows[0][2]).reports(bodies)) if rows else {}


def _beat_of(adapter: str, reports: Mapping[str, StoredReport]) -> object:
    """Return what a `Beat` is read from: of a report that nobody has looked at, the one that was read with it."""
    if isinstance(reports, Reports) and isinstance(reports.read, _Reader):
        stored = reports.glance(adapter)
        if stored is None:
            return reports.read.beats[adapter]
    else:
        stored = reports[adapter]
    return (
        adapter,
        stored.report.observed_time,
        stored.effective_time,
        stored.last_heard,
        stored.accepted,
        stored.out_of_order,
        stored.has_verdict,
        stored.last_unknown,
        stored.id,
    )
