"""What becomes of requests that go wrong: always a problem document, never anything internal."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import get_args

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.api.problems import CATALOGUE
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import SchemaMismatch, StoreUnavailable
from hyperfleet.ports import Scope, StoredAnswer
from hyperfleet.services.results import RefusalCode
from tests.api.fleet import ROOT, Fleet, HandClock, errors_of, open_fleet, path_of, problem_of


class FailingStore(MemoryStore):
    """A memory store whose reads fail as they are told to."""

    failure: Exception | None = None
    delay = 0.0

    async def read_answer(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> StoredAnswer | None:
        await asyncio.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        return await super().read_answer(kind, id_, scope, parent_id)


def ask_failing(failure: Exception) -> tuple[int, str, str]:
    """Return the status, code and text of the answer when the store fails so."""
    clock = HandClock()
    store = FailingStore(clock)
    store.failure = failure
    with open_fleet(store, clock, RequestLimits()) as fleet:
        response = fleet.get("/clusters/cls-1")
        return response.status_code, response.json()["code"], response.text


def test_every_refusal_has_an_entry_in_the_catalogue() -> None:
    assert set(get_args(RefusalCode)) <= CATALOGUE.keys()
    assert all(400 <= entry.status < 600 and entry.title and entry.remedy for entry in CATALOGUE.values())
    assert all(re.fullmatch("([A-Z][a-z]+)+", code) for code in CATALOGUE)


# ── paths and methods ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/api/hyperfleet/v1", "/api/hyperfleet/v1/", "/v2/clusters", "/v1", "/v1/v1/clusters/x"]
)
def test_a_path_that_leads_nowhere_is_not_found(memory_client: Fleet, path: str) -> None:
    problem = problem_of(memory_client.get(ROOT + path), 404, "NotFound")
    assert problem["instance"] == path


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/", "the API is below /api/hyperfleet/v1; /docs lists its paths"),
        ("/v1", "the API is below /api/hyperfleet/v1"),
        ("/v1/clusters/", "without the / at the end it exists: /v1/clusters"),
        ("/v1/clusters/cls-1/statuses/", "it exists: /v1/clusters/cls-1/statuses"),
        ("/docs/", "it exists: /docs"),
        ("/v1/nothing/", "the API is below"),
    ],
)
def test_who_is_lost_is_told_the_way(memory_client: Fleet, path: str, hint: str) -> None:
    assert hint in problem_of(memory_client.get(ROOT + path), 404, "NotFound")["detail"]


@pytest.mark.parametrize("id_", ["%00", "a%00b", "%2e%2e", "a" * 200, "a%20b", "-a", "%F0%9F%90%99", "cls-1%0A"])
@pytest.mark.parametrize("suffix", ["", "/statuses", "/nodepools/np-1", "/statuses/status-x"])
def test_what_cannot_be_an_id_is_not_found(client: Fleet, id_: str, suffix: str) -> None:
    problem_of(client.get(f"/clusters/{id_}{suffix}"), 404, "NotFound")


def test_what_cannot_be_a_parent_is_not_found(client: Fleet) -> None:
    problem_of(client.post("/clusters/%00/nodepools", {"name": "a", "spec": {}}), 404, "NotFound")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/clusters", "GET, HEAD, POST"),
        ("POST", "/clusters/x", "DELETE, GET, HEAD, PATCH, PUT"),
        ("GET", "/clusters/x/force-delete", "POST"),
        ("DELETE", "/clusters/x/statuses", "GET, HEAD, POST"),
        ("OPTIONS", "/clusters/x/nodepools/y/statuses/adapters/z", "DELETE, GET, HEAD, PUT"),
        ("GET", "/statuses:batch", "POST"),
    ],
)
def test_a_method_that_is_not_there_is_told_the_others(
    memory_client: Fleet, method: str, path: str, allowed: str
) -> None:
    response = memory_client.request(method, path)
    problem_of(response, 405, "MethodNotAllowed")
    assert response.headers["allow"] == allowed


@pytest.mark.parametrize("address", ["/clusters/" + "a" * 20_000, "/clusters?q=" + "a" * 20_000])
def test_an_endless_address_is_refused_without_repeating_it(memory_client: Fleet, address: str) -> None:
    response = memory_client.get(address)
    problem_of(response, 414, "UriTooLong")
    assert len(response.content) < 2_000


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"nonsense", b"NaN", b'{"a": 1e999}', b"\xff", b'"\xff"', b'{"a": "\\ud800"}', b"{} {}", b"[" * 5_000],
)
def test_what_is_not_json_is_refused(memory_client: Fleet, content: bytes) -> None:
    for path in ("/clusters", "/clusters/x/statuses", "/statuses:batch", "/clusters/x/force-delete"):
        assert {code for _, code in errors_of(memory_client.post(path, content=content))} <= {
            "MalformedJson",
            "TooDeep",
        }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the body is empty; send JSON"),
        (b'{"a": [1', "the body is not JSON: it ends too early, or inside a surrogate pair"),
        (b'{"a": 1,}', "the body is not JSON: trailing comma in object (byte 8)"),
        (b'"\xff"', "the body is not JSON: a string in it is not UTF-8"),
        (b'{"a": 1e999}', "the body has a number that is too large for a 64-bit float"),
    ],
)
def test_why_it_is_not_json(memory_client: Fleet, content: bytes, message: str) -> None:
    (error,) = memory_client.post("/clusters", content=content).json()["errors"]
    assert error["message"] == message


def test_a_large_number_is_better_a_string_only_where_it_may_be_one(memory_client: Fleet) -> None:
    body = {"name": "a", "spec": {"a": 2**64}, "generation": 2**64}
    spec, generation = memory_client.post("/clusters", body).json()["errors"]
    assert spec["message"] == "an integer of more than 64 bits; send it as a string"
    assert generation["message"] == "an integer of more than 64 bits"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("content", [b"nonsense", b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd\x04"])
def test_what_is_not_compressed_as_it_says_is_refused(memory_client: Fleet, encoding: str, content: bytes) -> None:
    response = memory_client.post("/clusters", content=content, headers={"Content-Encoding": encoding})
    assert {code for _, code in errors_of(response)} <= {"BadEncoding", "MalformedJson"}


@pytest.mark.parametrize(
    ("method", "media_type", "is_read"),
    [
        ("POST", "application/json", True),
        ("POST", "APPLICATION/JSON; charset=UTF-8", True),
        ("POST", "", False),
        ("POST", "application/json; charset=latin-1", False),
        ("POST", "application/x-www-form-urlencoded", False),
        ("POST", "application/merge-patch+json", False),
        ("PATCH", "application/merge-patch+json", True),
        ("PATCH", "application/json", True),
        ("PATCH", "application/json-patch+json", False),
        ("PUT", "text/plain", False),
    ],
)
def test_only_json_is_read(memory_client: Fleet, method: str, media_type: str, is_read: bool) -> None:
    path = "/clusters" if method == "POST" else path_of(memory_client.create())
    response = memory_client.request(method, path, content=b"[]", headers={"Content-Type": media_type})
    if is_read:
        assert ("", "WrongType") in errors_of(response)
    else:
        problem_of(response, 415, "UnsupportedMediaType")


def test_an_unknown_content_encoding_is_told_the_known(memory_client: Fleet) -> None:
    response = memory_client.post("/clusters", content=b"{}", headers={"Content-Encoding": "br"})
    problem_of(response, 415, "UnsupportedMediaType")
    assert response.headers["accept-encoding"] == "gzip, zstd"


# ── request ids ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_keeps_the_id_it_came_with(memory_client: Fleet) -> None:
    response = memory_client.get("/clusters/x", headers={"X-Request-Id": "my-id-1"})
    assert response.headers["x-request-id"] == "my-id-1"
    assert problem_of(response, 404, "NotFound")["requestId"] == "my-id-1"


@pytest.mark.parametrize("given", [b"", b"a b", b"x" * 129, b"\xff", b"a\tb"])
def test_an_id_that_is_not_fit_for_a_log_is_replaced(memory_client: Fleet, given: bytes) -> None:
    made = memory_client.get(f"{ROOT}/healthz", headers={"X-Request-Id": given}).headers["x-request-id"]
    assert made.startswith("req-")


# ── our own trouble ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_that_is_away_is_503(caplog: pytest.LogCaptureFixture) -> None:
    status, code, text = ask_failing(StoreUnavailable("cannot connect to 10.0.0.7"))
    assert (status, code) == (503, "StoreUnavailable")
    assert "10.0.0.7" not in text
    assert "10.0.0.7" in caplog.text


@pytest.mark.parametrize(
    "failure", [ValueError("a secret"), SchemaMismatch("a secret"), ExceptionGroup("a secret", [OSError()])]
)
def test_a_fault_of_ours_tells_nothing_but_its_id(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    status, code, text = ask_failing(failure)
    assert (status, code) == (500, "InternalError")
    assert "secret" not in text
    assert "a secret" in caplog.text
    [logged] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "req-" in logged.getMessage()


def test_what_takes_too_long_is_503() -> None:
    clock = HandClock()
    store = FailingStore(clock)
    store.delay = 60.0
    with open_fleet(store, clock, RequestLimits(time=timedelta(milliseconds=50))) as fleet:
        response = fleet.get("/clusters/cls-1", headers={"If-None-Match": '"0"'})  # not in the fast lane
        problem_of(response, 503, "Timeout")
        assert response.headers["retry-after"]


def test_a_caller_who_falls_silent_is_told_that_it_was_them() -> None:
    async def fall_silent() -> AsyncIterator[bytes]:
        yield b'{"name": '
        await asyncio.sleep(60)

    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits(time=timedelta(milliseconds=50))) as fleet:
        response = fleet.post("/clusters", content=fall_silent())
        problem = problem_of(response, 408, "RequestTimeout")
        assert "nothing was done" in fleet.get(f"{ROOT}{problem['type']}").json()["remedy"]


def test_a_server_that_stops_takes_no_more_writes(memory_client: Fleet) -> None:
    memory_client.run(memory_client.committer.close())
    response = memory_client.post("/clusters", {"name": "a", "spec": {}})
    problem_of(response, 503, "Overloaded")
    assert response.headers["retry-after"]
