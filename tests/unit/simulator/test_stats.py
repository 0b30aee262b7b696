"""The statistics of a simulation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.simulator.stats import LatencyHistogram, SimulationStats


@given(st.lists(st.floats(0.0001, 100.0), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_quantiles_are_right_to_within_a_tenth(seconds: list[float], share: float) -> None:
    latencies = LatencyHistogram()
    for each in seconds:
        latencies.record(each)
    exact = sorted(seconds)[max(-int(-share * len(seconds) // 1), 1) - 1]
    assert exact * 0.999 <= latencies.quantile(share) <= exact * 1.11


def test_everything_is_zero_before_the_first_response() -> None:
    stats = SimulationStats()
    assert stats.latencies.quantile(0.5) == 0
    assert stats.rate(0.0) == 0
    assert stats.summarize(0.0, {}).reports_per_second == 0


def test_the_rate_is_the_current_one() -> None:
    stats = SimulationStats()
    for second in range(100):
        stats.record_response(0.01, 7 if second < 50 else 3, float(second))
    assert 3 <= stats.rate(99.0) <= 3.5
    assert stats.rate(1000.0) == 0


def test_the_results_have_everything() -> None:
    stats = SimulationStats()
    stats.outcomes["aggregated"] += 3
    stats.outcomes["discarded"] += 1
    stats.discards["OutOfOrder"] += 1
    stats.actions["created"] += 2
    stats.errors["BodyTooLarge"] += 1
    stats.virtual = 60.0
    results = stats.summarize(2.0, {"Ready": 2})
    assert results.reports == 4
    assert results.reports_per_second == 2.0
    assert results.outcomes == {"aggregated": 3, "discarded": 1}
    assert (results.discards, results.errors) == ({"OutOfOrder": 1}, {"BodyTooLarge": 1})
    assert results.phases == {"Ready": 2}
