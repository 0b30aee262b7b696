"""Webhooks over the API: what administrators see and do, and that nothing secret is shown. On every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.events.webhook_state import Member, Problem, WebhookState
from tests.api.fleet import ROOT, START, Fleet, HandClock, problem_of
from tests.api.guarding import open_guarded

FAILING = WebhookState(
    problems={
        "a": Problem(
            "dns", "Throttled", "rate <n>", "rate 5", START, {"c": Member("Cluster", "c", "", START)}, due=START
        )
    },
    sent_time=START - timedelta(hours=2),
    failing_since=START - timedelta(hours=1),
    last_error="https://hooks.example.org answered 500",
)


def save(client: Fleet, state: WebhookState) -> None:
    client.run(client.store.save_webhook("ops", state.encode()))


def test_a_webhook_is_shown_without_its_secrets(client: Fleet) -> None:
    answer = client.get("/webhooks")
    assert answer.status_code == 200
    assert "s3cr3t" not in answer.text
    (shown,) = answer.json()["items"]
    assert client.get("/webhooks/ops").json() == shown
    assert shown == {
        "name": "ops",
        "address": "https://hooks.example.org",
        "format": "slack",
        "send": ["problems"],
        "tenants": None,
        "filter": {"kinds": [], "labelSelector": "", "phases": [], "conditions": [], "causes": []},
        "state": "ok",
        "openCauses": [],
        "openCauseCount": 0,
    }


def test_a_failing_webhook(client: Fleet) -> None:
    save(client, FAILING)
    shown = client.get("/webhooks/ops").json()
    assert (shown["state"], shown["lastError"]) == ("failing", "https://hooks.example.org answered 500")
    assert shown["failingSince"] == "2025-10-17T11:00:00Z"
    assert shown["lastSent"] == "2025-10-17T10:00:00Z"
    assert shown["waitingSince"] == "2025-10-17T12:00:00Z"
    cause = {"id": "a", "adapter": "dns", "reason": "Throttled", "message": "rate <n>", "count": 1}
    assert shown["openCauses"] == [{**cause, "since": "2025-10-17T12:00:00Z"}]
    client.clock.pass_time(timedelta(seconds=30))
    metrics = client.get(f"{ROOT}/metrics").text
    assert 'hyperfleet_webhook_lag_seconds{webhook="ops"} 30.0' in metrics
    assert 'hyperfleet_webhook_disabled{webhook="ops"} 0.0' in metrics


def test_a_disabled_webhook_is_enabled(client: Fleet) -> None:
    now = datetime(2025, 10, 17, tzinfo=UTC)
    save(client, WebhookState(failing_since=now, disabled_time=now, last_error="x"))
    assert client.get("/webhooks/ops").json()["state"] == "disabled"
    assert 'hyperfleet_webhook_disabled{webhook="ops"} 1.0' in client.get(f"{ROOT}/metrics").text
    answer = client.post("/webhooks/ops:enable")
    assert (answer.status_code, answer.json()["state"]) == (200, "ok")
    saved = WebhookState.decode(client.run(client.store.read_webhooks())["ops"])
    assert saved.must_survey, "it continues with what is open now"
    assert "webhook-ops" in {each.name for each in client.run(client.store.readers())}
    assert client.post("/webhooks/ops:enable").json()["state"] == "ok", "once more does no harm"


def test_a_test_message(client: Fleet) -> None:
    answer = client.post("/webhooks/ops:test")
    assert answer.status_code == 200
    error = "https://hooks.example.org did not take the message: the name has no address"
    assert answer.json() == {"delivered": False, "status": 0, "error": error}


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ":test"), ("POST", ":enable")])
def test_an_unknown_webhook(memory_client: Fleet, method: str, path: str) -> None:
    problem = problem_of(memory_client.request(method, f"/webhooks/other{path}"), 404, "NotFound")
    assert problem["detail"] == "there is no webhook other in the settings"


def test_webhooks_are_for_administrators_of_all_tenants(clock: HandClock, tmp_path: Path) -> None:
    asked = (("GET", "/webhooks"), ("GET", "/webhooks/ops"), ("POST", "/webhooks/ops:test"))
    with open_guarded(MemoryStore(clock), clock, tmp_path) as guarded:
        for method, path in (*asked, ("POST", "/webhooks/ops:enable")):
            problem = problem_of(guarded.act(method, path, name="red-admin"), 403, "Forbidden")
            assert "red-admin sees only some tenants" in problem["detail"]
            assert guarded.act(method, path).status_code == 200
