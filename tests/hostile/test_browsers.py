"""Web pages of other sites, which a browser lets send requests to any address that it reaches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hyperfleet.api.context import BrowserRules, RequestLimits
from hyperfleet.backends.memory import MemoryStore
from tests.api.fleet import ROOT, Fleet, HandClock, open_fleet, problem_of
from tests.world import body

RULES = BrowserRules(frozenset({"localhost", "127.0.0.1", "::1", "fleet", "fleet.example.com"}))
NEW = {"name": "one", "spec": {}}


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits(), browsers=RULES) as fleet:
        yield fleet


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://fleet:3000"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Origin": "http://other.fleet"},
    ],
)
def test_a_foreign_page_changes_nothing(fleet: Fleet, headers: dict[str, str]) -> None:
    cluster = fleet.create("mine")["id"]
    before = fleet.get("/clusters").json()
    for method, path, content in (
        ("POST", "/clusters", NEW),
        ("POST", f"/clusters/{cluster}/statuses", body("dns", "True")),
        ("DELETE", f"/clusters/{cluster}", None),
        ("POST", "/policy:reload", None),
    ):
        problem_of(fleet.request(method, path, json=content, headers=headers), 403, "CrossSite")
    assert fleet.get("/clusters").json() == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://fleet"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Origin": "https://fleet.example.com"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_programs_and_own_pages_may(fleet: Fleet, headers: dict[str, str]) -> None:
    assert fleet.post("/clusters", NEW, headers=headers).status_code == 201


def test_a_link_to_this_server_may_be_followed(fleet: Fleet) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert fleet.get(f"{ROOT}/docs", headers=headers).status_code == 200
    problem_of(fleet.get("/clusters", headers={**headers, "Sec-Fetch-Mode": "cors"}), 403, "CrossSite")


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8000", "[::2]:80", "127.1", "[", "@"]
)
def test_a_name_that_is_not_ours(fleet: Fleet, host: str) -> None:
    for path in ("/clusters", f"{ROOT}/healthz", f"{ROOT}/metrics"):
        problem_of(fleet.get(path, headers={"Host": host}), 421, "UnknownHost")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "x.localhost", "fleet.example.com"]
)
def test_our_names(fleet: Fleet, host: str) -> None:
    assert fleet.get("/clusters", headers={"Host": host}).status_code == 200


def test_any_name_where_callers_are_known() -> None:
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits()) as fleet:
        assert fleet.get("/clusters", headers={"Host": "anything.example"}).status_code == 200


def test_answers_are_taken_for_what_they_are() -> None:
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits(), browsers=BrowserRules(has_tls=True)) as fleet:
        cluster = fleet.create()["id"]
        for path in ("/clusters", f"/clusters/{cluster}", "/nowhere", f"{ROOT}/docs", f"{ROOT}/healthz"):
            headers = fleet.get(path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["strict-transport-security"] == "max-age=31536000"
        assert fleet.post(f"/clusters/{cluster}/statuses", body("dns", "True")).headers["x-content-type-options"]
