"""API calls over HTTP: the rows of `calls.yaml`, each against real servers on loopback."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.adapter.api_calls import ApiRequest
from hyperfleet.adapter.api_http import HttpApi
from hyperfleet.adapter.config import ApiSection
from tests.conformance.adapter.tables import read_rows
from tests.unit.adapter.scripted_api import TLS, Scripted, ScriptedApi, SeenRequest, scripted_api


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio."""
    return "asyncio"


async def _never_wait(seconds: float) -> None:
    pass


def _request(row: Mapping[str, Any], own: str, foreign: str) -> ApiRequest:
    url = row["url"].replace("OWN", own).replace("FOREIGN", foreign)
    headers = tuple((name, value) for name, value in row.get("headers", ()))
    timeout = timedelta(seconds=row["timeout"]) if "timeout" in row else None
    return ApiRequest(
        method=row["method"],
        url=url,
        body=row.get("body"),
        headers=headers,
        timeout=timeout,
        attempts=row.get("attempts", 0),
    )


def _section(row: Mapping[str, Any], own: str, folder: Path) -> ApiSection:
    given = dict(row.get("section", {}))
    if "timeout" in given:
        given["timeout"] = timedelta(seconds=given["timeout"])
    if "token" in row:
        (folder / "token").write_text(row["token"])
        given["token_path"] = str(folder / "token")
    return ApiSection(base_url=own, **given)


def _script(row: Mapping[str, Any], server: ScriptedApi) -> None:
    answers = row.get("answers", [200])

    def answer(request: SeenRequest) -> Scripted:
        time.sleep(row.get("pause", 0))
        return Scripted(answers[min(len(server.seen), len(answers)) - 1])

    server.answer = answer


def _fits(request: SeenRequest, expected: Mapping[str, Any]) -> bool:
    headers = expected.get("headers", {})
    return expected.get("path", request.path) == request.path and all(
        request.headers.get(name) == value for name, value in headers.items()
    )


@pytest.mark.anyio
@pytest.mark.parametrize("row", read_rows("calls"))
async def test_row(row: dict[str, Any], tmp_path: Path) -> None:
    with scripted_api() as own, scripted_api() as foreign:
        _script(row, own)
        async with HttpApi(_section(row, own.url, tmp_path), tls=TLS, sleep=_never_wait) as caller:
            answers = [await caller.call(_request(each, own.url, foreign.url)) for each in row["requests"]]
        for answer, expected in zip(answers, row.get("expect", [{}] * len(answers)), strict=True):
            assert {key: getattr(answer, key) for key in expected} == expected
        for server, key in ((own, "seen"), (foreign, "foreign")):
            wanted = row.get(key, [{}] * len(server.seen) if key == "seen" else [])
            assert [_fits(*pair) for pair in zip(server.seen, wanted, strict=True)] == [True] * len(wanted)
