"""The port `ApiCaller`: HTTP and a recording answer alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from hyperfleet.adapter.api_calls import ApiCaller, ApiRequest, read_object
from hyperfleet.adapter.api_http import HttpApi
from hyperfleet.adapter.api_recorded import RecordedApi, load_recording
from hyperfleet.adapter.config import ApiSection
from tests.unit.adapter.scripted_api import TLS, Scripted, SeenRequest, scripted_api

pytestmark = pytest.mark.anyio

# Answers by a part of the path, in turn; the last one repeats.
Script = dict[str, list[tuple[int, Any]]]
MakeCaller = Callable[[Script], ApiCaller]

CLUSTER = {"id": "c1", "generation": 3, "spec": {"zones": ["a", "b"]}}
GONE = {"code": "HYPERFLEET-NTF-001", "detail": "there is no cluster c1"}
NO_ROUTE = {"code": "HYPERFLEET-NTF-000", "detail": "there is no such path"}


async def over_http() -> AsyncIterator[MakeCaller]:
    """Answer from a real server on loopback, with one attempt, as a recording simulates no retries."""
    made: list[HttpApi] = []
    with scripted_api() as server:

        def make(script: Script) -> ApiCaller:
            used: dict[str, int] = {}

            def answer(request: SeenRequest) -> Scripted:
                for part, answers in script.items():
                    if part in request.path:
                        used[part] = used.get(part, 0) + 1
                        return Scripted(*answers[min(used[part], len(answers)) - 1])
                return Scripted()

            server.answer = answer
            made.append(HttpApi(ApiSection(base_url=server.url, attempts=1), tls=TLS))
            return made[-1]

        yield make
        for each in made:
            await each.close()


async def from_a_recording() -> AsyncIterator[MakeCaller]:
    """Answer from a file in the Go adapter's format."""

    def make(script: Script) -> ApiCaller:
        endpoints = [
            {
                "match": {"method": "*", "urlPattern": part.replace("?", "\\?")},
                "responses": [{"statusCode": status, "body": body} for status, body in answers],
            }
            for part, answers in script.items()
        ]
        recording = load_recording(msgspec.json.encode({"responses": endpoints}).decode(), "api.json").recording
        assert recording is not None
        return RecordedApi(recording)

    yield make


@pytest.fixture(params=[over_http, from_a_recording], ids=["http", "recording"])
async def make_caller(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[MakeCaller]:
    """Give what makes a caller with scripted answers."""
    async for make in request.param():
        yield make


def get(url: str) -> ApiRequest:
    return ApiRequest(method="GET", url=url)


async def test_an_object_is_read(make_caller: MakeCaller) -> None:
    answer = await make_caller({"/clusters/c1": [(200, CLUSTER)]}).call(get("/clusters/c1"))
    assert (answer.is_success, answer.is_gone, answer.status, answer.attempts) == (True, False, 200, 1)
    assert read_object(answer).value == CLUSTER


async def test_answers_come_in_turn_and_the_last_one_repeats(make_caller: MakeCaller) -> None:
    caller = make_caller({"/clusters": [(200, {"n": 1}), (200, {"n": 2})]})
    numbers = [read_object(await caller.call(get("/clusters"))).value["n"] for _ in range(3)]
    assert numbers == [1, 2, 2]


async def test_a_call_that_nothing_matches_is_answered_with_an_empty_object(make_caller: MakeCaller) -> None:
    answer = await make_caller({"/clusters": [(500, {})]}).call(get("/nodepools"))
    assert (answer.status, read_object(answer).value) == (200, {})


@pytest.mark.parametrize(
    ("body", "is_gone", "because"),
    [
        (GONE, True, "reference 1.12: anything but NTF-000 means that the resource is gone"),
        ("", True, "… even without a body"),
        (NO_ROUTE, False, "reference 1.12: NTF-000 is a wrong path, which is a failure"),
    ],
)
async def test_a_404_is_a_resource_that_is_gone_or_a_wrong_path(
    make_caller: MakeCaller, body: Any, is_gone: bool, because: str
) -> None:
    answer = await make_caller({"/clusters/c1": [(404, body)]}).call(get("/clusters/c1"))
    assert (answer.is_success, answer.is_gone) == (False, is_gone), because


async def test_a_refusal_is_described_with_its_detail(make_caller: MakeCaller) -> None:
    answer = await make_caller({"/clusters": [(422, {"detail": "the name is taken"})]}).call(
        ApiRequest(method="POST", url="/clusters?dry=1", body="{}")
    )
    assert not answer.is_success
    assert answer.describe().startswith("POST http")
    assert answer.describe().endswith("/api/hyperfleet/v1/clusters answered 422: the name is taken")


@pytest.mark.parametrize("body", [[1], "no JSON", 3, b"\xff"])
async def test_only_objects_are_accepted(make_caller: MakeCaller, body: Any) -> None:
    body = body.decode("latin-1") if isinstance(body, bytes) else body
    answer = await make_caller({"/x": [(200, body)]}).call(get("/x"))
    assert answer.is_success
    assert read_object(answer).fault


async def test_query_strings_reach_the_server(make_caller: MakeCaller) -> None:
    caller = make_caller({"/clusters?search=a": [(200, {"found": "a"})], "/clusters": [(200, {"found": "all"})]})
    assert read_object(await caller.call(get("/clusters?search=a"))).value == {"found": "a"}
    assert read_object(await caller.call(get("/clusters"))).value == {"found": "all"}


@pytest.mark.parametrize("url", ["", "   ", "ftp://host/x", "http://", "/a\nb", "http://host:port/"])
async def test_a_url_that_is_not_valid_is_an_error_without_a_call(make_caller: MakeCaller, url: str) -> None:
    answer = await make_caller({}).call(get(url))
    assert (answer.status, answer.is_success, bool(answer.error)) == (0, False, True)
