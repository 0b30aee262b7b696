"""Bodies that are legal in size and made to cost as much as possible."""

from __future__ import annotations

import gzip
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import msgspec
import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.api.json_bodies import count_values
from hyperfleet.api.problems import MAX_ERRORS
from tests.api.compat_client import COMPAT
from tests.api.fleet import Fleet, problem_of
from tests.world import body

pytestmark = pytest.mark.long

MAX_ANSWER = 64 * 1024
LIMITS = RequestLimits()
Hostile = Callable[[int], Any]

REPORT = body("dns", "True")
REPORTS: dict[str, Hostile] = {
    "values": lambda n: {**REPORT, "data": {"x": [1] * n}},
    "keys of data": lambda n: {**REPORT, "data": {f"k{i}": i for i in range(n)}},
    "unknown keys": lambda n: {**REPORT, **{f"unknown{i}": i for i in range(n)}},
    "empty conditions": lambda n: {**REPORT, "conditions": [{}] * n},
    "conditions": lambda n: {**REPORT, "conditions": [{"type": f"T{i}", "status": "No"} for i in range(n)]},
    "lists": lambda n: {**REPORT, "data": {"x": [[]] * n}},
    "long keys": lambda n: {**REPORT, **{f"{i}{'é' * 20_000}": 1 for i in range(min(n, 20))}},
}
CREATIONS: dict[str, Hostile] = {
    "unknown keys": lambda n: {"name": "one", "spec": {}, **{f"spek{i}": i for i in range(n)}},
    "labels": lambda n: {"name": "one", "spec": {}, "labels": {f"a b{i}": "!" for i in range(n)}},
    "values": lambda n: {"name": "one", "spec": {"x": [0] * n}},
    "long keys": lambda n: {"name": "one", "spec": {}, **{str(i) + '"' * 20_000: 1 for i in range(min(n, 20))}},
}


def sizes(seed: str) -> list[int]:
    """Return some numbers up to what fits into a body, the same in every run."""
    chance = random.Random(seed)
    return [*sorted(chance.randrange(1, LIMITS.values) for _ in range(2)), LIMITS.values + 1, 60_000]


def check(response: httpx.Response, allowed: frozenset[int] = frozenset({200, 400, 413, 422})) -> None:
    """Check that an answer is small and no failure of the server."""
    assert response.status_code in allowed, response.text[:500]
    assert len(response.content) <= MAX_ANSWER
    if response.status_code in (400, 422):
        problem = response.json()
        assert 1 <= len(problem["errors"]) <= MAX_ERRORS


@pytest.mark.parametrize("name", REPORTS)
def test_a_report(fleet: Fleet, name: str) -> None:
    path = f"/clusters/{fleet.create()['id']}/statuses"
    for number in sizes(name):
        content = msgspec.json.encode(REPORTS[name](number))
        response = fleet.post(path, content=content)
        check(response)
        if count_values(content, LIMITS.values) > LIMITS.values:
            problem_of(response, 413, "BodyTooLarge")


@pytest.mark.parametrize("name", CREATIONS)
def test_a_creation(fleet: Fleet, name: str) -> None:
    for number in sizes(name):
        check(
            fleet.post("/clusters", content=msgspec.json.encode(CREATIONS[name](number))),
            frozenset({201, 400, 409, 413}),
        )


@pytest.mark.parametrize("name", REPORTS)
def test_a_batch(fleet: Fleet, name: str) -> None:
    cluster = fleet.create()["id"]
    for number in (3, 190, 300, 4_000):
        content = gzip.compress(
            msgspec.json.encode({"reports": [{"clusterId": cluster, **REPORTS[name](number)}] * 1_000}), 1
        )
        response = fleet.post("/statuses:batch", content=content, headers={"Content-Encoding": "gzip"})
        assert response.status_code in (200, 413)
        assert len(response.content) <= 16 * 1024 * 1024
    if name != "long keys":
        problem_of(response, 413, "BodyTooLarge")


