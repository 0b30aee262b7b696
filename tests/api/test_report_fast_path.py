"""The fast lane of reports takes in what the ordinary way takes in, and answers the same."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.fleet import Fleet, errors_of, path_of, problem_of
from tests.world import body

ORDINARY = {"Prefer": "return=minimal"}  # asks for what the lane does anyway, and the lane does not know it


def normalize(response: httpx.Response) -> tuple[int, str, dict[str, Any]]:
    """Leave out what differs each time."""
    told = response.json()
    for key in ("requestId", "instance"):
        told.pop(key, None)
    for outcome in told.get("outcomes", ()):
        outcome.pop("reportId", None)
    return response.status_code, response.headers["content-type"], told


REPORT = body("dns", "True", data={"zone": {"id": 7}}, metadata={"job": "x"})
SNAKE = {
    "adapter": "dns",
    "observed_generation": 1,
    "observed_time": "2025-10-17T12:00:05Z",
    "conditions": [{"type": name, "status": "True"} for name in ("Available", "Applied", "Health")],
}
WITHOUT_ADAPTER = {key: value for key, value in REPORT.items() if key != "adapter"}


@pytest.mark.parametrize(
    ("method", "suffix", "content"),
    [
        ("POST", "", REPORT),
        ("POST", "", SNAKE),
        ("POST", "", WITHOUT_ADAPTER),
        ("POST", "", {**REPORT, "adapter": ""}),
        ("POST", "", {**REPORT, "adapter": None}),
        ("POST", "", {**REPORT, "adapter": "no spaces"}),
        ("POST", "", {**REPORT, "adapter": "x" * 300}),
        ("POST", "", {**REPORT, "observedGeneration": 2}),
        ("POST", "", {**REPORT, "observedGeneration": 0}),
        ("POST", "", {**SNAKE, "observedGeneration": 1}),
        ("POST", "", {**REPORT, "conditions": []}),
        ("POST", "", {**REPORT, "unknown": 1}),
        ("POST", "", {**REPORT, "data": {"a": "\0"}}),
        ("POST", "", {**REPORT, "data": {"a": 2**70}}),
        ("POST", "", []),
        ("PUT", "/adapters/dns", REPORT),
        ("PUT", "/adapters/dns", WITHOUT_ADAPTER),
        ("PUT", "/adapters/dns", {**REPORT, "adapter": None}),
        ("PUT", "/adapters/dns", {**REPORT, "adapter": ""}),
        ("PUT", "/adapters/other", REPORT),
        ("PUT", f"/adapters/{'x' * 300}", WITHOUT_ADAPTER),
        ("PUT", "/adapters/-dns", WITHOUT_ADAPTER),
        ("PUT", "", REPORT),
        ("POST", "/adapters/dns", REPORT),
    ],
)
@pytest.mark.parametrize("is_pool", [False, True])
def test_both_ways_answer_the_same(
    memory_client: Fleet, method: str, suffix: str, content: object, is_pool: bool
) -> None:
    client = memory_client
    answers: list[str] = []
    for headers in ({}, ORDINARY):
        resource = client.create(name=f"c-{len(answers)}")
        if is_pool:
            resource = client.create_pool(resource)
        response = client.request(
            method, f"{path_of(resource)}/statuses{suffix}", content=json.dumps(content), headers=headers
        )
        told = json.dumps(normalize(response)).replace(resource["id"], "ID")
        answers.append(told)
    assert answers[0] == answers[1]


def test_nothing_that_is_asked_for_is_ignored(client: Fleet) -> None:
    path = f"{path_of(client.create())}/statuses"
    assert errors_of(client.post(f"{path}?dryRun=true", REPORT), 400, "InvalidQuery")
    problem_of(
        client.post(path, content=b"<report/>", headers={"Content-Type": "text/xml"}), 415, "UnsupportedMediaType"
    )
    problem_of(client.post(path, content=b"?", headers={"Content-Encoding": "gzip"}), 400, "InvalidBody")


def test_a_body_in_pieces_is_put_together(client: Fleet) -> None:
    async def pieces() -> Any:
        raw = json.dumps(REPORT).encode()
        for start in range(0, len(raw), 3):
            yield raw[start : start + 3]

    response = client.post(f"{path_of(client.create())}/statuses", content=pieces())
    assert response.json()["outcome"] == "aggregated"


def test_a_request_keeps_its_id_on_the_lane(client: Fleet) -> None:
    path = f"{path_of(client.create())}/statuses"
    for content, status in ((REPORT, 200), ({**REPORT, "observedGeneration": 9}, 409)):
        response = client.post(path, content, headers={"X-Request-Id": "mine"})
        assert (response.status_code, response.headers["x-request-id"]) == (status, "mine")
        assert len(response.headers.get_list("x-request-id")) == 1
