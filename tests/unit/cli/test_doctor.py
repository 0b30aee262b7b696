"""`hyperfleet doctor` with servers and files that have problems: each problem has a remedy."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from hyperfleet import __version__
from hyperfleet.cli import run
from hyperfleet.cli.session import CliSession

NOW = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)
WELL: dict[str, Any] = {
    "/healthz": {"status": "alive"},
    "/readyz": {"status": "ready"},
    "/openapi.json": {"openapi": "3.1.0", "info": {"title": "HyperFleet", "version": __version__}},
    "/api/hyperfleet/v1/clusters": {"items": []},
    "/api/hyperfleet/v1/policy": {"version": 3, "file": "policy.yaml", "recomputation": {"remaining": 0}},
    "/api/hyperfleet/v1/adapters": {"items": []},
}


class Patient(CliSession):
    """A session whose server tells a time of its own."""

    skew = timedelta(0)

    def read_server_clock(self) -> datetime | None:
        return self.now() + self.skew


class Confused(CliSession):
    """A session whose server writes no time that anybody could read."""

    def read_server_clock(self) -> datetime | None:
        raise ValueError("Invalid date value or format")


def test_a_clock_that_cannot_be_read_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    wire = httpx.MockTransport(lambda request: httpx.Response(200, json=WELL[request.url.path]))
    environment = {"HYPERFLEET_SERVER": "http://127.0.0.1:8000", "HOME": "/nowhere"}
    assert run(["doctor"], Confused(environment, lambda: NOW, wire)) == 0
    assert "the server's clock cannot be read: Invalid date" in capsys.readouterr().out


def examine(
    capsys: pytest.CaptureFixture[str],
    answers: dict[str, Any] | None = None,
    *,
    skew: float = 0,
    environment: dict[str, str] | None = None,
    statuses: dict[str, int] | None = None,
) -> dict[str, tuple[str, str, str]]:
    """Run the doctor; return the last finding of each check that is not fine, with its remedy."""

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        return httpx.Response((statuses or {}).get(path, 200), json={**WELL, **(answers or {})}[path])

    given = environment or {"HYPERFLEET_SERVER": "http://127.0.0.1:8000", "HOME": "/nowhere"}
    session = Patient(given, lambda: NOW, httpx.MockTransport(answer))
    session.skew = timedelta(seconds=skew)
    code = run(["doctor", "-o", "json"], session)
    findings = json.loads(capsys.readouterr().out)["items"]
    assert code == int(any(each["verdict"] == "failed" for each in findings))
    return {
        each["check"]: (each["verdict"], each["found"], each["remedy"]) for each in findings if each["verdict"] != "ok"
    }


def test_no_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert examine(capsys) == {}


@pytest.mark.parametrize(
    ("answers", "check", "verdict", "said"),
    [
        ({"/openapi.json": {"openapi": "3.1.0", "info": {"version": "9.9"}}}, "version", "warning", "the server 9.9"),
        (
            {"/api/hyperfleet/v1/policy": {"version": 3, "warnings": [{"message": "never Ready", "line": 2}]}},
            "policy",
            "warning",
            "2:1: never Ready",
        ),
        (
            {"/api/hyperfleet/v1/policy": {"version": 3, "recomputation": {"remaining": 7}}},
            "policy",
            "warning",
            "7 resources still to be recomputed",
        ),
        (
            {"/api/hyperfleet/v1/adapters": {"items": [{"name": "dns", "blocks": {"Cluster": 2}}]}},
            "adapters",
            "warning",
            "dns has never reported, and 2 clusters wait for it",
        ),
        (
            {"/api/hyperfleet/v1/adapters": {"items": [{"name": "dns", "clockSkewSeconds": -90.2}]}},
            "adapters",
            "warning",
            "the clock of dns is -90s off",
        ),
    ],
)
def test_problems(
    capsys: pytest.CaptureFixture[str], answers: dict[str, Any], check: str, verdict: str, said: str
) -> None:
    found = examine(capsys, answers)[check]
    assert found[0] == verdict
    assert said in found[1]
    assert found[2], "every complaint has a remedy"


def test_a_server_that_is_not_ready(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [{"check": "store", "message": "the database is away"}]
    found = examine(capsys, {"/readyz": {"status": "notReady", "reasons": reasons}}, statuses={"/readyz": 503})
    assert found["ready"][:2] == ("failed", "store: the database is away")


def test_a_token_that_is_not_accepted_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    clusters = "/api/hyperfleet/v1/clusters"
    problem = {"code": "InvalidToken", "status": 401, "title": "No", "detail": "expired"}
    found = examine(capsys, {clusters: problem}, statuses={clusters: 401})
    assert found["access"][0] == "failed"
    assert "expired" in found["access"][1]


@pytest.mark.parametrize(("skew", "words"), [(90.0, "90s ahead of"), (-7.0, "7s behind")])
def test_clocks_that_differ(capsys: pytest.CaptureFixture[str], skew: float, words: str) -> None:
    assert words in examine(capsys, skew=skew)["clock"][1]


@pytest.mark.parametrize(
    ("text", "mode", "verdict", "said"),
    [
        (
            "contexts: {a: {server: 'http://127.0.0.1', token: t}}\ncurrentContext: a",
            0o644,
            "warning",
            "others can read",
        ),
        ("contexts: 7", 0o600, "failed", "config.yaml:1:11"),
    ],
)
def test_config_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, mode: int, verdict: str, said: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    file.chmod(mode)
    found = examine(capsys, environment={"HYPERFLEET_CONFIG_HOME": str(tmp_path)})
    assert found["config"][0] == verdict
    assert said in found["config"][1]
