"""Token buckets: how many requests go through, when the next one does, and what is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.api import rate_limits
from hyperfleet.api.problems import Problem
from hyperfleet.api.rate_limits import RateLimiter, TokenBuckets
from hyperfleet.services.callers import Caller


class Watch:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_a_burst_goes_through_and_then_one_at_a_time() -> None:
    watch = Watch()
    allowance = TokenBuckets(4, 8, watch)
    assert [allowance.take("a") for _ in range(8)] == [0.0] * 8
    assert allowance.take("a") == allowance.wait_for("a") == 0.25
    watch.time += 0.25
    assert allowance.take("a") == 0.0
    assert allowance.take("a") == 0.25
    assert allowance.take("b") == 0.0, "others are not concerned"
    watch.time += 2
    assert [allowance.take("a") for _ in range(9)] == [0.0] * 8 + [0.25]


def test_a_refused_request_costs_nothing() -> None:
    watch = Watch()
    allowance = TokenBuckets(1, 1, watch)
    allowance.take("a")
    for _ in range(100):
        assert allowance.take("a") == 1.0
    watch.time += 1
    assert allowance.take("a") == 0.0


def test_who_has_been_quiet_is_forgotten() -> None:
    watch = Watch()
    allowance = TokenBuckets(10, 20, watch)
    for number in range(1_000):
        allowance.take(f"caller {number}")
    assert len(allowance) == 1_000
    watch.time += 2
    for _ in range(1_000):
        allowance.take("somebody else")
        watch.time += 0.1
    assert len(allowance) == 1


def test_no_crowd_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MAX_NAMES", 100)
    allowance = TokenBuckets(1, 1, Watch())
    for number in range(1_000):
        allowance.take(f"address {number}")
    assert len(allowance) <= 101


@given(st.integers(1, 50), st.integers(1, 100), st.lists(st.floats(0, 3), max_size=60))
def test_never_more_than_the_burst_and_the_rate(rate: int, burst: int, pauses: list[float]) -> None:
    watch, taken = Watch(), 0
    allowance = TokenBuckets(rate, burst, watch)
    for pause in pauses:
        watch.time += pause
        for _ in range(5):
            taken += allowance.take("a") == 0.0
    assert taken <= burst + rate * (watch.time - 100.0) + 1e-6


def test_strangers_count_by_address_and_ipv6_by_network() -> None:
    slow = RateLimiter(1, 1, Watch())
    unknown = Problem("InvalidToken", "no")
    for first, second in (("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::2:3"), ("::ffff:10.0.0.2", "10.0.0.2")):
        assert slow.admit(unknown, {"client": (first, 1)}) is unknown
        refused = slow.admit(unknown, {"client": (second, 9)})
        assert isinstance(refused, Problem)
        assert refused.code == "RateLimited"
    assert slow.admit(unknown, {"client": ("2001:db8:0:1::1", 1)}) is unknown
    assert slow.admit(unknown, {"client": None}) is unknown
    somebody = Caller("dns")
    assert slow.admit(somebody, {"client": ("10.0.0.1", 1)}) is somebody, "a caller who is known is not concerned"


def test_a_refusal_says_when_to_come_back() -> None:
    watch = Watch()
    slow = RateLimiter(2, None, watch)
    caller = Caller("dns")
    answers = [slow.admit(caller, {}) for _ in range(5)]
    assert answers[:4] == [caller] * 4
    refused = answers[4]
    assert isinstance(refused, Problem)
    assert refused.headers == {
        "Retry-After": "1",
        "RateLimit-Policy": '"requests";q=4;w=2',
        "RateLimit": '"requests";r=0;t=1',
    }
    assert slow.admit(refused, {}) is refused, "it is not counted twice"


def test_a_request_may_count_as_many() -> None:
    watch = Watch()
    buckets = TokenBuckets(10, 20, watch)
    assert buckets.take("ann") == 0
    buckets.spend("ann", 99)
    assert buckets.take("ann") == pytest.approx(8.1)
    assert buckets.take("bob") == 0
    watch.time += 8.1
    assert buckets.take("ann") == 0
