"""Resources in the dialect: every endpoint in every place, its answers and its problems, on every store."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import jsonschema
import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import Record, Scope, Store
from tests.api.compat_client import POLICY, GoClient, conditions_of, declined, fields_of, path_of
from tests.api.fleet import ROOT, SPEC, Fleet, HandClock, open_fleet


@pytest.fixture
def go(client: Fleet) -> GoClient:
    return GoClient(client)


@pytest.fixture
def memory_go(memory_client: Fleet) -> GoClient:
    return GoClient(memory_client)


# ── the representation ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_cluster(go: GoClient) -> None:
    cluster = go.create(labels={"env": "prod"}, id="mine", href="/x", nonsense=True)
    assert set(cluster) == {
        "id",
        "kind",
        "name",
        "href",
        "spec",
        "labels",
        "generation",
        "status",
        "created_time",
        "updated_time",
        "created_by",
        "updated_by",
        "tenancy",
    }
    assert cluster["href"] == f"/api/hyperfleet/v1/clusters/{cluster['id']}", "what base addresses are put before"
    assert (cluster["kind"], cluster["generation"], cluster["tenancy"]) == ("Cluster", 1, {})
    assert cluster["id"] != "mine"
    assert (cluster["spec"], cluster["labels"]) == (SPEC, {"env": "prod"})
    assert cluster["created_by"] == cluster["updated_by"] == "anonymous"
    found = conditions_of(cluster)
    assert {name: found[name]["status"] for name in ("Reconciled", "LastKnownReconciled")} == {
        "Reconciled": "False",
        "LastKnownReconciled": "False",
    }
    assert go.read(cluster) == cluster


def test_a_node_pool_names_its_owner(go: GoClient) -> None:
    cluster = go.create()
    pool = go.create_pool(cluster)
    assert pool["href"] == f"{cluster['href']}/nodepools/{pool['id']}"
    assert pool["owner_references"] == {"id": cluster["id"], "kind": "Cluster", "href": cluster["href"]}
    assert "labels" not in pool
    for place in ("/nodepools", "/resources", f"/clusters/{cluster['id']}/nodepools"):
        assert go.get(f"{place}/{pool['id']}").json() == pool


def test_it_is_the_same_resource_as_everywhere(go: GoClient) -> None:
    cluster = go.create()
    ours = go.fleet.get(f"/clusters/{cluster['id']}").json()
    assert (ours["id"], ours["spec"], ours["generation"]) == (cluster["id"], cluster["spec"], 1)


# ── making ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "detail", "fields"),
    [
        ({"name": "abc", "spec": {}}, "kind is required", {("kind", "required")}),
        ({"kind": "NodePool", "name": "abc", "spec": {}}, "kind must be 'Cluster'", {("kind", "enum")}),
        ({"kind": 1, "name": "abc", "spec": {}}, "field 'kind' must be a string", {("kind", "format")}),
        ({"kind": "Cluster", "spec": {}}, "name is required", {("name", "required")}),
        ({"kind": "Cluster", "name": "No", "spec": {}}, "", {("name", "pattern")}),
        ({"kind": "Cluster", "name": "a" * 64, "spec": {}}, "", {("name", "max_length")}),
        ({"kind": "Cluster", "name": 3, "spec": {}}, "", {("name", "format")}),
        ({"kind": "Cluster", "name": "abc"}, "spec is required", {("spec", "required")}),
        ({"kind": "Cluster", "name": "abc", "spec": None}, "spec must be an object", {("spec", "format")}),
        ({"kind": "Cluster", "name": "abc", "spec": {}, "labels": []}, "", {("labels", "format")}),
        (
            {"kind": "Cluster", "name": "abc", "spec": {}, "labels": {"a b": "x"}},
            "label validation failed",
            {("labels", "pattern")},
        ),
        ({"kind": "Cluster", "name": "abc", "spec": {}, "labels": {"a/b": "-"}}, "", {("labels[a/b]", "pattern")}),
        ({"kind": "Cluster", "name": "abc", "spec": {"region": 1}}, "Invalid ClusterSpec", {("spec.region", "")}),
        (
            {"kind": "Cluster", "name": "abc", "spec": {}, "references": {"wif": [{"id": "x"}]}},
            "unknown reference type 'wif'",
            {("references[wif]", "enum")},
        ),
        ({"kind": "Cluster", "name": "abc", "spec": {}, "references": []}, "", {("references", "format")}),
    ],
)
def test_what_a_new_resource_must_be(
    memory_go: GoClient, body: dict[str, Any], detail: str, fields: set[tuple[str, str]]
) -> None:
    problem = declined(memory_go.post("/clusters", body), 400, "VAL-000")
    assert problem["detail"].startswith(detail)
    assert fields_of(problem) == fields


def test_errors_in_labels_show_what_was_sent(memory_go: GoClient) -> None:
    body = {"kind": "Cluster", "name": "abc", "spec": {}, "labels": {"a b": "x", "env": "-", "x" * 400: "ok"}}
    problem = declined(memory_go.post("/clusters", body), 400, "VAL-000")
    assert [(each["field"], each["value"]) for each in problem["errors"]] == [
        ("labels", "a b"),
        ("labels[env]", "-"),
        ("labels", "x" * 80),
    ]


def test_null_labels_are_no_labels(memory_go: GoClient) -> None:
    cluster = memory_go.create(labels=None)
    assert "labels" not in cluster
    labelled = memory_go.create("other", labels={"env": "prod"})
    patched = memory_go.request("PATCH", path_of(labelled), json={"labels": None, "spec": {"a": 1}}).json()
    assert (patched["labels"], patched["generation"]) == ({"env": "prod"}, 2), "absent, so untouched"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "title"),
    [
        (
            "POST",
            "/clusters",
            {"kind": "Cluster", "name": "my-cluster", "spec": {}},
            409,
            "CNF-001",
            "Resource Conflict",
        ),
        ("POST", "{path}/force-delete", {"reason": "x"}, 409, "CNF-003", "State Conflict"),
        ("POST", "/clusters", {}, 400, "VAL-000", "Validation Failed"),
        ("PATCH", "{path}", {}, 400, "VAL-005", "Bad Request"),
        ("PATCH", "{path}", {"name": "x"}, 400, "VAL-006", "Malformed Request"),
        ("GET", "/clusters/nope", None, 404, "NTF-001", "Resource Not Found"),
    ],
)
def test_titles(memory_go: GoClient, method: str, path: str, body: Any, status: int, code: str, title: str) -> None:
    cluster = memory_go.create()
    response = memory_go.request(method, path.format(path=path_of(cluster)), json=body)
    assert declined(response, status, code)["title"] == title


def test_bodies_that_are_not_json(memory_go: GoClient) -> None:
    declined(memory_go.request("POST", "/clusters", content=b""), 400, "VAL-006")
    declined(memory_go.request("POST", "/clusters", content=b'{"kind"'), 400, "VAL-006")


def test_a_name_is_taken_until_its_owner_is_deleted(go: GoClient) -> None:
    first = go.create()
    problem = declined(go.post("/clusters", {"kind": "Cluster", "name": "my-cluster", "spec": {}}), 409, "CNF-001")
    assert problem["detail"] == "This Cluster already exists"
    go.request("DELETE", path_of(first))
    second = go.create()
    assert (second["generation"], second["id"] != first["id"]) == (1, True)


def test_children_are_made_below_their_parent_only(go: GoClient) -> None:
    cluster = go.create()
    body = {"kind": "NodePool", "name": "workers", "spec": {}}
    declined(go.post("/nodepools", body), 422, "VAL-000")
    declined(go.post("/resources", body), 422, "VAL-000")
    problem = declined(go.post("/clusters/nope/nodepools", body), 404, "NTF-001")
    assert problem["detail"] == "Cluster with id='nope' not found"
    go.request("DELETE", path_of(cluster))
    problem = declined(go.post(f"{path_of(cluster)}/nodepools", body), 409, "CNF-003")
    assert problem["detail"] == f"Cluster '{cluster['id']}' is marked for deletion"


def test_resources_of_every_kind_in_one_place(go: GoClient) -> None:
    made = go.post("/resources", {"kind": "Cluster", "name": "any", "spec": {}})
    assert made.status_code == 201
    path = f"/resources/{made.json()['id']}"
    assert go.get(path).json() == made.json()
    assert go.request("PATCH", path, json={"spec": {"a": 1}}).json()["generation"] == 2
    declined(go.post("/resources", {"kind": "Planet", "name": "any", "spec": {}}), 400, "VAL-000")
    assert declined(go.get("/resources/nope"), 404, "NTF-001")["detail"] == "Resource with id='nope' not found"
    assert go.request("DELETE", path).status_code == 202
    assert go.post(f"{path}/force-delete", {"reason": "test"}).status_code == 204
    declined(go.get(path), 404, "NTF-001")


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_patch_replaces_what_it_names(go: GoClient) -> None:
    cluster = go.create(labels={"env": "prod", "tier": "web"})
    patched = go.request("PATCH", path_of(cluster), json={"labels": {"env": "test"}}).json()
    assert (patched["labels"], patched["spec"], patched["generation"]) == ({"env": "test"}, SPEC, 2)
    patched = go.request("PATCH", path_of(cluster), json={"spec": {"a": 1}}).json()
    assert (patched["labels"], patched["spec"], patched["generation"]) == ({"env": "test"}, {"a": 1}, 3)
    assert conditions_of(patched)["Reconciled"]["observed_generation"] == 3
    same = go.request("PATCH", path_of(cluster), json={"spec": {"a": 1}, "references": {}})
    assert (same.status_code, same.json()) == (200, patched), "nothing changed, nothing moves"
    cleared = go.request("PATCH", path_of(cluster), json={"labels": {}}).json()
    assert ("labels" in cleared, cleared["generation"]) == (False, 4)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "VAL-005"),
        ({"labels": None}, "VAL-005"),
        ({"labels": None, "references": None}, "VAL-005"),
        ({"name": "other"}, "VAL-006"),
        ({"spec": {}, "nonsense": 1}, "VAL-006"),
        ({"spec": None}, "VAL-000"),
        ({"spec": []}, "VAL-000"),
        ({"spec": {"region": 1}}, "VAL-000"),
        ({"labels": {"env": None}}, "VAL-000"),
        ({"labels": {"env": 1}}, "VAL-000"),
        ({"references": {"wif": []}}, "VAL-000"),
    ],
)
def test_what_a_patch_must_be(memory_go: GoClient, body: dict[str, Any], code: str) -> None:
    cluster = memory_go.create()
    declined(memory_go.request("PATCH", path_of(cluster), json=body), 400, code)
    assert memory_go.read(cluster) == cluster


def test_what_is_deleted_can_no_longer_change(go: GoClient) -> None:
    cluster = go.create()
    go.request("DELETE", path_of(cluster))
    for spec in ({"a": 1}, SPEC):
        problem = declined(go.request("PATCH", path_of(cluster), json={"spec": spec}), 409, "CNF-003")
        assert problem["detail"] == f"Cluster '{cluster['id']}' is marked for deletion"


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_deletion_waits_for_adapters_and_children(store: Store, clock: HandClock, limits: RequestLimits) -> None:
    with open_fleet(store, clock, limits, POLICY) as fleet:
        go = GoClient(fleet)
        cluster = go.create()
        pool = go.create_pool(cluster)
        go.report(pool, "validation")
        deleted = go.request("DELETE", path_of(cluster))
        assert deleted.status_code == 202
        body = deleted.json()
        assert (body["generation"], body["deleted_by"]) == (2, "system@hyperfleet.local")
        assert body["deleted_time"] == body["updated_time"]
        assert conditions_of(body)["Reconciled"]["reason"] == "ReconciledMissingAdapters"
        again = go.request("DELETE", path_of(cluster)).json()
        assert (again["deleted_time"], again["generation"]) == (body["deleted_time"], 2)
        assert "deleted_time" in go.read(pool), "the deletion cascades"
        for adapter in ("dns", "validation"):
            assert finalize(go, cluster, adapter).status_code == 201
        waiting = conditions_of(go.read(cluster))["Reconciled"]
        assert (waiting["status"], waiting["reason"]) == ("False", "ReconciledWaitingForChildren")
        last = finalize(go, pool, "validation", "Unknown")
        assert (last.status_code, last.json()["adapter"]) == (201, "validation"), "Unknown does not hold a deletion up"
        declined(go.get(path_of(pool)), 404, "NTF-001")
        declined(go.get(path_of(cluster)), 404, "NTF-001")


def test_what_nobody_must_clean_up_goes_at_once(go: GoClient) -> None:
    pool = go.create_pool(go.create())
    assert pool["status"] == {"conditions": []}, "nor has it conditions"
    assert go.request("DELETE", path_of(pool)).status_code == 202
    declined(go.get(path_of(pool)), 404, "NTF-001")


def finalize(go: GoClient, resource: dict[str, Any], adapter: str, available: str = "True") -> httpx.Response:
    return go.report(resource, adapter, available, generation=2, extra={"Finalized": "True"})


def test_force_delete(go: GoClient) -> None:
    cluster = go.create()
    pool = go.create_pool(cluster)
    path = f"{path_of(cluster)}/force-delete"
    problem = declined(go.post(path, {"reason": "stuck"}), 409, "CNF-003")
    assert problem["detail"] == f"Cluster '{cluster['id']}' is not marked for deletion"
    go.request("DELETE", path_of(cluster))
    response = go.post(path, {"reason": "stuck"})
    assert (response.status_code, response.content) == (204, b"")
    declined(go.get(path_of(pool)), 404, "NTF-001")
    declined(go.post(path, {"reason": "stuck"}), 404, "NTF-001")


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": 1}, {"reason": " "}, {"reason": "x" * 1025}])
def test_force_needs_a_reason(memory_go: GoClient, body: dict[str, Any]) -> None:
    cluster = memory_go.create()
    memory_go.request("DELETE", path_of(cluster))
    problem = declined(memory_go.post(f"{path_of(cluster)}/force-delete", body), 400, "VAL-000")
    assert problem["errors"][0]["field"] == "reason"


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_below_a_parent_both_are_looked_for(go: GoClient) -> None:
    cluster, other = go.create(), go.create("other")
    pool = go.create_pool(cluster)
    ways: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("PATCH", "", {"spec": {}}),
        ("DELETE", "", None),
        ("POST", "/force-delete", {"reason": "x"}),
    ]
    for method, rest, body in ways:
        for parent, missing in ((other["id"], f"NodePool with id='{pool['id']}'"), ("nope", "Cluster with id='nope'")):
            path = f"/clusters/{parent}/nodepools/{pool['id']}{rest}"
            problem = declined(go.request(method, path, json=body), 404, "NTF-001")
            assert problem["detail"] == f"{missing} not found"


def test_paths_that_lead_nowhere(memory_go: GoClient) -> None:
    for path in ("/planets", "/clusters/x/planets", ""):
        problem = declined(memory_go.get(path), 404, "NTF-000")
        assert problem["title"] == "Endpoint Not Found"
    declined(memory_go.get("/clusters/a b"), 404, "NTF-001")


def test_one_slash_at_the_end_does_no_harm(memory_go: GoClient) -> None:
    cluster = memory_go.create()
    assert memory_go.get(f"{path_of(cluster)}/").json() == cluster
    assert memory_go.get("/clusters/").json()["total"] == 1
    declined(memory_go.get("/clusters//"), 404, "NTF-000")


def test_methods_that_are_not_there(memory_go: GoClient) -> None:
    cluster = memory_go.create()
    response = memory_go.request("PUT", path_of(cluster), json={})
    assert (response.status_code, response.headers["allow"]) == (405, "DELETE, GET, HEAD, PATCH")
    head = memory_go.request("HEAD", path_of(cluster))
    assert (head.status_code, head.content) == (200, b"")


def test_what_this_is(memory_go: GoClient) -> None:
    described = memory_go.fleet.get(f"{ROOT}/compat/api/hyperfleet").json()
    assert (described["id"], described["kind"], described["href"]) == ("hyperfleet", "API", "/api/hyperfleet")
    assert set(described) == {"id", "href", "kind", "version", "build_time"}


def test_what_it_can_do(memory_go: GoClient) -> None:
    document = memory_go.get("/openapi").json()
    cluster = memory_go.create()
    shown = {
        "ResourceShape": memory_go.create_pool(cluster),
        "AdapterStatus": memory_go.report(cluster, "dns").json(),
        "ErrorBody": memory_go.get("/clusters", size=0).json(),
    }
    for name, value in shown.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(value)
    paths = {path.removeprefix("/api/hyperfleet/v1"): set(operations) for path, operations in document["paths"].items()}
    places = ("/clusters", "/nodepools", "/clusters/{parent_id}/nodepools", "/resources")
    for place in places:
        assert paths.pop(place) == {"get", "post"}
        assert paths.pop(f"{place}/{{id}}") == {"get", "patch", "delete"}
        assert paths.pop(f"{place}/{{id}}/force-delete") == {"post"}
        assert paths.pop(f"{place}/{{id}}/statuses") == {"get", "put"}
    assert paths == {}
    page = memory_go.get("/openapi.html")
    assert page.headers["content-type"].startswith("text/html")
    assert page.text.count("<li>") == 8 * len(places)


def test_a_body_that_is_too_large(memory_go: GoClient) -> None:
    response = memory_go.request("POST", "/clusters", content=b" " * (memory_go.fleet.limits.body_bytes + 1))
    declined(response, 413, "VAL-006")


class _FailingStore(MemoryStore):
    """A store whose reads fail."""

    def __init__(self, clock: HandClock, failure: Exception) -> None:
        super().__init__(clock)
        self._failure = failure

    async def read_record(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> Record | None:
        raise self._failure


def ask_failing(clock: HandClock, failure: Exception) -> httpx.Response:
    """Return the answer when the store fails so."""
    with open_fleet(_FailingStore(clock, failure), clock, RequestLimits()) as fleet:
        return GoClient(fleet).get("/clusters/cls-1")


def test_a_store_that_is_away(clock: HandClock) -> None:
    response = ask_failing(clock, StoreUnavailable("connection refused by 10.0.0.1"))
    problem = declined(response, 503, "SVC-001")
    assert "10.0.0.1" not in response.text
    assert problem["title"] == "Service Unavailable"
    assert response.headers["retry-after"]


def test_a_fault_of_ours_tells_nothing_but_its_id(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    response = ask_failing(clock, ValueError("a secret"))
    problem = declined(response, 500, "INT-001")
    assert problem["type"].endswith("/internal-error")
    assert problem["title"] == "Internal Server Error"
    assert "secret" not in response.text
    assert "a secret" in caplog.text
    assert problem["trace_id"] in caplog.text


def test_what_takes_too_long(clock: HandClock) -> None:
    class SlowStore(MemoryStore):
        """A store that does not answer."""

        async def read_record(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> Record | None:
            await asyncio.sleep(60)
            return None

    with open_fleet(SlowStore(clock), clock, RequestLimits(time=timedelta(milliseconds=50))) as fleet:
        response = GoClient(fleet).get("/clusters/cls-1")
    declined(response, 503, "SVC-001")
    assert response.headers["retry-after"]
