"""The pulse of a record: the times that heartbeats move, kept beside the answer, apart from what they leave alone.

Nearly all reports say what was said before. The SQL stores then write the answer and this, some hundred bytes, and
neither the status nor the report, which are therefore *behind*: whoever reads them brings them up to date with the
pulse. What is written in full is no longer behind.

It also has what a heartbeat looks at of the record: then the store need not even read that (`sketches`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.rows import decode_report
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.reports import Bodies, Body, Reports
from hyperfleet.model.status import Flips, Status
from hyperfleet.ports import Record


class Gist(Struct, frozen=True, array_like=True, gc=False):
    """What a report is known again by, and what it has that those who repeat it do not send."""

    digest: bytes  # of everything that it says, but for when it was observed
    stamps: tuple[datetime | None, ...]  # since when its conditions have their statuses: all of them, or one for all

    @classmethod
    def of(cls, report: Report) -> Gist:
        """Return the gist of a report that is stored."""
        stamps = tuple([condition.last_transition_time for condition in report.conditions])
        return cls(_digest_of(report), stamps if len(set(stamps)) > 1 else stamps[:1])

    def recognizes(self, report: Report) -> bool:
        """Tell whether a report that was sent says what this is the gist of."""
        return self.digest == _digest_of(report)

    def stamp(self, report: Report) -> Report:
        """Return a report that was recognized as it is stored."""
        stamps = self.stamps if len(self.stamps) > 1 else self.stamps * len(report.conditions)
        pairs = zip(report.conditions, stamps, strict=True)
        return replace(report, conditions=tuple([replace(each, last_transition_time=time) for each, time in pairs]))


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
    gist: Gist | None = None  # None: it was written by a version that knows none
    received_time: datetime | None = None  # of a report that stands among the events alone; None: it was logged

    @classmethod
    def of(cls, stored: StoredReport, before: Beat | None, *, is_alone: bool = False) -> Beat:
        """Return what a report has moved; the one `before`, if there was one, had the same words.

        It may be that very report: one that is sent twice, or comes too late, leaves it where it is.
        """
        report = stored.report
        gist = before.gist if before is not None else None
        received_time = stored.last_heard if is_alone else None
        if before is not None and before.id == stored.id:
            received_time = before.received_time
        return cls(
            report.adapter,
            report.observed_time,
            stored.effective_time,
            stored.last_heard,
            stored.accepted,
            stored.out_of_order,
            stored.has_verdict,
            stored.last_unknown,
            stored.id,
            gist or Gist.of(report),
            received_time,
        )

    def bring_up(self, stored: StoredReport) -> StoredReport:
        """Return a report that is behind as it would be had it been written; a later one is not behind.

        That one was written by a version of this program that knows no pulse, while a new one takes its place.
        """
        return stored if stored.last_heard > self.last_heard else self.apply(stored.report)

    def recognize(self, report: Report) -> StoredReport | None:
        """Return the stored report, as it would be had it been written, if one that was sent says the same."""
        if self.gist is None or not self.gist.recognizes(report):
            return None
        return self.apply(self.gist.stamp(report))

    def apply(self, report: Report) -> StoredReport:
        """Return a report of the same words as it would be had it been written."""
        return StoredReport(
            replace(report, observed_time=self.observed_time),
            self.effective_time,
            self.last_heard,
            self.accepted,
            self.out_of_order,
            self.has_verdict,
            self.last_unknown,
            self.id,
        )


class Outline(Struct, frozen=True, array_like=True, gc=False):
    """What a heartbeat looks at of a record, if that is all: nothing is stale, flapping or about to be deleted."""

    generation: int
    phase: Phase
    policy: str
    next_deadline: datetime | None
    adapters: tuple[str, ...]  # of the status, in their order

    @classmethod
    def of(cls, record: Record) -> Outline | None:
        """Return the outline of a record, if it has one."""
        resource, status = record.resource, record.status
        if resource.is_deleting or status.flapping:
            return None
        names = [adapter.name for adapter in status.adapters if not adapter.stale]
        if len(names) < len(status.adapters):
            return None
        return cls(resource.generation, status.phase, status.policy, status.next_deadline, tuple(names))


class Pulse(Struct, frozen=True, array_like=True, gc=False):
    """What is behind, and by how much."""

    written_time: datetime | None  # when the record was written with it; None: by a version that tells only if it must
    last_updated: datetime | None
    heard: tuple[datetime, ...]  # when each adapter of the status was last updated, in their order
    beats: tuple[Beat, ...]  # of the reports that are behind
    # Of the answer that it was written with: its CRC, for Adler's sum often is the same of times that differ.
    mark: int | None = None
    outline: Outline | None = None  # None: there is more to a heartbeat than that
    flips: Mapping[str, Flips] | None = None  # that may still count; None: those of the status

    def is_of(self, answer: bytes) -> bool:
        """Tell whether it was written with an answer: a version that knows no pulse writes other ones without it."""
        return self.mark == crc32(answer)

    def behind(self, answer: bytes) -> Behind:
        """Return whose reports are behind; if the answer is another, their gists are not those of what is stored."""
        if self.is_of(answer):
            return {beat.adapter: beat for beat in self.beats}
        return {beat.adapter: replace(beat, gist=None) for beat in self.beats}

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
        flips = status.memory.flips if self.flips is None else self.flips
        memory = replace(status.memory, written_time=self.written_time, flips=flips)
        return replace(status, adapters=adapters, last_updated=self.last_updated, memory=memory)


Behind = Mapping[str, Beat]  # by adapter, those whose stored reports are behind


class _Reader(Struct, frozen=True):
    """Reads the reports of one record."""

    behind: Behind

    def __call__(self, adapter: str, body: Body) -> StoredReport:
        stored, beat = decode_report(body), self.behind.get(adapter)
        return stored if beat is None else beat.bring_up(stored)


_NONE: Final = Pulse(None, None, (), ())
_encode_in_order: Final = msgspec.json.Encoder(order="deterministic").encode
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Pulse).decode


def encode_pulse(record: Record, behind: Behind) -> bytes:
    """Write the times of a record, and those of its reports that are behind."""
    status = record.status
    heard = [adapter.last_updated for adapter in status.adapters]
    times = (status.memory.written_time, status.last_updated, heard)
    return _encode((*times, list(behind.values()), crc32(record.answer), Outline.of(record), status.memory.flips))


def decode_pulse(raw: bytes | None) -> Pulse:
    """Read what `encode_pulse` wrote."""
    return _NONE if raw is None else _decode(raw)


def tell_current(rows: Sequence[tuple[str, Body, bytes | None]]) -> dict[str, StoredReport]:
    """Return reports of one record by adapter, from rows with their bodies and the record's pulse."""
    bodies: Bodies = {adapter: body for adapter, body, _ in rows}
    return dict(decode_pulse(rows[0][2]).reports(bodies)) if rows else {}


def _digest_of(report: Report) -> bytes:
    """Name what a report says by its content, whatever the order of its keys."""
    conditions = [
        (each.type, each.status, each.reason, each.message, each.observed_generation) for each in report.conditions
    ]
    said = (report.observed_generation, conditions, report.data, report.metadata)
    return hashlib.blake2b(_encode_in_order(said), digest_size=16).digest()