def test_many_notes_are_counted(fleet: Fleet) -> None:
    cluster = fleet.create()
    answer = fleet.post(f"/clusters/{cluster['id']}/statuses", {**REPORT, **{f"unknown{i}": i for i in range(1_000)}})
    notes = answer.json()["outcomes"][0]["notes"]
    assert len(notes) == 21
    assert (notes[-1]["code"], notes[-1]["message"]) == ("MoreNotes", "and 980 more notes")


def test_many_errors_are_counted(fleet: Fleet) -> None:
    answer = fleet.post("/clusters", {"name": "one", "spec": {}, **{f"unknown{i}": i for i in range(1_000)}})
    problem = problem_of(answer, 400, "InvalidBody")
    assert len(problem["errors"]) == MAX_ERRORS
    assert problem["detail"] == f"more than {MAX_ERRORS} errors in the body; the first {MAX_ERRORS} are listed"


def test_commas_in_texts_are_no_values(fleet: Fleet) -> None:
    message = "a, b, c " * 4_000
    answer = fleet.post("/clusters", {"name": "one", "spec": {"text": [message] * 10, "quoted": '",[{' * 9_000}})
    assert answer.status_code == 201, answer.text[:300]


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"name":"one","spec":{"a":1,"a":2}}', "/spec"),
        ('{"name":"one","name":"two","spec":{}}', ""),
        ('{"name" : "one", "spec": {"a": {"b" :1,\n"b":2}, "text": "\\u003ax"}}', "/spec/a"),
        ('{"name":"one","spec":{"a":"\\u003a","\\u0061":2}}', "/spec"),
        ('{"name":"one","spec":{"list":[{"x\\\\":1,"x\\\\":2}]}}', "/spec/list/0"),
        ('{"name":"one","spec":{"a":"\\u0020:","a":""}}', "/spec"),
    ],
)
def test_a_key_is_given_once(fleet: Fleet, text: str, pointer: str) -> None:
    problem = problem_of(fleet.post("/clusters", content=text.encode()), 400, "InvalidBody")
    assert [(error["code"], error["pointer"]) for error in problem["errors"]] == [("DuplicateKey", pointer)]


@pytest.mark.parametrize("route", ["post", "put", "batch", "compat"])
def test_a_report_gives_a_key_once(fleet: Fleet, route: str) -> None:
    cluster = fleet.create()["id"]
    raw = msgspec.json.encode(REPORT)
    twice = raw.replace(b'"status":"True"', b'"status":"False","status":"True"', 1)
    assert twice != raw
    match route:
        case "post":
            answer = fleet.post(f"/clusters/{cluster}/statuses", content=twice)
        case "put":
            answer = fleet.request("PUT", f"/clusters/{cluster}/statuses/adapters/dns", content=twice)
        case "batch":
            item = b'{"clusterId":"%b",%b' % (cluster.encode(), twice[1:])
            answer = fleet.post("/statuses:batch", content=b'{"reports":[%b]}' % item)
            assert answer.json()["results"][0]["problem"]["errors"][0]["code"] == "DuplicateKey"
            return
        case _:
            snake = twice.replace(b"observedGeneration", b"observed_generation")
            path = f"{COMPAT}/clusters/{cluster}/statuses"
            answer = fleet.request("PUT", path, content=snake)
            assert answer.status_code == 400
            return
    errors = problem_of(answer, 400, "InvalidBody")["errors"]
    assert [error["code"] for error in errors] == ["DuplicateKey"]


def test_keys_that_differ_are_no_duplicates(fleet: Fleet) -> None:
    spec = {'":': 1, ":": '":', 'a"': '\\":', "\\": ":", "b": {":b": [{":": ":"}]}, " ": " :"}
    assert fleet.post("/clusters", {"name": "one", "spec": spec}).status_code == 201
    spaced = msgspec.json.format(msgspec.json.encode({"name": "two", "spec": spec}), indent=3)
    assert fleet.post("/clusters", content=spaced).status_code == 201


