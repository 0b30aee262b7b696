"""Records that a writer has just written, kept decoded: the next report of the same resource is seldom far.

Only what is committed is kept. Whether it is still so is for the stores to find out: SQLite's forgets everything as
soon as another connection has written to the file, PostgreSQL's compares the versions of rows when it writes.

Of a fleet that is larger than that, hardly any record is kept when its next report comes. Most of these are heartbeats,
so the stores then try to do with a sketch (`sketches`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.backends.pulse import Beat, Behind, Pulse, encode_pulse
from hyperfleet.backends.sketches import is_sketch
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.reports import join, leave_out
from hyperfleet.ports import Changes, LoggedReport, Needs, Record

MOST_KEPT: Final = 12 * 1024 * 1024  # bytes as stored: some 1,500 clusters; decoded, they take about three times that

_NOBODY: Final[Behind] = {}
_BETWEEN_MILESTONES: Final = 32
_LONGEST_REST: Final = 64  # transactions


class Trail(Struct, frozen=True, gc=False):
    """Where heartbeats of a resource are in the log of events: each names the one before, every 32nd is a milestone."""

    last: int | None = None  # the position of the last one
    passed: int = 0  # since the last milestone

    def go_on(self, position: int) -> Trail:
        """Return the trail after one more heartbeat."""
        return Trail(position, self.next_passed)

    @property
    def next_passed(self) -> int:
        """Return how many have passed after one more: none, if that is a milestone."""
        return (self.passed + 1) % _BETWEEN_MILESTONES


_NO_TRAIL: Final = Trail()


class Found(Struct):
    """The records a transaction has read, and of each what its row is known by, and what is known of its reports.

    The mark of a row is its number in SQLite and its version in PostgreSQL.
    """

    records: dict[str, Record] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)  # bytes of each report as stored, by adapter
    behind: dict[str, Behind] = field(default_factory=dict)  # whose stored reports are (`pulse`)
    trails: dict[str, Trail] = field(default_factory=dict)
    reports: dict[str, Mapping[str, StoredReport]] = field(default_factory=dict)  # of whom one is another now, all
    beats: dict[str, LoggedReport] = field(default_factory=dict)  # the heartbeats among the changes, by resource
    ended: list[LoggedReport] = field(default_factory=list)  # the last heartbeats of those who now say something new
    is_sketched: bool = False  # most of those that might do as sketches are

    def take_in(self, mark: int, pulse: Pulse, record: Record, trail: Trail) -> None:
        """Take in a record that was read."""
        id_ = record.resource.id
        self.records[id_] = record
        self.marks[id_] = mark
        self.behind[id_] = pulse.behind(record.answer)
        self.trails[id_] = trail

    def add(self, id_: str, kept: Kept) -> None:
        """Take over a record that was kept."""
        self.records[id_] = kept.record
        self.marks[id_] = kept.mark
        self.sizes[id_] = kept.report_sizes
        self.behind[id_] = kept.behind
        self.trails[id_] = kept.trail

    def foresee(self, changes: Changes) -> None:
        """Learn which reports there will be once changes are written; who repeats words falls behind."""
        self.beats = {logged.resource_id: logged for logged in _find_beats(changes, self.records)}
        for resource in changes.removed:
            for beat in self.behind.get(resource.id, _NOBODY).values():
                self._end(resource.id, beat)
        for id_, adapter in changes.retired:
            self.reports[id_] = leave_out(self.reports_of(id_), adapter)
            self._catch_up(id_, adapter)
        for id_, stored in changes.reports:
            self._catch_up(id_, self._expect(id_, stored))
        for id_, stored in changes.repeated:
            self._fall_behind(id_, stored)

    def pulse_of(self, record: Record) -> bytes:
        """Return the pulse that goes with a record."""
        return encode_pulse(record, self.behind.get(record.resource.id, _NOBODY))

    def trail_of(self, id_: str) -> Trail:
        """Return where the heartbeats of a resource are before these changes."""
        return self.trails.get(id_, _NO_TRAIL)

    def to_be_logged(self, changes: Changes) -> Iterator[tuple[LoggedReport, bool]]:
        """Yield what the log of reports gets, in its order, and whether that is a copy of a heartbeat elsewhere."""
        yield from ((logged, True) for logged in self.ended)
        yield from ((logged, False) for logged in changes.log if logged.resource_id not in self.beats)

    def reports_of(self, id_: str) -> Mapping[str, StoredReport]:
        """Return all reports of a resource as they will be."""
        if id_ in self.reports:
            return self.reports[id_]
        return self.records[id_].reports if id_ in self.records else {}

    def _catch_up(self, id_: str, adapter: str) -> None:
        behind = self.behind.get(id_, _NOBODY)
        if adapter in behind:
            self._end(id_, behind[adapter])
            self.behind[id_] = {other: beat for other, beat in behind.items() if other != adapter}

    def _fall_behind(self, id_: str, stored: StoredReport) -> None:
        adapter, behind, logged = self._expect(id_, stored), self.behind.get(id_, _NOBODY), self.beats.get(id_)
        before = behind.get(adapter)
        is_alone = logged is not None and logged.stored.id == stored.id
        if before is not None and before.received_time == stored.last_heard and before.id != stored.id:
            self._end(id_, before)  # what comes at the same time makes no event
        self.behind[id_] = {**behind, adapter: Beat.of(stored, before, is_alone=is_alone)}

    def _end(self, id_: str, beat: Beat) -> None:
        """Note the last heartbeat of an adapter: the log of reports then has it too, before what comes instead."""
        last = self.records[id_].reports.get(beat.adapter)
        # A version that knows no pulse may have taken it away, or another one in its place.
        if beat.received_time is not None and last is not None and last.id == beat.id:
            last = replace(last, last_heard=beat.received_time)
            self.ended.append(LoggedReport(id_, last, None, is_same=True))

    def _expect(self, id_: str, stored: StoredReport) -> str:
        adapter = stored.report.adapter
        self.reports[id_] = join(self.reports_of(id_), {adapter: stored})
        return adapter


def _find_beats(changes: Changes, records: Mapping[str, Record]) -> Iterator[LoggedReport]:
    """Yield the reports that did nothing but move the times of a resource, each the only one of its resource.

    So is its event. None of them came at the time of the write before it, as happens where a clock was set back: what
    came last of that can be told by the log of reports alone.
    """
    if not changes.steady:
        return
    reports = Counter([logged.resource_id for logged in changes.log])
    events = Counter([draft.resource.id for draft in changes.events])
    for logged in changes.log:
        id_, event = logged.resource_id, logged.event
        if (
            id_ in changes.steady
            and reports[id_] == events[id_] == 1
            and logged.is_same
            and event is not None
            and changes.events[event].type == "Reported"
            and changes.events[event].time == logged.stored.last_heard > records[id_].status.memory.written_time
        ):
            yield logged


class Kept(Struct, frozen=True):
    """A record, the mark of its row, the sizes of its reports and which are behind, and how much it takes in all."""

    mark: int
    record: Record
    report_sizes: dict[str, int]
    behind: Behind
    trail: Trail
    size: int


class Doubt:
    """Whether to try a way that is shorter, but may turn out not to lead there: after it did not, not for a while."""

    def __init__(self) -> None:
        """Have none."""
        self._rest = 0  # for how many times it is not tried …
        self._next_rest = 1  # … and after the next failure

    def allows(self) -> bool:
        """Tell whether to try it this time."""
        if self._rest:
            self._rest -= 1
            return False
        return True

    def learn(self, *, is_success: bool) -> None:
        """Learn how it went: each failure in a row costs twice as much."""
        if is_success:
            self._next_rest = 1
        else:
            self._rest = self._next_rest
            self._next_rest = min(2 * self._next_rest, _LONGEST_REST)


class RecordCache:
    """The records last written, up to a total size; the one written longest ago goes first."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        """Start empty; keep up to so many bytes."""
        self.sketching = Doubt()
        self._most = most
        self._is_full = most == 0  # or was once: the fleet is larger than what is kept of it
        self._kept: OrderedDict[str, Kept] = OrderedDict()  # a plain dict finds its oldest slowly after many deletions
        self._size = 0
        self._data_version: int | None = None

    def expect(self, needs: Needs, missing: Collection[str]) -> Mapping[str, Mapping[str, Report]]:
        """Return the reports that may well repeat what was said, of resources that are not kept, by adapter."""
        sent: dict[str, dict[str, Report]] = {}
        if self._is_full and needs.sent and self.sketching.allows():
            for id_, report in needs.sent:
                if id_ in missing:
                    sent.setdefault(id_, {}).setdefault(report.adapter, report)
        return sent

    def tell_drawn(self, found: Found, drawn: int, expected: int) -> None:
        """Learn how many of those that might do as sketches are: if few, do without; if most, see what comes of it."""
        found.is_sketched = 2 * drawn > expected
        if not found.is_sketched:
            self.sketching.learn(is_success=False)

    def find(self, ids: Iterable[str]) -> dict[str, Kept]:
        """Return those of `ids` that are kept."""
        return {id_: kept for id_ in ids if (kept := self._kept.get(id_)) is not None}

    def validate(self, data_version: int) -> None:
        """Forget everything if the file was written to by others: then SQLite's data version has moved."""
        if data_version != self._data_version:
            self.forget()
            self._data_version = data_version

    def forget(self) -> None:
        """Forget all records, but not how large the fleet is."""
        self._kept.clear()
        self._size = 0

    def keep(self, changes: Changes, base: int, found: Found) -> None:
        """Keep what a transaction wrote over what it had found, after the commit; its events came after `base`."""
        if found.is_sketched:
            self.sketching.learn(is_success=True)
        for id_ in (*(resource.id for resource in changes.removed), *found.reports):
            self._drop(id_)  # a report can be saved without its record
        for record in (*changes.inserted, *changes.updated):
            id_ = record.resource.id
            self._drop(id_)
            if is_sketch(record):
                continue
            kept = _as_stored(record, changes, base, found)
            sizes = found.sizes.get(id_, {})
            size = len(kept.answer) + sum(sizes.values())
            behind, trail = found.behind.get(id_, _NOBODY), found.trail_of(id_)
            if id_ in found.beats:
                trail = trail.go_on(kept.revision)
            self._add(id_, Kept(found.marks[id_], kept, sizes, behind, trail, size))
        while self._size > self._most:
            self._is_full = True
            self._drop(next(iter(self._kept)))

    def _add(self, id_: str, kept: Kept) -> None:
        self._kept[id_] = kept
        self._size += kept.size

    def _drop(self, id_: str) -> None:
        kept = self._kept.pop(id_, None)
        self._size -= kept.size if kept is not None else 0


def _as_stored(record: Record, changes: Changes, base: int, found: Found) -> Record:
    """Return a record as a reader would find it: what was not written is as it was before."""
    id_ = record.resource.id
    before = found.records.get(id_)
    place = changes.revisions.get(id_)
    return replace(
        record,
        resource=record.resource if before is None or id_ in changes.edited else before.resource,
        reports=found.reports_of(id_),
        revision=base + 1 + place if place is not None else before.revision if before is not None else 0,
    )
