"""The short way to read a report says what the long way says, whenever it says anything."""

from __future__ import annotations

import tracemalloc

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.aggregation import read_plain, read_report
from tests.world import body, make_report

_texts = st.sampled_from(["", "Fine", "not fine!", "é", "\0", "x" * 2000, "JobFailed", "42"])
_values = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(allow_nan=False, allow_infinity=False), _texts,
    st.lists(st.integers(), max_size=2), st.dictionaries(_texts, st.integers(), max_size=2),
    st.sampled_from(["2025-10-17T12:00:05Z", "2025-10-17T12:00:05+02:00", "2025-10-17T12:00:05"]),
    st.just("0001-01-01T00:00:00+01:00"),
)  # fmt: skip
_types = st.sampled_from(["Available", "Applied", "Health", "Finalized", "JobFailed", "x/y", "", "bad type"])
_conditions = st.fixed_dictionaries(
    {"type": _types, "status": st.sampled_from(["True", "False", "Unknown", "true", ""])},
    optional=dict.fromkeys(("reason", "message", "lastTransitionTime", "last_transition_time", "odd"), _values),
)
_keys = ("observedTime", "observed_time", "data", "metadata", "lastUpdated", "observedGeneration", "adapter", "odd")


@st.composite
def _bodies(draw: st.DrawFn) -> dict[str, object]:
    """Draw a body that is nearly right."""
    base: dict[str, object] = body("dns", "True/JobSucceeded/done")
    if draw(st.booleans()):
        base["observed_generation"] = base.pop("observedGeneration")
    conditions = base["conditions"]
    assert isinstance(conditions, list)
    conditions += draw(st.lists(_conditions, max_size=2))
    return base | draw(st.dictionaries(st.sampled_from(_keys), _values, max_size=2))


@given(_bodies())
def test_the_short_way_says_what_the_long_way_says(sent: dict[str, object]) -> None:
    raw = msgspec.json.encode(sent)
    plain = read_plain(raw)
    if plain is not None:
        read = read_report(msgspec.json.decode(raw))
        assert (read.errors, read.notes) == ((), ())
        assert read.report == plain


def test_the_short_way_is_taken_in_both_spellings() -> None:
    sent = body("dns", "True/JobSucceeded/done", data={"n": 1}, observedTime="2025-10-17T12:00:05+02:00")
    snake = {
        {"observedGeneration": "observed_generation", "observedTime": "observed_time"}.get(k, k): v
        for k, v in sent.items()
    }
    expected = make_report("dns", "True/JobSucceeded/done", data={"n": 1}, observedTime="2025-10-17T10:00:05Z")
    assert read_plain(msgspec.json.encode(sent)) == expected
    assert read_plain(msgspec.json.encode(snake)) == expected
    assert read_plain(b"[]") is None
    assert read_plain(b"{") is None


def test_no_long_text_is_remembered() -> None:
    tracemalloc.start()
    for number in range(200):
        report = body("dns", "True")
        report["conditions"][0]["type"] = f"{number}{'x' * 20_000}"
        assert read_plain(msgspec.json.encode(report)) is None
        assert read_plain(msgspec.json.encode(body(f"a{number}{'x' * 20_000}", "True"))) is None
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000
