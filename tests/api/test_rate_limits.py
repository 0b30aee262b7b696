"""Limits of callers: how fast they may ask and how much they may watch, by whichever way, and what others notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.api.rate_limits import RateLimiter
from hyperfleet.ports import Store
from hyperfleet.services.callers import Caller, Rejection
from tests.api.compat_client import COMPAT, declined
from tests.api.fleet import ROOT, WATCHES, WATCHES_OF_EACH, Fleet, HandClock, open_fleet, problem_of
from tests.api.listening import Connection
from tests.world import body

RATE = 5
BURST = 10


class Keys:
    """An authenticator who must look up `late` each time, and counts how often he looks anything up."""

    def __init__(self) -> None:
        self.looks = 0

    def recognize(self, token: bytes) -> Caller | None:
        """Know two callers at once."""
        return {b"ann": Caller("ann"), b"bob": Caller("bob")}.get(token)

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Look one up."""
        self.looks += 1
        return Caller("late") if token == b"late" else Rejection("nobody has this token")


class Watch:
    """A clock for waiting, which stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def fleet(store: Store, clock: HandClock, keys: Keys, watch: Watch) -> Iterator[Fleet]:
    limiter = RateLimiter(RATE, BURST, watch)
    with open_fleet(store, clock, RequestLimits(), authenticator=keys, rate_limiter=limiter) as fleet:
        yield fleet


def ask(fleet: Fleet, token: str, path: str = "/clusters", method: str = "GET", **more: object) -> httpx.Response:
    """Ask as somebody."""
    return fleet.request(method, path, headers={"Authorization": f"Bearer {token}"}, **more)


def exhaust(fleet: Fleet, token: str, path: str = "/clusters") -> None:
    """Ask until it is too much."""
    statuses = [ask(fleet, token, path).status_code for _ in range(BURST)]
    assert 429 not in statuses


def test_a_fast_caller_is_told_when_to_come_back(fleet: Fleet, watch: Watch) -> None:
    exhaust(fleet, "ann")
    refused = ask(fleet, "ann")
    problem_of(refused, 429, "RateLimited")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["ratelimit-policy"] == '"requests";q=10;w=2'
    assert refused.headers["ratelimit"] == '"requests";r=0;t=1'
    assert ask(fleet, "bob").status_code == 200, "others are not concerned"
    watch.time += float(refused.headers["retry-after"])
    assert [ask(fleet, "ann").status_code for _ in range(RATE + 1)] == [200] * RATE + [429]


def test_every_way_is_limited_alike(fleet: Fleet, watch: Watch) -> None:
    made = ask(fleet, "ann", method="POST", json={"name": "one", "spec": {}}).json()
    path = f"/clusters/{made['id']}"
    before = ask(fleet, "bob", path).content
    watch.time += 10
    exhaust(fleet, "ann", path)
    report = body("dns", "True")
    for method, where, more in (
        ("GET", path, {}),
        ("GET", f"{path}?fields=id", {}),
        ("GET", "/clusters?watch=true", {}),
        ("POST", f"{path}/statuses", {"json": report}),
        ("PUT", f"{path}/statuses/adapters/dns", {"json": report}),
        ("POST", "/statuses:batch", {"json": {"reports": [{"clusterId": made["id"], **report}]}}),
        ("DELETE", path, {}),
        ("POST", "/policy:reload", {}),
    ):
        problem_of(ask(fleet, "ann", where, method, **more), 429, "RateLimited")
    refused = ask(fleet, "ann", f"{COMPAT}/clusters")
    declined(refused, 429, "LMT-001")
    assert refused.headers["retry-after"] == "1"
    assert ask(fleet, "bob", path).content == before, "nothing of it was done"


def test_probes_are_never_limited_and_cost_nothing(fleet: Fleet) -> None:
    for path in ("/healthz", "/readyz"):
        assert {ask(fleet, "ann", ROOT + path).status_code for _ in range(2 * BURST)} == {200}
    exhaust(fleet, "ann")
    assert ask(fleet, "ann").status_code == 429
    assert ask(fleet, "ann", f"{ROOT}/healthz").status_code == 200


def test_guessing_tokens_is_slowed(fleet: Fleet, keys: Keys, watch: Watch) -> None:
    for number in range(BURST):
        problem_of(ask(fleet, f"guess-{number}"), 401, "InvalidToken")
    assert keys.looks == BURST
    problem_of(ask(fleet, "guess"), 429, "RateLimited")
    problem_of(ask(fleet, "late"), 429, "RateLimited")
    problem_of(fleet.get("/clusters"), 429, "RateLimited")
    assert keys.looks == BURST, "whether the next guess was right is not even looked at"
    assert ask(fleet, "ann").status_code == 200, "who is known already is not concerned"
    watch.time += 1
    assert ask(fleet, "late").status_code == 200


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_guesses_count_also_where_nothing_else_does(fleet: Fleet, keys: Keys, path: str) -> None:
    for number in range(2 * BURST):
        ask(fleet, f"guess-{number}", ROOT + path)
    assert keys.looks == BURST
    assert ask(fleet, "late", ROOT + path).status_code == (429 if path == "/metrics" else 200)
    problem_of(ask(fleet, "late"), 429, "RateLimited")
    assert ask(fleet, "ann", f"{ROOT}/metrics").status_code == 200, "who is known already is not concerned"


def test_without_callers_addresses_count(store: Store, clock: HandClock, watch: Watch) -> None:
    with open_fleet(store, clock, RequestLimits(), rate_limiter=RateLimiter(RATE, BURST, watch)) as fleet:
        exhaust(fleet, "anything")
        problem_of(fleet.get("/clusters"), 429, "RateLimited")
        assert fleet.get(f"{ROOT}/readyz").status_code == 200


def test_one_caller_cannot_take_all_watches(store: Store, clock: HandClock, keys: Keys) -> None:
    ann, bob = ({"Authorization": f"Bearer {name}"} for name in ("ann", "bob"))
    with open_fleet(store, clock, RequestLimits(), authenticator=keys) as fleet, ExitStack() as open_ones:
        for _ in range(WATCHES_OF_EACH):
            connection = open_ones.enter_context(Connection(fleet, "/clusters?watch=true", ann))
            assert connection.status == 200
        refused = fleet.get("/nodepools?watch=true", headers=ann)
        problem_of(refused, 429, "TooManyWatches")
        assert refused.headers["retry-after"]
        made = fleet.post("/clusters", {"name": "one", "spec": {}}, headers=ann).json()
        problem_of(fleet.get(f"/clusters/{made['id']}:wait?for=deleted", headers=ann), 429, "TooManyWatches")
        others = [Connection(fleet, "/clusters?watch=true", bob) for _ in range(WATCHES - WATCHES_OF_EACH)]
        assert [open_ones.enter_context(each).status for each in others] == [200] * len(others)
        problem_of(fleet.get("/clusters?watch=true", headers={"Authorization": "Bearer late"}), 503, "Overloaded")
        open_ones.close()
        with Connection(fleet, "/clusters?watch=true", ann) as connection:
            assert connection.status == 200, "who leaves makes room"


def test_a_batch_pays_for_its_reports(fleet: Fleet, watch: Watch) -> None:
    made = ask(fleet, "ann", method="POST", json={"name": "one", "spec": {}}).json()
    reports = [{"clusterId": made["id"], **body(f"a{number}", "True")} for number in range(10 * RATE)]
    assert ask(fleet, "ann", "/statuses:batch", "POST", json={"reports": reports}).status_code == 200
    problem_of(ask(fleet, "ann"), 429, "RateLimited")
    watch.time += 8
    problem_of(ask(fleet, "ann"), 429, "RateLimited")
    assert ask(fleet, "bob").status_code == 200
    watch.time += 2
    assert ask(fleet, "ann").status_code == 200


def test_bad_tokens_are_limited_without_a_setting(store: Store, clock: HandClock, keys: Keys, watch: Watch) -> None:
    limiter = RateLimiter(now=watch)
    with open_fleet(store, clock, RequestLimits(), authenticator=keys, rate_limiter=limiter) as fleet:
        for _ in range(100):
            problem_of(ask(fleet, "old"), 401, "InvalidToken")  # an adapter that was not told of its new token
        looks = keys.looks
        for number in range(19):
            problem_of(ask(fleet, f"guess-{number}"), 401, "InvalidToken")
        problem_of(ask(fleet, "guess"), 429, "RateLimited")
        assert keys.looks == looks + 19
        assert {ask(fleet, "ann").status_code for _ in range(100)} == {200}, "callers are not limited"
        assert {fleet.get("/clusters").status_code for _ in range(100)} == {401}, "no token is no guess"
        watch.time += 1
        assert ask(fleet, "late").status_code == 200
