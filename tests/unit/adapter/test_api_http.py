"""API calls over HTTP: retries, tokens, headers and limits."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.adapter.api_calls import MAX_ANSWER, ApiAnswer, ApiRequest
from hyperfleet.adapter.api_http import HttpApi, read_retry_after
from hyperfleet.adapter.config import ApiSection
from tests.unit.adapter.scripted_api import TLS, Scripted, ScriptedApi, scripted_api

pytestmark = pytest.mark.anyio

OK = Scripted(200, {"ok": True})
GET = ApiRequest(method="GET", url="/clusters/c1")


class Pauses:
    """Stands for the passing of time: nothing waits, and every pause is remembered."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def call(api: ScriptedApi, request: ApiRequest = GET, pauses: Pauses | None = None, **section: Any) -> ApiAnswer:
    async with HttpApi(ApiSection(base_url=api.url, **section), tls=TLS, sleep=pauses or Pauses()) as caller:
        return await caller.call(request)


# ── retries ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_what_may_pass_is_tried_again(api: ScriptedApi, status: int) -> None:
    api.answer_in_turn(Scripted(status), Scripted(status), OK)
    answer = await call(api)
    assert (answer.status, answer.attempts, len(api.seen)) == (200, 3, 3)


@pytest.mark.parametrize("status", [301, 400, 403, 404, 409, 422])
async def test_what_does_not_pass_is_not_tried_again(api: ScriptedApi, status: int) -> None:
    api.answer_in_turn(Scripted(status, {}, {"location": "/elsewhere"}), OK)
    answer = await call(api)
    assert (answer.status, answer.attempts, len(api.seen)) == (status, 1, 1)


async def test_attempts_are_bounded_and_the_call_may_say_otherwise(api: ScriptedApi) -> None:
    api.answer_in_turn(Scripted(503))
    assert (await call(api, attempts=2)).attempts == 2
    assert (await call(api, ApiRequest(method="GET", url="/x", attempts=4), attempts=2)).attempts == 4


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [("exponential", [1, 2, 4, 5]), ("linear", [1, 2, 3, 4]), ("constant", [1, 1, 1, 1])],
)
async def test_the_pause_grows_up_to_a_limit(api: ScriptedApi, backoff: str, expected: list[float]) -> None:
    """Reference 1.12: base*2^(n-1), base*n, base; ten percent of chance; then capped by max_delay."""
    api.answer_in_turn(Scripted(503))
    pauses = Pauses()
    await call(api, pauses=pauses, attempts=5, backoff=backoff, max_delay=timedelta(seconds=5))
    assert pauses.seconds == pytest.approx(expected, rel=0.101)
    assert max(pauses.seconds) <= 5


async def test_a_server_may_ask_for_a_pause(api: ScriptedApi) -> None:
    api.answer_in_turn(Scripted(429, {}, {"Retry-After": "7"}), OK)
    pauses = Pauses()
    assert (await call(api, pauses=pauses)).status == 200
    assert pauses.seconds == [7.0]


async def test_a_pause_that_is_too_long_is_left_to_the_caller(api: ScriptedApi) -> None:
    api.answer_in_turn(Scripted(503, {}, {"Retry-After": "3600"}), OK)
    answer = await call(api)
    assert (answer.status, answer.attempts, answer.retry_after) == (503, 1, 3600.0)


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert read_retry_after("12", now) == 12
    assert read_retry_after("Thu, 01 Jan 2026 12:00:30 GMT", now) == 30
    assert read_retry_after("Thu, 01 Jan 2026 11:00:00 GMT", now) == 0
    assert read_retry_after("soon", now) is read_retry_after("", now) is None


async def test_a_server_that_is_not_there_is_a_value() -> None:
    with scripted_api() as gone:
        pass
    answer = await call(gone)
    assert (answer.status, answer.attempts) == (0, 3)
    assert answer.describe().startswith(f"GET {gone.url}/api/hyperfleet/v1/clusters/c1 failed after 3 attempts: ")


# ── time and size ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_attempt_has_a_deadline(api: ScriptedApi) -> None:
    is_over = threading.Event()

    def answer(request: Any) -> Scripted:
        is_over.wait(60)
        return OK

    api.answer = answer
    late = await call(api, ApiRequest(method="GET", url="/x", timeout=timedelta(milliseconds=20), attempts=1))
    is_over.set()
    assert (late.status, late.error) == (0, "no answer within 0.02s")


async def test_the_deadline_of_a_call_may_be_longer_than_that_of_the_client(api: ScriptedApi) -> None:
    """Reference 1.3 [!]: in Go the client's timeout is a hard cap for those of calls."""
    short, long = timedelta(milliseconds=1), timedelta(minutes=1)

    def answer(request: Any) -> Scripted:
        time.sleep(0.05)  # longer than the client's timeout, however slow this machine is
        return OK

    api.answer = answer
    assert (await call(api, ApiRequest(method="GET", url="/x", timeout=long, attempts=1), timeout=short)).status == 200


async def test_an_answer_has_a_limit(api: ScriptedApi) -> None:
    api.answer_in_turn(Scripted(200, b"x" * (MAX_ANSWER + 1)))
    answer = await call(api)
    assert (answer.status, answer.attempts) == (0, 1), "a repetition would be as large"
    assert "more than" in answer.error


