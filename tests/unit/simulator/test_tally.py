"""The books of a simulation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.simulator.tally import Latencies, Tally


@given(st.lists(st.floats(0.0001, 100.0), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_quantiles_are_right_to_within_a_tenth(seconds: list[float], share: float) -> None:
    latencies = Latencies()
    for each in seconds:
        latencies.note(each)
    exact = sorted(seconds)[max(-int(-share * len(seconds) // 1), 1) - 1]
    assert exact * 0.999 <= latencies.quantile(share) <= exact * 1.11


def test_before_the_first_answer_there_is_nothing() -> None:
    tally = Tally()
    assert tally.latencies.quantile(0.5) == 0
    assert tally.rate(0.0) == 0
    assert tally.conclude(0.0, {}).reports_per_second == 0


def test_the_rate_is_that_of_late() -> None:
    tally = Tally()
    for second in range(100):
        tally.note_answer(0.01, 7 if second < 50 else 3, float(second))
    assert 3 <= tally.rate(99.0) <= 3.5
    assert tally.rate(1000.0) == 0


def test_the_end_has_everything() -> None:
    tally = Tally()
    tally.outcomes["aggregated"] += 3
    tally.outcomes["discarded"] += 1
    tally.discards["OutOfOrder"] += 1
    tally.actions["created"] += 2
    tally.errors["BodyTooLarge"] += 1
    tally.virtual = 60.0
    results = tally.conclude(2.0, {"Ready": 2})
    assert results.reports == 4
    assert results.reports_per_second == 2.0
    assert results.outcomes == {"aggregated": 3, "discarded": 1}
    assert (results.discards, results.errors) == ({"OutOfOrder": 1}, {"BodyTooLarge": 1})
    assert results.phases == {"Ready": 2}
