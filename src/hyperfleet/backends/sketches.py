"""Sketches: what a heartbeat looks at of a record, made of its answer and its pulse, so that the rest need not be read.

They stand in for the resource, the status and the reports of a record. Whoever looks at anything else of them gets
`UnreadError`: the store then reads everything and starts anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NoReturn, cast

from msgspec import Struct

from hyperfleet.backends.pulse import Pulse
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.reports import Bodies, Body, Reports
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Flips, Status
from hyperfleet.ports import Changes, Record


class UnreadError(Exception):
    """Somebody looked at what was not read."""


class Sketch(Struct, frozen=True, gc=False):
    """A part of something."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what is not in it."""
        raise UnreadError(name)


class ResourceSketch(Sketch, frozen=True, gc=False):
    """A resource that is not being deleted."""

    id: str
    kind: str
    parent_id: str | None
    tenant: str
    generation: int
    is_deleting: bool = False


class AdapterSketch(Sketch, frozen=True, gc=False):
    """An adapter that was heard in time."""

    name: str
    last_updated: datetime
    stale: bool = False


class MemorySketch(Sketch, frozen=True, gc=False):
    """What a status remembers of its last moves."""

    written_time: datetime
    flips: Mapping[str, Flips]


class StatusSketch(Sketch, frozen=True, gc=False):
    """A status of which nothing is flapping."""

    phase: Phase
    adapters: tuple[AdapterSketch, ...]
    last_updated: datetime
    policy: str
    next_deadline: datetime | None
    memory: MemorySketch
    flapping: Mapping[str, Any] = {}


class ReportsSketch(Reports):
    """Of the reports of a record only those that were recognized."""

    __slots__ = ()

    def __getitem__(self, adapter: str) -> StoredReport:
        """Return the report of an adapter, if it was recognized."""
        return super().__getitem__(adapter) if adapter in self._known else _refuse()

    def __contains__(self, adapter: object) -> bool:
        """Tell that an adapter has reported, if its report was recognized."""
        return adapter in self._known or _refuse()

    def __iter__(self) -> Iterator[str]:
        """Refuse: nobody knows them all."""
        return _refuse()

    def __len__(self) -> int:
        """Refuse: nobody knows them all."""
        return _refuse()


class SketchRow(Struct, frozen=True, gc=False):
    """What is read of a resource for a sketch, with the columns in the order that statements select them."""

    mark: int  # what the row is known by, as in `Found`
    id: str
    kind: str
    parent_id: str | None
    tenant: str
    answer: bytes
    revision: int
    wake_at: datetime | None
    policy_version: int


def draw(row: SketchRow, pulse: Pulse, sent: Mapping[str, Report]) -> Record | None:
    """Return a record for those who send these reports, by adapter; None: they say something new, or nobody knows."""
    outline = pulse.outline
    if outline is None or pulse.flips is None or pulse.written_time is None or pulse.last_updated is None:
        return None
    if not pulse.is_of(row.answer):
        return None
    known = _recognize(pulse, sent)
    if known is None:
        return None
    heard = zip(outline.adapters, pulse.heard, strict=True)
    status = StatusSketch(
        outline.phase,
        tuple([AdapterSketch(name, time) for name, time in heard]),
        pulse.last_updated,
        outline.policy,
        outline.next_deadline,
        MemorySketch(pulse.written_time, pulse.flips),
    )
    return Record(
        cast("Resource", ResourceSketch(row.id, row.kind, row.parent_id, row.tenant, outline.generation)),
        cast("Status", status),
        ReportsSketch(known, _never_read),
        row.answer,
        row.revision,
        row.wake_at,
        row.policy_version,
    )


def is_sketch(record: Record) -> bool:
    """Tell whether a record is one."""
    return isinstance(record.resource, ResourceSketch)


def refuse_more_than_times(changes: Changes) -> None:
    """Refuse changes that would write a sketch in the place of what it stands for: of one, only times are written.

    Also a heartbeat can write a status: when the alarm of the resource has come, or another policy is in force.
    """
    for record in changes.updated:
        if is_sketch(record) and record.resource.id not in changes.steady:
            raise UnreadError("a status")


def _recognize(pulse: Pulse, sent: Mapping[str, Report]) -> Bodies | None:
    """Return the stored reports that say what is sent, by adapter; None: there is one that is not known."""
    known: Bodies = {}
    for beat in pulse.beats:
        report = sent.get(beat.adapter)
        if report is not None:
            stored = beat.recognize(report)
            if stored is None:
                return None
            known[beat.adapter] = stored
    return known if len(known) == len(sent) else None


def _never_read(adapter: str, body: Body) -> StoredReport:
    return _refuse()


def _refuse() -> NoReturn:
    raise UnreadError("a report")
