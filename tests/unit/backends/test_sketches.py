"""What a sketch is made of, what it refuses, and when it is tried."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import adler32

import pytest
from msgspec.structs import replace

from hyperfleet.backends.pulse import Beat, Gist, Outline, Pulse, decode_pulse, encode_pulse
from hyperfleet.backends.record_cache import Doubt, Found, RecordCache
from hyperfleet.backends.sketches import SketchRow, UnreadError, draw, is_sketch, refuse_more_than_times
from hyperfleet.model.report import Report
from hyperfleet.model.reports import join
from hyperfleet.model.status import Flapping, Flip, Memory, Status
from hyperfleet.ports import Changes, Needs, Record
from tests.contract.stores import START, make_record, make_resource, make_stored
from tests.world import make_report

SECOND = timedelta(seconds=1)


def make_row(record: Record) -> SketchRow:
    """Make the row of a record."""
    resource = record.resource
    columns = (resource.id, resource.kind, resource.parent_id, resource.tenant)
    return SketchRow(7, *columns, record.answer, record.revision, record.wake_at, record.policy_version)


def make_steady(**more: Any) -> Record:
    """Make a record of which nothing moves."""
    record = make_record()
    adapters = tuple(replace(adapter, stale=False) for adapter in record.status.adapters)
    return replace(record, status=replace(record.status, adapters=adapters), **more)


def pulse_of(record: Record, *beats: Beat) -> Pulse:
    """Write and read the pulse of a record."""
    return decode_pulse(encode_pulse(record, {beat.adapter: beat for beat in beats}))


def drawn(record: Record) -> Record:
    """Draw a record of which `dns` has reported."""
    stored = make_stored()
    sketch = draw(make_row(record), pulse_of(record, Beat.of(stored, None)), {"dns": sent(stored.report)})
    assert sketch is not None
    return sketch


def sent(report: Report) -> Report:
    """Return a report as it was when it was sent."""
    conditions = tuple(replace(each, last_transition_time=None) for each in report.conditions)
    return replace(report, conditions=conditions, observed_time=None)


# ── gists ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        pytest.param([START, START, START], 1, id="all the same are kept once"),
        pytest.param([START, START + SECOND, START], 3, id="others are all kept"),
        pytest.param([None, None, None], 1, id="none is one too"),
        pytest.param([None, START, START], 3, id="some have one"),
    ],
)
def test_times_of_conditions_come_back(times: list[datetime | None], kept: int) -> None:
    report = make_report("dns", "True", data={"a": 1})
    pairs = zip(report.conditions, times, strict=True)
    stored = replace(report, conditions=tuple(replace(each, last_transition_time=time) for each, time in pairs))
    gist = Gist.of(stored)
    assert len(gist.stamps) == kept
    assert gist.recognizes(report)
    assert gist.stamp(report) == stored


def test_a_report_without_conditions_has_a_gist() -> None:
    report = Report("dns", 1, ())
    gist = Gist.of(report)
    assert gist.stamps == ()
    assert gist.recognizes(report)
    assert gist.stamp(report) == report


def test_a_gist_of_one_condition() -> None:
    stored = make_stored().report
    assert Gist.of(stored).stamp(sent(stored)) == replace(stored, observed_time=None)


def test_a_gist_is_of_everything_that_is_said_but_when() -> None:
    report = make_report("dns", "True/Done/well", data={"a": 1}, metadata={"b": 2})
    gist = Gist.of(report)
    first, *rest = report.conditions
    assert gist.recognizes(replace(report, observed_time=START))
    for other in (
        replace(report, observed_generation=2),
        replace(report, data={"a": 2}),
        replace(report, data={"b": 2}, metadata={"a": 1}),
        replace(report, metadata={}),
        replace(report, conditions=tuple(rest)),
        replace(report, conditions=(*rest, first)),
        *[replace(report, conditions=(replace(first, **{field: "Other"}), *rest)) for field in ("type", "status")],
        *[replace(report, conditions=(replace(first, **{field: "Other"}), *rest)) for field in ("reason", "message")],
        replace(report, conditions=(replace(first, observed_generation=9), *rest)),
        replace(report, conditions=(replace(first, reason="Donewell", message=""), *rest)),
    ):
        assert not gist.recognizes(other)


def test_a_beat_keeps_the_gist_of_the_one_before() -> None:
    stored = make_stored()
    first = Beat.of(stored, None)
    second = Beat.of(replace(stored, id="rep-2"), first)
    assert second.gist is first.gist
    assert second.recognize(sent(stored.report)) == replace(stored, id="rep-2")
    assert replace(second, gist=None).recognize(sent(stored.report)) is None


# ── outlines ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_outline_of_a_record_of_which_nothing_moves() -> None:
    record = make_steady()
    status = record.status
    assert Outline.of(record) == Outline(1, status.phase, status.policy, status.next_deadline, ("dns",))


def test_moves_that_may_still_count_are_in_the_sketch() -> None:
    record = make_steady()
    flips = {"phase": (Flip(START, "Ready"),)}
    record = replace(record, status=replace(record.status, memory=replace(record.status.memory, flips=flips)))
    stored = make_stored()
    sketch = draw(make_row(record), pulse_of(record, Beat.of(stored, None)), {"dns": sent(stored.report)})
    assert sketch is not None
    assert sketch.status.memory.flips == flips


def test_what_is_stale_flapping_or_being_deleted_has_no_outline() -> None:
    record = make_steady()
    status = record.status
    for other in (
        make_record(),  # its adapter is stale
        replace(record, resource=make_resource(deletion_time=START)),
        replace(record, status=replace(status, flapping={"phase": Flapping(START, 3, SECOND)})),
    ):
        assert Outline.of(other) is None
        beat = Beat.of(make_stored(), None)
        assert draw(make_row(other), pulse_of(other, beat), {"dns": sent(make_stored().report)}) is None


def test_the_outline_of_a_sketch_is_that_of_the_whole() -> None:
    record = make_steady()
    assert Outline.of(drawn(record)) == Outline.of(record)
    beat = Beat.of(make_stored(), None)
    assert encode_pulse(drawn(record), {"dns": beat}) == encode_pulse(record, {"dns": beat})


# ── the answer that a pulse belongs to ───────────────────────────────────────────────────────────────────────────


def test_a_pulse_of_another_answer_draws_nothing_and_its_gists_are_forgotten() -> None:
    record, stored = make_steady(), make_stored()
    pulse = pulse_of(record, Beat.of(stored, None))
    other = replace(record, answer=record.answer + b" ")
    assert draw(make_row(other), pulse, {"dns": sent(stored.report)}) is None
    assert pulse.behind(other.answer) == {"dns": replace(Beat.of(stored, None), gist=None)}
    assert pulse.behind(record.answer) == {"dns": Beat.of(stored, None)}


def test_times_of_equal_sums_make_other_answers() -> None:
    """Answers that differ in nothing but times are the usual case, and a sum of digits often does not see them."""
    one, other = (b'{"lastUpdated":"2025-10-17T12:00:00.%bZ"}' % digits for digits in (b"131000", b"212000"))
    assert adler32(one) == adler32(other)
    assert not pulse_of(make_steady(answer=one)).is_of(other)


# ── sketches ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sketch_has_what_a_heartbeat_looks_at() -> None:
    record = make_steady(revision=9, policy_version=3, wake_at=START)
    sketch = drawn(record)
    resource, status = sketch.resource, sketch.status
    for name in ("id", "kind", "tenant", "parent_id", "generation", "is_deleting"):
        assert getattr(resource, name) == getattr(record.resource, name)
    for name in ("phase", "last_updated", "policy", "next_deadline", "flapping"):
        assert getattr(status, name) == getattr(record.status, name)
    for name in ("name", "last_updated", "stale"):
        assert getattr(status.adapters[0], name) == getattr(record.status.adapters[0], name)
    assert (status.memory.written_time, status.memory.flips) == (START, {})
    assert (sketch.answer, sketch.revision, sketch.wake_at, sketch.policy_version) == (record.answer, 9, START, 3)
    assert sketch.reports["dns"] == make_stored()
    assert is_sketch(sketch)
    assert not is_sketch(record)


def test_a_sketch_refuses_everything_else() -> None:
    sketch = drawn(make_steady())
    parts: list[tuple[Any, type, set[str]]] = [
        (sketch.resource, type(make_resource()), {"id", "kind", "tenant", "parent_id", "generation", "is_deleting"}),
        (sketch.status, Status, {"phase", "adapters", "last_updated", "policy", "next_deadline", "memory", "flapping"}),
        (sketch.status.memory, Memory, {"written_time", "flips"}),
        (sketch.status.adapters[0], type(make_record().status.adapters[0]), {"name", "last_updated", "stale"}),
    ]
    for part, whole, known in parts:
        names = {name for name in dir(whole) if not name.startswith("_")}
        assert known < names
        for name in names - known:
            with pytest.raises(UnreadError, match=name):
                getattr(part, name)


def test_reports_that_were_not_recognized_are_refused() -> None:
    reports = drawn(make_steady()).reports
    assert "dns" in reports
    assert join(reports, {"dns": make_stored(said="more")})["dns"] == make_stored(said="more")
    looks: list[Callable[[], object]] = [
        lambda: reports["apply"],
        lambda: reports.get("apply"),
        lambda: "apply" in reports,
        lambda: len(reports),
        lambda: bool(reports),
        lambda: list(reports),
        lambda: reports.keys() | set(),
        lambda: dict(reports),
        lambda: list(reports.values()),
        lambda: list(reports.items()),
        lambda: reports == {},
    ]
    for look in looks:
        with pytest.raises(UnreadError):
            look()


def test_what_is_not_known_is_not_drawn() -> None:
    record, stored = make_steady(), make_stored()
    row, report = make_row(record), sent(stored.report)
    beat = Beat.of(stored, None)
    pulse = pulse_of(record, beat)
    assert draw(row, pulse, {"dns": report, "apply": replace(report, adapter="apply")}) is None
    assert draw(row, pulse, {"apply": replace(report, adapter="apply")}) is None
    assert draw(row, pulse, {"dns": replace(report, data={})}) is None
    assert draw(row, pulse_of(record), {"dns": report}) is None
    assert draw(row, pulse_of(record, replace(beat, gist=None)), {"dns": report}) is None
    assert draw(row, decode_pulse(None), {"dns": report}) is None


def test_of_a_sketch_only_times_are_written() -> None:
    sketch = drawn(make_steady())
    refuse_more_than_times(Changes(updated=[sketch], steady=frozenset({"cls-1"})))
    refuse_more_than_times(Changes(updated=[make_record()]))
    with pytest.raises(UnreadError):
        refuse_more_than_times(Changes(updated=[sketch]))


# ── when they are tried ──────────────────────────────────────────────────────────────────────────────────────────


def tries(doubt: Doubt, count: int, *, is_success: bool) -> str:
    """Tell of so many times whether it was tried, always with the same success."""
    told = ""
    for _ in range(count):
        if doubt.allows():
            told += "x"
            doubt.learn(is_success=is_success)
        else:
            told += "."
    return told


def test_what_fails_is_tried_less_and_less() -> None:
    doubt = Doubt()
    assert tries(doubt, 4, is_success=True) == "xxxx"
    assert tries(doubt, 19, is_success=False) == "x.x..x....x........"
    assert tries(doubt, 2000, is_success=False).split("x")[-2] == "." * 64


def test_one_success_is_enough_to_go_on() -> None:
    doubt = Doubt()
    tries(doubt, 5, is_success=False)
    assert tries(doubt, 3, is_success=True) == "xxx"
    assert tries(doubt, 4, is_success=False) == "x.x."


def test_a_sketch_that_was_drawn_and_not_enough_is_a_failure() -> None:
    """Else a fleet whose policy looks at labels would have every other report of it tried in vain."""
    cache, told = RecordCache(0), ""
    needs = Needs(ids=frozenset({"cls-1"}), sent=[("cls-1", make_stored().report)])
    for _ in range(19):
        if cache.expect(needs, needs.ids):
            cache.tell_drawn(Found(), 1, 1)
            cache.sketching.learn(is_success=False)  # as the stores do when something unread was looked at
            told += "x"
        else:
            told += "."
    assert told == "x.x..x....x........"


def test_sketches_are_tried_only_when_not_everything_is_remembered() -> None:
    report = make_stored().report
    needs = Needs(ids=frozenset({"cls-1", "cls-2"}), sent=[("cls-1", report), ("cls-2", report)])
    assert RecordCache().expect(needs, needs.ids) == {}
    assert RecordCache(0).expect(needs, {"cls-2"}) == {"cls-2": {"dns": report}}
    assert RecordCache(0).expect(replace(needs, sent=()), needs.ids) == {}
    record = make_record()
    cache = RecordCache(len(record.answer) - 1)
    found = Found(marks={"cls-1": 1})
    cache.keep(Changes(inserted=[record]), 0, found)
    assert cache.expect(needs, needs.ids) == {"cls-1": {"dns": report}, "cls-2": {"dns": report}}


def test_a_sketch_is_not_remembered() -> None:
    cache, sketch = RecordCache(), drawn(make_steady())
    cache.keep(Changes(updated=[sketch], steady=frozenset({"cls-1"})), 0, Found(marks={"cls-1": 1}))
    assert cache.find(["cls-1"]) == {}


def test_of_two_reports_of_an_adapter_the_first_must_be_known_again() -> None:
    first, second = make_stored().report, make_stored(said="more").report
    needs = Needs(ids=frozenset({"cls-1"}), sent=[("cls-1", first), ("cls-1", second)])
    assert RecordCache(0).expect(needs, needs.ids) == {"cls-1": {"dns": first}}


def test_times_are_kept_to_the_microsecond() -> None:
    time = datetime(2025, 10, 17, 12, 0, 0, 654321, tzinfo=UTC)
    record = make_steady()
    memory = replace(record.status.memory, written_time=time)
    record = replace(record, status=replace(record.status, memory=memory, last_updated=time))
    pulse = pulse_of(record)
    assert (pulse.written_time, pulse.last_updated) == (time, time)
