"""The answer after a heartbeat is made from the one before it, and is the one that would be made from nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.api.wire import present
from hyperfleet.model.condition import STATUSES, Condition
from hyperfleet.model.report import ADAPTER_PATTERN
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import ADAPTER_STATES, AdapterSummary, Flapping, Memory, Status
from hyperfleet.ports import Record

START = datetime(2025, 10, 17, 12, tzinfo=UTC)

TIMES = st.timedeltas(timedelta(0), timedelta(days=9)).map(lambda passed: START + passed)
SECONDS = st.integers(0, 10**6).map(lambda passed: START + timedelta(seconds=passed))  # these are spelt shorter
ANY_TIME = TIMES | SECONDS

# What stands in an answer beside the times, and could be taken for what stands around them.
TEXTS = st.text(max_size=20) | st.sampled_from(
    ['{"name":"dns",', '"lastUpdated":', '],"lastUpdated":"', "}}", '\\",', ',"adapters":[', "dns", '"']
)
NAMES = st.from_regex(ADAPTER_PATTERN, fullmatch=True) | st.sampled_from(["dns", "dn", "dns2", "name", "lastUpdated"])


SUMMARIES = st.builds(
    AdapterSummary,
    name=NAMES,
    available=st.sampled_from(STATUSES),
    observed_generation=st.integers(1, 9),
    state=st.sampled_from(ADAPTER_STATES),
    state_since=ANY_TIME,
    last_updated=ANY_TIME,
    stale=st.booleans(),
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    adapters = draw(st.lists(SUMMARIES, min_size=1, max_size=6, unique_by=lambda each: each.name))
    texts = st.dictionaries(TEXTS, TEXTS, max_size=3)
    resource = Resource(
        "cls-1", "Cluster", "c", 1, START, START, spec=draw(texts), labels=draw(texts), created_by=draw(TEXTS)
    )
    conditions = draw(st.lists(st.builds(Condition, TEXTS, st.just("True"), TEXTS, TEXTS, st.just(1)), max_size=3))
    flapping = {"phase": Flapping(START, 9, timedelta(hours=1))} if draw(st.booleans()) else {}
    status = Status(
        "Ready",
        draw(TEXTS),
        draw(ANY_TIME),
        tuple(conditions),
        tuple(adapters),
        draw(ANY_TIME),
        "digest",
        {},
        None,
        Memory(START, START),
        flapping,
    )
    record = Record(resource, status)
    return replace(record, answer=present(record))


@given(records(), st.data())
def test_an_answer_is_retold_as_it_would_be_told(before: Record, data: st.DataObject) -> None:
    heard = [
        replace(each, last_updated=data.draw(ANY_TIME)) if data.draw(st.booleans()) else each
        for each in before.status.adapters
    ]
    status = replace(before.status, adapters=tuple(heard), last_updated=data.draw(ANY_TIME))
    after = replace(before, status=status)
    assert present(after, before=before) == present(after)