# ── tokens and headers ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_token_goes_to_our_own_origin_only(api: ScriptedApi, tmp_path: Path) -> None:
    """Reference 1.12 [!]: the Go adapter sends it to foreign URLs as well."""
    token = tmp_path / "token"
    token.write_text(" secret-token \n")
    headers = {"X-Team": "red", "X-Api-Token": "hidden"}
    with scripted_api() as foreign:
        for url in ("/clusters", f"{api.url}/other", f"{foreign.url}/clusters"):
            await call(api, ApiRequest(method="GET", url=url), token_path=str(token), headers=headers)
        assert [each.headers.get("authorization") for each in api.seen] == ["Bearer secret-token"] * 2
        assert [each.headers.get("x-api-token") for each in api.seen] == ["hidden"] * 2
        (request,) = foreign.seen
        assert {"authorization", "x-api-token"}.isdisjoint(request.headers), "nothing secret leaves"
        assert request.headers["x-team"] == "red", "reference 1.3: default headers are added to every call"


async def test_a_redirect_is_not_followed(api: ScriptedApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret-token")
    with scripted_api() as foreign:
        api.answer_in_turn(Scripted(307, {}, {"Location": f"{foreign.url}/x"}))
        answer = await call(api, token_path=str(tmp_path / "token"))
        assert (answer.status, foreign.seen) == (307, [])


async def test_a_refused_token_is_read_again_once(api: ScriptedApi, tmp_path: Path) -> None:
    """Issue 19: 401 token read again once."""
    token = tmp_path / "token"
    token.write_text("old")
    lifetime = timedelta(hours=1)

    def answer(request: Any) -> Scripted:
        token.write_text("new")
        return OK if request.headers["authorization"] == "Bearer new" else Scripted(401)

    api.answer = answer
    assert (await call(api, token_path=str(token), token_lifetime=lifetime)).status == 200
    assert [each.headers["authorization"] for each in api.seen] == ["Bearer old", "Bearer new"]
    api.answer = lambda request: Scripted(401)
    before = len(api.seen)
    assert (await call(api, token_path=str(token), token_lifetime=lifetime)).status == 401
    assert len(api.seen) - before == 2, "once, not for ever"


async def test_a_token_is_kept_for_its_lifetime(api: ScriptedApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    for lifetime, expected in ((timedelta(hours=1), ["one", "one"]), (timedelta(), ["one", "two"])):
        del api.seen[:]
        token.write_text("one")
        section = ApiSection(base_url=api.url, token_path=str(token), token_lifetime=lifetime)
        async with HttpApi(section, tls=TLS) as caller:
            await caller.call(GET)
            token.write_text("two")
            await caller.call(GET)
        assert [each.headers["authorization"] for each in api.seen] == [f"Bearer {each}" for each in expected]


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe", b"a\nb", b"x" * 100_000])
async def test_without_a_token_nothing_is_sent(api: ScriptedApi, tmp_path: Path, content: bytes | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    answer = await call(api, token_path=str(token), attempts=1)
    assert (answer.status, api.seen) == (0, [])
    assert "token file" in answer.error


@pytest.mark.parametrize(
    ("given", "sent"), [("Bearer abc", "Bearer abc"), ("Bearer ", None), ("Bearer", None), ("", None)]
)
async def test_an_optional_token_that_is_empty_is_not_sent(api: ScriptedApi, given: str, sent: str | None) -> None:
    """The contract's header is `Bearer {{ .hyperfleetApiToken }}`, and that param is "" by default."""
    await call(api, ApiRequest(method="GET", url="/x", headers=(("Authorization", given),)))
    assert api.seen[0].headers.get("authorization") == sent


async def test_headers_of_a_call_stand_over_the_defaults(api: ScriptedApi) -> None:
    request = ApiRequest(method="POST", url="/x", body="{}", headers=(("x-team", "blue"), ("Content-Type", "text/x")))
    await call(api, request, headers={"X-Team": "red", "X-Other": "1"})
    await call(api, ApiRequest(method="POST", url="/x", body='{"a": "é"}'))
    first, second = api.seen
    assert (first.headers["x-team"], first.headers["x-other"], first.headers["content-type"]) == ("blue", "1", "text/x")
    assert (second.headers["content-type"], second.body) == ("application/json", '{"a": "é"}'.encode())
    assert first.headers["user-agent"].startswith("hyperfleet-adapter/")


@pytest.mark.parametrize("value", ["a\r\nInjected: yes", "a\x00b", "\n"])
async def test_a_value_cannot_add_headers(api: ScriptedApi, value: str) -> None:
    answer = await call(api, ApiRequest(method="GET", url="/x", headers=(("X-Name", value),)))
    assert all("injected" not in each.headers for each in api.seen)
    assert answer.status in (0, 200)


async def test_messages_never_show_a_query(api: ScriptedApi) -> None:
    api.answer_in_turn(Scripted(400, {"detail": "no"}))
    answer = await call(api, ApiRequest(method="GET", url="http://user:pw@127.0.0.1:9/x?token=hidden", attempts=1))
    assert "hidden" not in answer.describe()
    assert "pw" not in answer.describe()
