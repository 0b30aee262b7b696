"""Reporting over HTTP, in every way there is, and reading what was reported; on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from tests.api.fleet import QUEUE, Fleet, HandClock, errors_of, open_fleet, path_of, problem_of
from tests.world import body


def snake(adapter: str, available: str = "True", generation: int = 1, **more: Any) -> dict[str, Any]:
    """Write a report in the contract's spelling."""
    fields = body(adapter, available, **more)
    del fields["observedGeneration"]
    return {**fields, "observed_generation": generation, "observed_time": "2025-10-17T11:59:00Z"}


# ── the guide's way: GET, then POST or PATCH ─────────────────────────────────────────────────────────────────────


def test_the_guides_way(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"
    problem_of(client.get(path), 404, "NotFound")
    made = client.post(path, {"adapterStatuses": [body("validation", "False/JobRunning", lastUpdated="ignored")]})
    assert made.status_code == 201
    status = made.json()
    assert status["id"] == f"status-{cluster['id']}"
    assert status["type"] == "clusterStatus"
    assert status["href"] == f"{cluster['href']}/statuses"
    assert status["clusterId"] == cluster["id"]
    assert (status["phase"], status["outcome"]) == ("Provisioning", "aggregated")
    read = client.get(path).json()
    assert read == {key: status[key] for key in read}
    patched = client.patch(f"{path}/{read['id']}", body("validation", "True/JobSucceeded", data={"zone": True}))
    assert patched.status_code == 200
    [entry] = patched.json()["adapterStatuses"]
    assert entry["data"] == {"zone": True}
    assert "metadata" not in entry
    assert entry["conditions"][0]["reason"] == "JobSucceeded"
    again = client.post(path, {"adapterStatuses": [body("dns", "True")]})
    assert (again.status_code, again.json()["phase"]) == (200, "Ready")
    assert [entry["adapter"] for entry in again.json()["adapterStatuses"]] == ["dns", "validation"]


def test_a_patch_needs_a_status_of_this_very_resource(client: Fleet) -> None:
    cluster, other = client.create("one"), client.create("two")
    client.report(other, "dns")
    path = f"{path_of(cluster)}/statuses"
    report = body("dns", "True")
    problem_of(client.patch(f"{path}/status-{cluster['id']}", report), 404, "NotFound")
    client.report(cluster, "dns")
    problem_of(client.patch(f"{path}/status-{other['id']}", report), 404, "NotFound")
    problem_of(client.patch(f"{path}/nonsense", report), 404, "NotFound")
    assert client.patch(f"{path}/status-{cluster['id']}-gen1", report).status_code == 200


def test_several_adapters_are_one_write(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"
    answer = client.post(path, {"adapterStatuses": [body("dns", "True"), body("validation", "Unknown")]})
    assert answer.status_code == 201
    assert answer.headers["location"] == answer.json()["href"]
    outcomes = answer.json()["outcomes"]
    assert [(each["adapter"], each["outcome"]) for each in outcomes] == [
        ("dns", "aggregated"),
        ("validation", "stored"),
    ]
    assert "outcome" not in answer.json()
    mixed = client.post(path, {"adapterStatuses": [body("dns", "False"), body("validation", "True", generation=2)]})
    assert errors_of(mixed, 409, "GenerationAhead") == {("/adapterStatuses/1/observedGeneration", "GenerationAhead")}
    [dns, _] = client.get(path).json()["adapterStatuses"]
    assert dns["conditions"][0]["status"] == "True", "all or none"


def test_what_was_read_may_be_sent_back(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns")
    path = f"{path_of(cluster)}/statuses"
    assert client.post(path, client.get(path).json()).status_code == 200


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param({"adapterStatuses": []}, {("/adapterStatuses", "WrongType")}, id="none is not enough"),
        pytest.param({"adapterStatuses": {}}, {("/adapterStatuses", "WrongType")}, id="they are a list"),
        pytest.param({"adapterStatuses": [1]}, {("/adapterStatuses/0", "WrongType")}, id="of objects"),
        pytest.param(
            {"adapterStatuses": [body("dns", "True"), body("dns", "False")]},
            {("/adapterStatuses/1/adapter", "DuplicateAdapter")},
            id="an adapter speaks once",
        ),
        pytest.param(
            {"adapterStatuses": [body("dns", "Maybe"), body("?", "True")]},
            {("/adapterStatuses/0/conditions/0/status", "NotAllowed"), ("/adapterStatuses/1/adapter", "BadFormat")},
            id="every error of every report is told",
        ),
        pytest.param(
            {"adapterStatuses": [body("dns", "True")], "adapter": "x"}, {("/adapter", "UnknownField")}, id="one or many"
        ),
        pytest.param(
            {"adapterStatuses": [snake("dns")]}, {("/adapterStatuses/0", "MixedSpelling")}, id="one spelling around"
        ),
        pytest.param(
            {"adapter_statuses": [snake("dns"), body("validation", "True")]},
            {("/adapter_statuses/1", "MixedSpelling")},
            id="and one in all reports",
        ),
        pytest.param([], {("", "WrongType")}, id="a body is an object"),
        pytest.param(
            {"adapter": "dns", "observedGeneration": 0, "conditions": []},
            {("/observedGeneration", "OutOfRange"), ("/conditions", "MissingCondition")},
            id="a report has a generation and conditions",
        ),
    ],
)
def test_a_wrong_body_is_refused(memory_client: Fleet, content: Any, expected: set[tuple[str, str]]) -> None:
    cluster = memory_client.create()
    assert errors_of(memory_client.post(f"{path_of(cluster)}/statuses", content)) == expected
    problem_of(memory_client.get(f"{path_of(cluster)}/statuses"), 404, "NotFound")


# ── the contract's way: always POST ──────────────────────────────────────────────────────────────────────────────


def test_the_contracts_way(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"
    for adapter in ("validation", "dns"):
        answer = client.post(path, snake(adapter, metadata={"job_name": "a"}))
        assert (answer.status_code, answer.json()["outcome"]) == (200, "aggregated")
    [entry, _] = client.get(path).json()["adapterStatuses"]
    assert entry["metadata"] == {"job_name": "a"}, "nothing below metadata is rewritten"
    assert entry["lastUpdated"] == "2025-10-17T11:59:00Z"
    assert client.get(path_of(cluster)).json()["status"]["phase"] == "Ready"
    bundle = client.post(path, {"adapter_statuses": [snake("dns", data={"a": 1})]})
    assert bundle.status_code == 200


def test_a_discard_is_an_answer(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns", observedTime="2025-10-17T11:00:00Z")
    late = client.report(cluster, "dns", "False", observedTime="2025-10-17T10:00:00Z")
    assert (late["outcome"], late["reason"]) == ("discarded", "OutOfOrder")
    unknown = client.report(cluster, "dns", "Unknown")
    assert (unknown["outcome"], unknown["reason"]) == ("discarded", "UnknownAfterFirst")
    client.patch(path_of(cluster), {"labels": {"a": "b"}})
    client.report(cluster, "dns", generation=2)
    stale = client.report(cluster, "dns", generation=1)
    assert (stale["outcome"], stale["reason"]) == ("discarded", "StaleGeneration")
    assert stale["outcomes"][0]["reason"] == "StaleGeneration"


def test_a_discarded_report_has_no_id(client: Fleet) -> None:
    cluster = client.create()
    stored = client.report(cluster, "dns")["outcomes"][0]
    assert "storedReportId" not in stored
    discarded = client.report(cluster, "dns", "Unknown")["outcomes"][0]
    assert "reportId" not in discarded
    assert discarded["storedReportId"] == stored["reportId"]


def test_errors_are_told_in_the_spelling_of_the_body(client: Fleet) -> None:
    path = f"{path_of(client.create())}/statuses"
    ahead = [snake("dns", generation=9), {**snake("dns", generation=9), "colour": "blue"}]  # the short and the long way
    for report in ahead:
        assert errors_of(client.post(path, report), 409, "GenerationAhead") == {
            ("/observed_generation", "GenerationAhead")
        }
    (error,) = client.post(path, snake("dns", generation=0)).json()["errors"]
    assert (error["pointer"], error["message"]) == (
        "/observed_generation",
        "observed_generation must be at least 1, not 0",
    )
    missing = {key: value for key, value in snake("dns").items() if key != "observed_generation"}
    (error,) = client.post(path, missing).json()["errors"]
    assert (error["pointer"], error["message"]) == ("/observed_generation", "observed_generation is required")
    (error,) = client.post(path, {**snake("dns"), "observed_time": "noon"}).json()["errors"]
    assert error["message"].startswith("observed_time must be")


def test_a_generation_may_be_written_with_a_point(client: Fleet) -> None:
    path = f"{path_of(client.create())}/statuses"
    assert client.post(path, {**body("dns", "True"), "observedGeneration": 1.0}).json()["outcome"] == "aggregated"
    half = client.post(path, {**body("dns", "True"), "observedGeneration": 1.5})
    assert errors_of(half) == {("/observedGeneration", "WrongType")}
    endless = client.post(path, {**body("dns", "True"), "observedGeneration": 1e300})
    assert errors_of(endless) == {("/observedGeneration", "OutOfRange")}


def test_a_replay_changes_nothing(client: Fleet) -> None:
    cluster = client.create()
    first = client.report(cluster, "dns", observedTime="2025-10-17T11:00:00Z")
    tag = client.get(path_of(cluster)).headers["etag"]
    again = client.report(cluster, "dns", observedTime="2025-10-17T11:00:00Z")
    assert again["outcomes"][0]["replayed"] is True
    assert again["outcomes"][0]["reportId"] == first["outcomes"][0]["reportId"]
    assert again["phase"] == first["phase"]
    assert client.get(path_of(cluster)).headers["etag"] == tag


def test_notes_tell_what_is_likely_not_meant(client: Fleet) -> None:
    cluster = client.create()
    answer = client.report(cluster, "dns", extra={"NotReady": "True"}, unknown=1)
    notes = {(note["pointer"], note["code"]) for note in answer["outcomes"][0]["notes"]}
    assert notes == {("/conditions/3/type", "NegativeType"), ("/unknown", "UnknownField")}


BRIEF = {"outcome", "phase", "outcomes"}


def test_a_single_report_is_answered_with_what_became_of_it(client: Fleet) -> None:
    path = f"{path_of(client.create())}/statuses"
    for answer in (client.post(path, body("dns", "True")), client.put(f"{path}/adapters/dns", body("dns", "True"))):
        assert answer.json().keys() == BRIEF
        assert "preference-applied" not in answer.headers
    full = client.post(path, body("dns", "True"), headers={"Prefer": "return=representation"})
    assert full.headers["preference-applied"] == "return=representation"
    assert "adapterStatuses" in full.json()


def test_the_guides_ways_are_answered_with_the_status_object(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"
    bundle = {"adapterStatuses": [body("dns", "True")]}
    patch = f"{path}/status-{cluster['id']}"
    for answer in (client.post(path, bundle), client.patch(patch, body("dns", "True"))):
        assert answer.json().keys() > {"id", "type", "href", "adapterStatuses", "lastUpdated", *BRIEF}
    prefer = {"Prefer": 'respond-async, return=minimal; foo="bar"'}
    for answer in (client.post(path, bundle, headers=prefer), client.patch(patch, body("dns", "True"), headers=prefer)):
        assert answer.headers["preference-applied"] == "return=minimal"
        assert answer.json().keys() == BRIEF


def test_a_report_on_what_is_not_there_is_not_found(client: Fleet) -> None:
    pool = client.create_pool(client.create())
    problem_of(client.post("/clusters/cls-nobody/statuses", body("dns", "True")), 404, "NotFound")
    problem_of(client.post(f"/clusters/{pool['id']}/statuses", body("dns", "True")), 404, "NotFound")
    problem_of(client.get("/clusters/cls-nobody/statuses"), 404, "NotFound")


def test_a_transition_time_moves_with_the_status_only(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"

    def available() -> dict[str, Any]:
        conditions = client.get(path).json()["adapterStatuses"][0]["conditions"]
        [found] = [condition for condition in conditions if condition["type"] == "Available"]
        return dict(found)

    client.report(cluster, "dns", "False/Running")
    first = available()
    client.clock.pass_time(timedelta(minutes=1))
    client.report(cluster, "dns", "False/StillRunning")
    assert available() == {**first, "reason": "StillRunning"}
    client.report(cluster, "dns", "True")
    assert available()["lastTransitionTime"] > first["lastTransitionTime"]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_reported_at_a_generation(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"
    client.report(cluster, "dns", "False/First")
    client.report(cluster, "validation")
    client.patch(path_of(cluster), {"labels": {"a": "b"}})
    client.report(cluster, "dns", "True/Second", generation=2)
    old = client.get(path, params={"generation": 1}).json()
    assert old["id"] == f"status-{cluster['id']}-gen1"
    assert old["href"] == f"{cluster['href']}/statuses/{old['id']}"
    assert old["generation"] == 1
    reasons = {entry["adapter"]: entry["conditions"][0]["reason"] for entry in old["adapterStatuses"]}
    assert reasons == {"dns": "First", "validation": ""}
    new = client.get(path, params={"generation": 2}).json()
    assert [entry["conditions"][0]["reason"] for entry in new["adapterStatuses"]] == ["Second"]
    assert client.get(f"{path}/{old['id']}").json() == old
    assert client.get(f"{path}/status-{cluster['id']}").json() == client.get(path).json()
    problem_of(client.get(path, params={"generation": 3}), 404, "NotFound")
    problem_of(client.get(f"{path}/status-{cluster['id']}-gen0"), 404, "NotFound")


@pytest.mark.parametrize("value", ["0", "x", "-1", "1.0", "9" * 30, "", "²"])
def test_a_generation_is_a_number_from_1(memory_client: Fleet, value: str) -> None:
    cluster = memory_client.create()
    response = memory_client.get(f"{path_of(cluster)}/statuses", params={"generation": value})
    assert errors_of(response, 400, "InvalidQuery") == {("generation", "BadFormat")}


def test_unknown_parameters_are_refused(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    response = memory_client.get(f"{path_of(cluster)}/statuses?generation=1&generation=2&adapter=dns")
    assert errors_of(response, 400, "InvalidQuery") == {("generation", "BadFormat"), ("adapter", "UnknownParameter")}


# ── one adapter ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_adapter_has_a_path_of_its_own(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses/adapters/dns"
    problem_of(client.get(path), 404, "NotFound")
    report = body("dns", "True")
    del report["adapter"]
    assert client.put(path, report).json()["outcome"] == "aggregated"
    assert client.put(path, body("dns", "False")).status_code == 200
    assert errors_of(client.put(path, body("other", "True"))) == {("/adapter", "Contradiction")}
    assert errors_of(client.put(path, [])) == {("", "WrongType")}
    read = client.get(path).json()
    assert (read["adapter"], read["conditions"][0]["status"]) == ("dns", "False")
    problem_of(client.get(f"{path_of(cluster)}/statuses/adapters/other"), 404, "NotFound")


def test_a_retired_adapter_is_not_told_of_at_the_present_generation(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/statuses"
    client.report(cluster, "dns")
    client.report(cluster, "validation")
    client.delete(f"{path}/adapters/dns")
    told = client.get(path, params={"generation": 1}).json()["adapterStatuses"]
    assert [entry["adapter"] for entry in told] == ["validation"]


def test_an_adapter_that_is_retired_is_forgotten(client: Fleet) -> None:
    cluster = client.create()
    for adapter in ("validation", "dns"):
        client.report(cluster, adapter)
    path = f"{path_of(cluster)}/statuses/adapters/dns"
    retired = client.delete(path)
    assert (retired.status_code, retired.content) == (204, b"")
    status = client.get(path_of(cluster)).json()["status"]
    assert status["phase"] != "Ready"
    assert [adapter["name"] for adapter in status["adapters"]] == ["validation"]
    problem_of(client.get(path), 404, "NotFound")
    problem_of(client.delete(path), 404, "NotFound")
    client.delete(path.replace("dns", "validation"))
    problem_of(client.get(f"{path_of(cluster)}/statuses"), 404, "NotFound")


# ── node pools and batches ───────────────────────────────────────────────────────────────────────────────────────


def test_node_pools_have_the_same_below_them(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    reported = client.post(f"{path_of(pool)}/statuses", {"adapterStatuses": [body("machines", "True")]})
    status = reported.json()
    assert status["id"] == f"status-{pool['id']}"
    assert status["type"] == "nodePoolStatus"
    assert (status["clusterId"], status["nodePoolId"]) == (cluster["id"], pool["id"])
    assert status["href"] == f"{pool['href']}/statuses"
    assert client.get(f"{path_of(pool)}/statuses").json()["adapterStatuses"] == status["adapterStatuses"]
    problem_of(client.get(f"{path_of(cluster)}/statuses"), 404, "NotFound")


def test_a_batch_is_many_requests_in_one(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    reports: list[Any] = [
        {"clusterId": cluster["id"], **body("dns", "True")},
        {"nodePoolId": pool["id"], **body("dns", "True")},
        {"cluster_id": cluster["id"], "node_pool_id": pool["id"], **snake("validation")},
        {"clusterId": cluster["id"], **body("dns", "Unknown")},
        {"clusterId": "cls-nobody", **body("dns", "True")},
        {"clusterId": cluster["id"], **body("dns", "True", generation=9)},
        {"clusterId": "cls-nobody", "nodePoolId": pool["id"], **body("dns", "True")},
        body("dns", "True"),
        {"clusterId": cluster["id"], **snake("dns")},
        {"clusterId": 3, **body("dns", "True")},
        {"clusterId": cluster["id"], "adapter": "dns"},
        {"clusterId": "\u00fc/..", **body("dns", "True")},
        "nonsense",
    ]
    response = client.post("/statuses:batch", {"reports": reports})
    assert response.status_code == 200
    answer = response.json()
    assert [result["index"] for result in answer["results"]] == list(range(len(reports)))
    assert [result["status"] for result in answer["results"]] == [
        *(200, 200, 200, 200, 404, 409, 404, 400, 400, 400, 400, 404, 400)
    ]
    assert (answer["accepted"], answer["refused"]) == (4, 9)
    first, discarded = answer["results"][0], answer["results"][3]
    assert first == {
        "index": 0,
        "status": 200,
        "adapter": "dns",
        "outcome": "aggregated",
        "reportId": first["reportId"],
        "phase": "Provisioning",
    }
    assert (discarded["reason"], discarded["storedReportId"]) == ("UnknownAfterFirst", first["reportId"])
    assert answer["results"][5]["problem"]["errors"][0]["pointer"] == "/reports/5/observedGeneration"
    codes = {error["code"] for index in (7, 8, 9) for error in answer["results"][index]["problem"]["errors"]}
    assert codes == {"MissingField", "MixedSpelling", "WrongType"}
    assert len(client.get(f"{path_of(pool)}/statuses").json()["adapterStatuses"]) == 2


def test_a_batch_says_of_a_report_what_it_would_have_been_told_alone(client: Fleet) -> None:
    cluster = client.create()
    odd = body("dns", "True", observedTime="2025-10-17T11:00:00Z", colour="blue")
    (alone,) = client.report(cluster, "dns", observedTime="2025-10-17T11:00:00Z", colour="blue")["outcomes"]
    answer = client.post("/statuses:batch", {"reports": [{"clusterId": cluster["id"], **odd}]}).json()
    (note,) = alone["notes"]
    assert answer["results"] == [
        {
            "index": 0,
            "status": 200,
            **alone,
            "replayed": True,
            "notes": [{**note, "pointer": "/reports/0/colour"}],
            "phase": "Provisioning",
        }
    ]


@pytest.mark.parametrize("content", [[], {}, {"reports": 1}, {"reports": []}, {"reports": [1], "more": 1}])
def test_a_batch_is_a_list_of_reports(memory_client: Fleet, content: Any) -> None:
    assert errors_of(memory_client.post("/statuses:batch", content))


def test_a_batch_larger_than_the_queue_is_refused_whole(clock: HandClock) -> None:
    with open_fleet(MemoryStore(clock), clock, RequestLimits(batch=QUEUE + 1)) as fleet:
        cluster = fleet.create()
        report = {"clusterId": cluster["id"], **body("dns", "True")}
        response = fleet.post("/statuses:batch", {"reports": [report] * (QUEUE + 1)})
        problem_of(response, 503, "Overloaded")
        assert response.headers["retry-after"]
        problem_of(fleet.get(f"{path_of(cluster)}/statuses"), 404, "NotFound")
