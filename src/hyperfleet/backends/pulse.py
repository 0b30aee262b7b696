"""The pulse of a record: the times that heartbeats move, kept beside the answer, apart from what they leave alone.

Nearly all reports say what was said before. The SQL stores then write the answer and this, some hundred bytes, and
neither the status nor the report, which are therefore *behind*: whoever reads them brings them up to date with the
pulse. What is written in full is no longer behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.rows import decode_report
from hyperfleet.model.report import StoredReport
from hyperfleet.model.status import Status

Reports = Mapping[str, StoredReport]


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
    beats: tuple[Beat, ...]  # of the reports that are

    @property
    def adapters(self) -> frozenset[str]:
        """Return whose reports are behind."""
        return frozenset([beat.adapter for beat in self.beats])


NONE: Final = Pulse(None, None, ())

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Pulse).decode


def encode_pulse(status: Status | None, reports: Reports, behind: Collection[str]) -> bytes | None:
    """Write the times of a status, if it is behind, and of the reports of the adapters that are; None: nothing is."""
    if status is None and not behind:
        return None
    beats = [_beat_of(adapter, reports[adapter]) for adapter in behind]
    if status is None:
        return _encode((None, None, beats))
    return _encode((status.memory.written_time, status.last_updated, beats))


def decode_pulse(raw: bytes | None) -> Pulse:
    """Read what `encode_pulse` wrote."""
    return NONE if raw is None else _decode(raw)


def bring_up_reports(pulse: Pulse, reports: Reports) -> Reports:
    """Return the reports of a record as they are, those that are behind included."""
    if not pulse.beats:
        return reports
    return {**reports, **{beat.adapter: beat.bring_up(reports[beat.adapter]) for beat in pulse.beats}}


def bring_up_status(pulse: Pulse, status: Status, reports: Reports) -> Status:
    """Return the status of a record as it is, given its reports as they are."""
    if pulse.written_time is None or pulse.last_updated is None or pulse.written_time < status.memory.written_time:
        return status
    adapters = [
        replace(summary, last_updated=reports[summary.name].effective_time) if summary.name in reports else summary
        for summary in status.adapters
    ]
    memory = replace(status.memory, written_time=pulse.written_time)
    return replace(status, adapters=tuple(adapters), last_updated=pulse.last_updated, memory=memory)


def tell_current(rows: Iterable[tuple[str, str | bytes, bytes | None]]) -> dict[str, StoredReport]:
    """Return reports of one record by adapter, from rows with their bodies and the record's pulse."""
    told = {}
    for adapter, body, raw in rows:
        beats = {beat.adapter: beat for beat in decode_pulse(raw).beats}
        stored = decode_report(body)
        told[adapter] = beats[adapter].bring_up(stored) if adapter in beats else stored
    return told


def _beat_of(adapter: str, stored: StoredReport) -> tuple[object, ...]:
    """Return what `Beat` is read from; making one only to write it would cost as much as writing it."""
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