def test_a_body_needs_a_content_type(fleet: Fleet) -> None:
    cluster = fleet.create()["id"]
    for path in ("/clusters", f"/clusters/{cluster}/statuses", "/statuses:batch", "/policy:simulate"):
        answer = fleet.request("POST", path, content=b"{}", headers={"Content-Type": ""})
        assert answer.status_code == 415, path


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{number}: 1\n" for number in range(5_000)),
        "requiredAdapters: [" + ",".join(f"a{number}" for number in range(5_000)) + "]",
        "requiredAdapters: [a]\nclusterConditions:\n"
        + "".join(f"  - {{type: T{number}, evaluate: {{expr: 'x'}}}}\n" for number in range(300)),
        "requiredAdapters: " + "[" * 2_000,
    ],
    ids=["keys", "adapters", "rules", "depth"],
)
def test_a_policy(fleet: Fleet, text: str) -> None:
    headers = {"Content-Type": "application/yaml", "If-Match": "*"}
    for method, path in (("POST", "/policy:simulate"), ("PUT", "/policy")):
        answer = fleet.request(method, path, content=text.encode(), headers=headers)
        problem_of(answer, 422, "InvalidPolicy")
        assert len(answer.content) <= MAX_ANSWER


@pytest.mark.parametrize("path", ["/clusters", "/statuses:batch", "/clusters/x/statuses"])
def test_texts_without_an_end(fleet: Fleet, path: str) -> None:
    """Quadratic time would take minutes here."""
    check(fleet.post(path, content=b"," * 200_001 + b'"' + b'\\"' * 300_000), frozenset({400, 404, 413}))


def test_a_key_hides_the_same_deep_key(fleet: Fleet) -> None:
    for depth in (500, 990, 994, 998, 2_000):
        content = b'{"name":"x","spec":' + b"[" * depth + b"]" * depth + b',"spec":{}}'
        check(fleet.post("/clusters", content=content), frozenset({400}))


def test_a_batch_of_millions_is_not_split(fleet: Fleet) -> None:
    content = b'{"reports":[' + b"1," * 4_000_000 + b"1]}"
    problem_of(fleet.post("/statuses:batch", content=content), 413, "BodyTooLarge")


def test_a_batch_has_one_list(fleet: Fleet) -> None:
    for key in (b"reports", rb"repo\u0072ts"):
        problem = problem_of(
            fleet.post("/statuses:batch", content=b'{"reports":[{"a":1}],"%b":[{"b":2}]}' % key), 400, "InvalidBody"
        )
        assert problem["errors"][0]["code"] == "DuplicateKey"


def test_a_secret_hides_no_second_key(fleet: Fleet) -> None:
    cluster = fleet.create()["id"]
    raw = msgspec.json.encode({**REPORT, "data": {"password": "hunter2Secret"}})
    twice = raw.replace(b'"observedGeneration":1', b'"observedGeneration":7,"observedGeneration":1')
    assert twice != raw
    problem = problem_of(fleet.post(f"/clusters/{cluster}/statuses", content=twice), 400, "InvalidBody")
    assert problem["errors"][0]["code"] == "DuplicateKey"


def test_the_errors_of_a_batch_stay_small(fleet: Fleet) -> None:
    cluster = fleet.create()["id"]
    item = {"clusterId": cluster, **REPORT, "conditions": [{"type": "?", "status": "No", "reason": "!"}] * 60}
    answer = fleet.post("/statuses:batch", {"reports": [item] * 500})
    assert answer.status_code == 200
    assert {len(result["problem"]["errors"]) for result in answer.json()["results"]} == {5}
    assert len(answer.content) < 1_000_000


@pytest.mark.parametrize("path", ["/clusters", "/statuses:batch", "/clusters/x/statuses"])
def test_tiny_pieces(fleet: Fleet, path: str) -> None:
    taken = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(100_000):
            taken += 1
            yield b" "

    answer = fleet.post(path, content=pieces())
    assert "too many pieces" in problem_of(answer, 400, "InvalidRequest")["detail"]
    assert taken < 300
