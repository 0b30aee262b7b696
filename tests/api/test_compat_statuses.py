"""Reports in the dialect: `PUT …/statuses`, every row of the reference's tables, on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.api.compat_client import GoClient, conditions_of, declined, fields_of, path_of, report_body
from tests.api.fleet import Fleet


@pytest.fixture
def go(client: Fleet) -> GoClient:
    return GoClient(client)


@pytest.fixture
def memory_go(memory_client: Fleet) -> GoClient:
    return GoClient(memory_client)


def at(go: GoClient, minutes: float) -> str:
    """Return a time relative to the server's, as adapters write it."""
    return (go.fleet.clock.now() + timedelta(minutes=minutes)).isoformat()


def reported(go: GoClient, resource: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is stored of each adapter."""
    listed = go.get(f"{path_of(resource)}/statuses").json()
    assert listed["size"] == listed["total"] == len(listed["items"])
    return {item["adapter"]: item for item in listed["items"]}


# ── classification ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_first_report_and_the_next_are_both_created(go: GoClient) -> None:
    cluster = go.create()
    first = go.report(cluster, "dns", "False/JobRunning/Still at it", data={"zone": "a"})
    assert first.status_code == 201
    assert first.headers["content-type"] == "application/json"
    assert first.headers["vary"] == "Authorization"
    body = first.json()
    assert set(body) == {"adapter", "observed_generation", "conditions", "data", "created_time", "last_report_time"}
    assert body["conditions"][0]["reason"] == "JobRunning"
    assert set(body["conditions"][1]) == {"type", "status", "last_transition_time"}, "no reason, no message"
    second = go.report(cluster, "dns", "True")
    assert (second.status_code, second.json()["data"]) == (201, {})
    assert reported(go, cluster)["dns"] == second.json()


def test_a_generation_that_is_not_there_yet_is_discarded(go: GoClient) -> None:
    cluster = go.create()
    response = go.report(cluster, "dns", generation=2)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["hyperfleet-discarded"] == "GenerationAhead"
    assert reported(go, cluster) == {}


def test_an_older_generation_than_the_stored_one_is_discarded(go: GoClient) -> None:
    cluster = go.create()
    go.request("PATCH", path_of(cluster), json={"spec": {"region": "eu"}})
    assert go.report(cluster, "dns", generation=1).status_code == 201, "nothing newer is there"
    assert go.report(cluster, "dns", generation=2).status_code == 201
    response = go.report(cluster, "dns", "False", generation=1)
    assert (response.status_code, response.headers["hyperfleet-discarded"]) == (204, "StaleGeneration")
    assert reported(go, cluster)["dns"]["observed_generation"] == 2


def test_an_earlier_time_at_the_same_generation_is_discarded(go: GoClient) -> None:
    cluster = go.create()
    assert go.report(cluster, "dns", observed_time=at(go, -1)).status_code == 201
    response = go.report(cluster, "dns", "False", observed_time=at(go, -2))
    assert (response.status_code, response.headers["hyperfleet-discarded"]) == (204, "OutOfOrder")
    go.request("PATCH", path_of(cluster), json={"spec": {"region": "eu"}})
    newer = go.report(cluster, "dns", "False", generation=2, observed_time=at(go, -3))
    assert newer.status_code == 201, "a newer generation with an older clock is stored"


def test_an_equal_time_loses_nothing(go: GoClient) -> None:
    cluster = go.create()
    when = at(go, -1)
    assert go.report(cluster, "dns", "True", observed_time=when).status_code == 201
    replay = go.report(cluster, "dns", "True", observed_time=when)
    assert replay.status_code == 201
    other = go.report(cluster, "dns", "False/Broken", observed_time=when)
    assert other.status_code == 201
    assert other.json()["conditions"][0]["status"] == "False", "the later arrival wins"
    assert reported(go, cluster)["dns"] == other.json()


@pytest.mark.parametrize("missing", ["Available", "Applied", "Health"])
def test_the_three_conditions_are_mandatory(memory_go: GoClient, missing: str) -> None:
    cluster = memory_go.create()
    body = report_body("dns", generation=7)  # which would be discarded, were it well-formed
    body["conditions"] = [each for each in body["conditions"] if each["type"] != missing]
    response = memory_go.request("PUT", f"{path_of(cluster)}/statuses", json=body)
    problem = declined(response, 400, "VAL-000")
    assert problem["detail"].startswith(f"missing mandatory condition '{missing}': ")
    assert fields_of(problem) == {("conditions", "required")}


def test_only_ready_is_not_enough(memory_go: GoClient) -> None:
    cluster = memory_go.create()
    body = {**report_body("dns"), "conditions": [{"type": "Ready", "status": "True"}]}
    response = memory_go.request("PUT", f"{path_of(cluster)}/statuses", json=body)
    assert "'Available'" in declined(response, 400, "VAL-000")["detail"]


def test_unknown_counts_only_as_long_as_there_is_no_verdict(go: GoClient) -> None:
    cluster = go.create()
    assert go.report(cluster, "dns", "Unknown").status_code == 201
    assert conditions_of(go.read(cluster)).keys().isdisjoint({"DnsSuccessful"}), "stored, not aggregated"
    assert go.report(cluster, "dns", "True").status_code == 201
    response = go.report(cluster, "dns", "Unknown")
    assert (response.status_code, response.headers["hyperfleet-discarded"]) == (204, "UnknownAfterFirst")
    go.request("PATCH", path_of(cluster), json={"spec": {"region": "eu"}})
    assert go.report(cluster, "dns", "Unknown", generation=2).status_code == 204, "nor at a new generation"
    assert conditions_of(go.read(cluster))["DnsSuccessful"]["observed_generation"] == 1


def test_reports_move_the_conditions_in_the_same_write(go: GoClient) -> None:
    cluster = go.create()
    assert conditions_of(cluster)["Reconciled"]["status"] == "False"
    go.report(cluster, "dns")
    go.report(cluster, "validation")
    found = conditions_of(go.read(cluster))
    assert list(found) == [
        "Reconciled",
        "LastKnownReconciled",
        "ValidationSuccessful",
        "DnsSuccessful",
        "AllDone",
    ]
    assert {condition["status"] for condition in found.values()} == {"True"}
    assert set(found["Reconciled"]) == {
        "type",
        "status",
        "reason",
        "message",
        "observed_generation",
        "created_time",
        "last_updated_time",
        "last_transition_time",
    }


def test_a_transition_time_stays_while_the_status_does(go: GoClient) -> None:
    cluster = go.create()
    before = go.report(cluster, "dns", "True/One").json()["conditions"]
    go.fleet.clock.pass_time(timedelta(minutes=1))
    after = go.report(cluster, "dns", "True/Two", extra={"Zoned": "True"}).json()["conditions"]
    assert [each["last_transition_time"] for each in after[:3]] == [each["last_transition_time"] for each in before]
    assert after[3]["type"] == "Zoned", "further types are welcome"


# ── the body ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"adapter": ""}, {("adapter", "required")}),
        ({"adapter": None}, {("adapter", "required")}),
        ({"adapter": 3}, {("adapter", "format")}),
        ({"observed_generation": None}, {("observed_generation", "required")}),
        ({"observed_generation": 0}, {("observed_generation", "")}),
        ({"observed_generation": "1"}, {("observed_generation", "format")}),
        ({"observed_generation": 2**31}, {("observed_generation", "max")}),
        ({"observed_time": "yesterday"}, {("observed_time", "pattern")}),
        ({"conditions": None}, {("conditions", "required")}),
        ({"conditions": {}}, {("conditions", "format")}),
        ({"data": []}, {("data", "format")}),
        ({"metadata": "x"}, {("metadata", "format")}),
    ],
)
def test_what_a_report_must_be(memory_go: GoClient, change: dict[str, Any], fields: set[tuple[str, str]]) -> None:
    cluster = memory_go.create()
    body = {**report_body("dns"), **change}
    response = memory_go.request("PUT", f"{path_of(cluster)}/statuses", json=body)
    assert fields_of(declined(response, 400, "VAL-000")) == fields


@pytest.mark.parametrize(
    ("condition", "field"),
    [
        ({"type": "Available", "status": "True"}, "conditions[3].type"),
        ({"type": "", "status": "True"}, "conditions[3].type"),
        ({"type": "Odd", "status": "true"}, "conditions[3].status"),
        ({"type": "Odd"}, "conditions[3].status"),
    ],
)
def test_what_a_condition_must_be(memory_go: GoClient, condition: dict[str, str], field: str) -> None:
    cluster, body = memory_go.create(), report_body("dns")
    body["conditions"].append(condition)
    response = memory_go.request("PUT", f"{path_of(cluster)}/statuses", json=body)
    assert field in {name for name, _ in fields_of(declined(response, 400, "VAL-000"))}


@pytest.mark.parametrize(("minutes", "is_good"), [(-29.9, True), (4.9, True), (-30.1, False), (5.1, False)])
def test_the_clock_of_an_adapter_may_be_off_a_little(memory_go: GoClient, minutes: float, is_good: bool) -> None:
    cluster = memory_go.create()
    response = memory_go.report(cluster, "dns", observed_time=at(memory_go, minutes))
    assert response.status_code == (201 if is_good else 400)


def test_the_body_is_judged_before_the_path(memory_go: GoClient) -> None:
    declined(memory_go.request("PUT", "/clusters/nope/statuses", json={"adapter": "dns"}), 400, "VAL-000")
    problem = declined(memory_go.request("PUT", "/clusters/nope/statuses", json=report_body("dns")), 404, "NTF-001")
    assert problem["detail"] == "Cluster with id='nope' not found"


def test_six_keys_of_metadata_survive_and_unknown_fields_do_no_harm(go: GoClient) -> None:
    cluster = go.create()
    kept = {"job_name": "j", "job_namespace": "n", "attempt": 2, "duration": "3s"}
    body = {**report_body("dns", metadata={**kept, "resourceNames": ["x"]}), "observedGeneration": 9, "id": "x"}
    response = go.request("PUT", f"{path_of(cluster)}/statuses", json=body)
    assert (response.status_code, response.json()["metadata"]) == (201, kept)


BAD_METADATA: list[tuple[str, Any]] = [
    *[(key, value) for key in ("job_name", "job_namespace", "duration") for value in (1, True, ["x"], {"a": "b"})],
    *[("attempt", value) for value in ("2", 2.5, 2.0, True, [2], {"count": 2}, 2**31, -(2**31) - 1)],
    *[
        (key, value)
        for key in ("started_time", "completed_time")
        for value in ("yesterday", "", 1760702400, "2025-10-17", "2025-10-17T12:00:00", "2025-10-17 12:00:00Z")
    ],
    *[
        ("started_time", value)
        for value in ("2025-10-17t12:00:00z", "2025-13-17T12:00:00Z", "2025-10-17T12:00:00+0200")
    ],
]


@pytest.mark.parametrize(("key", "value"), BAD_METADATA)
def test_metadata_of_another_type_is_refused(memory_go: GoClient, key: str, value: Any) -> None:
    cluster = memory_go.create()
    response = memory_go.report(cluster, "dns", metadata={"job_name": "j", key: value})
    problem = declined(response, 400, "VAL-000")
    assert fields_of(problem) == {(f"metadata.{key}", "format")}
    assert problem["detail"].startswith(f"field 'metadata.{key}' must be ")
    assert reported(memory_go, cluster) == {}


def test_metadata_of_the_right_types_is_kept_as_it_is(go: GoClient) -> None:
    cluster = go.create()
    kept = {
        "job_name": "j",
        "job_namespace": "",
        "attempt": -(2**31),
        "started_time": "2025-10-17T12:00:00.123456789+02:00",
        "completed_time": "2025-10-17T12:00:05Z",
        "duration": "5s",
    }
    assert go.report(cluster, "dns", metadata=kept).json()["metadata"] == kept
    nothing = go.report(cluster, "dns", metadata=dict.fromkeys(kept))
    assert (nothing.status_code, "metadata" in nothing.json()) == (201, False), "null is absent"


@pytest.mark.parametrize(("key", "value"), BAD_METADATA)
def test_free_form_metadata_does_not_reach_typed_clients(memory_go: GoClient, key: str, value: Any) -> None:
    cluster = memory_go.create()
    memory_go.fleet.report(cluster, "dns", metadata={"job_namespace": "n", "jobName": "j", key: value})
    shown = reported(memory_go, cluster)["dns"].get("metadata", {})
    converted = {
        ("attempt", "2.0"): 2,
        ("started_time", "2025-10-17 12:00:00Z"): "2025-10-17T12:00:00Z",
        ("completed_time", "2025-10-17 12:00:00Z"): "2025-10-17T12:00:00Z",
        ("started_time", "2025-10-17t12:00:00z"): "2025-10-17T12:00:00Z",
        ("started_time", "2025-10-17T12:00:00+0200"): "2025-10-17T10:00:00Z",
    }
    expected: dict[str, Any] = {"job_namespace": "n"} if key != "job_namespace" else {}
    if (key, str(value)) in converted:
        expected[key] = converted[key, str(value)]
    assert shown == expected
    assert type(shown.get("attempt", 0)) is int


# ── with and without the router ──────────────────────────────────────────────────────────────────────────────────

REPORTS: list[dict[str, Any]] = [
    {},
    {"data": {"zone": "a", "n": 1.5}},
    {"metadata": {}},
    {"metadata": None},
    {"metadata": {"job_name": "j", "attempt": 3, "unknown": [1], "duration": None}},
    {"metadata": {"completed_time": "2025-10-17T12:00:00.5+02:00"}},
    {"conditions": None},
    {"observed_generation": 7},
    {"observed_time": "2025-10-17T11:59:00Z"},
    {"observed_time": "2025-10-17T11:00:00Z"},
    *[{"metadata": {key: value}} for key, value in BAD_METADATA],
]


@pytest.mark.parametrize("change", REPORTS)
def test_the_fast_path_answers_what_the_router_answers(memory_go: GoClient, change: dict[str, Any]) -> None:
    """A query keeps a request from the fast path, and is otherwise ignored."""
    body = {**report_body("dns", "False/JobRunning/Still at it"), **change}
    answers = []
    for name, query in (("fast", ""), ("slow", "?ignored=1")):
        cluster = memory_go.create(name)
        path = path_of(cluster)
        put = memory_go.request("PUT", f"{path}/statuses{query}", json=body)
        read = memory_go.request("GET", f"{path}{query}")
        listed = memory_go.request("GET", f"{path}/statuses{query}")
        ids = (cluster["id"], put.headers["x-request-id"])
        answers.append([_comparable(each, name, *ids) for each in (put, read, listed)])
    assert answers[0] == answers[1]


def _comparable(response: httpx.Response, *unique: str) -> tuple[int, str, dict[str, str]]:
    """Return a response without what is of one request or one cluster."""
    text = response.text
    for each in unique:
        text = text.replace(each, "…")
    headers = {key: value for key, value in response.headers.items() if key not in ("x-request-id", "content-length")}
    return response.status_code, text, headers


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("Job failed", "Job_failed"), ("ExecutionFailed:", "ExecutionFailed"), ("404", "Reason_404"), ("A-b", "A_b")],
)
def test_no_report_is_lost_for_an_odd_reason(memory_go: GoClient, sent: str, kept: str) -> None:
    response = memory_go.report(memory_go.create(), "dns", f"False/{sent}")
    assert (response.status_code, response.json()["conditions"][0]["reason"]) == (201, kept)


def test_whatever_the_body_is_said_to_be(memory_go: GoClient) -> None:
    path = f"{path_of(memory_go.create())}/statuses"
    response = memory_go.request("PUT", path, json=report_body("dns"), headers={"Content-Type": "text/plain"})
    assert response.status_code == 201
    declined(memory_go.request("PUT", path, content=b"{"), 400, "VAL-006")
    declined(memory_go.request("PUT", path, content=b""), 400, "VAL-006")
    declined(memory_go.request("PUT", path, json=[]), 400, "VAL-000")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_of_reports(go: GoClient) -> None:
    cluster = go.create()
    path = f"{path_of(cluster)}/statuses"
    assert go.get(path).json() == {"items": [], "page": 1, "size": 0, "total": 0}
    for adapter in ("dns", "alpha", "validation"):
        go.report(cluster, adapter)
    assert [item["adapter"] for item in go.get(path).json()["items"]] == ["alpha", "dns", "validation"]
    second = go.get(path, page=2, size=2, search="ignored", order="ignored").json()
    assert (second["page"], second["size"], second["total"]) == (2, 1, 3)
    assert second["items"][0]["adapter"] == "validation"
    declined(go.get(path, size=101), 400, "VAL-000")
    declined(go.get("/clusters/nope/statuses"), 404, "NTF-001")


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
def test_reports_are_only_put(memory_go: GoClient, method: str) -> None:
    cluster = memory_go.create()
    response = memory_go.request(method, f"{path_of(cluster)}/statuses")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, PUT")
    assert response.headers["content-type"].startswith("text/plain")


def test_reports_on_node_pools_in_every_place(go: GoClient) -> None:
    cluster, other = go.create(), go.create("other")
    pool = go.create_pool(cluster)
    for place in (path_of(pool), f"/nodepools/{pool['id']}", f"/resources/{pool['id']}"):
        assert go.request("PUT", f"{place}/statuses", json=report_body("dns")).status_code == 201
        assert go.get(f"{place}/statuses").json()["total"] == 1
    wrong = f"/clusters/{other['id']}/nodepools/{pool['id']}/statuses"
    problem = declined(go.request("PUT", wrong, json=report_body("dns")), 404, "NTF-001")
    assert problem["detail"] == f"NodePool with id='{pool['id']}' not found"
    declined(go.get(wrong), 404, "NTF-001")
