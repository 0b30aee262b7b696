"""Making, reading, changing and deleting resources over HTTP, on every store."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.fleet import ROOT, SPEC, Fleet, errors_of, path_of, problem_of
from tests.world import body

# ── creating and reading ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_created_is_answered_and_can_be_read(client: Fleet) -> None:
    created = client.post("/clusters", {"name": "my-cluster", "spec": SPEC, "labels": {"team": "platform"}})
    assert created.status_code == 201
    cluster = created.json()
    assert cluster["id"].startswith("cls-")
    assert cluster["type"] == "Cluster"
    assert cluster["href"] == created.headers["location"] == f"/api/hyperfleet/v1/clusters/{cluster['id']}"
    assert (cluster["name"], cluster["generation"], cluster["spec"]) == ("my-cluster", 1, SPEC)
    assert cluster["metadata"]["labels"] == {"team": "platform"}
    assert cluster["metadata"]["createdAt"] == cluster["metadata"]["updatedAt"]
    assert cluster["metadata"].keys() == {"createdAt", "updatedAt", "labels", "createdBy"}
    assert cluster["metadata"]["createdBy"] == "anonymous"
    assert cluster["status"]["phase"] == "Pending"
    read = client.get(path_of(cluster))
    assert (read.status_code, read.content) == (200, created.content)
    assert read.headers["etag"] == created.headers["etag"]
    assert read.headers["cache-control"] == "no-cache"
    assert "server" not in read.headers


@pytest.mark.parametrize("base", ["/api/hyperfleet/v1", "/v1", "/api/v1"])
def test_a_resource_has_three_addresses_and_one_href(client: Fleet, base: str) -> None:
    cluster = client.create()
    read = client.get(f"{ROOT}{base}/clusters/{cluster['id']}")
    assert read.json() == cluster
    made = client.post(f"{ROOT}{base}/clusters", {"name": "other", "spec": {}})
    assert made.json()["href"].startswith("/api/hyperfleet/v1/clusters/")


def test_node_pools_are_below_their_cluster(client: Fleet) -> None:
    cluster, stranger = client.create("one"), client.create("two")
    pool = client.create_pool(cluster)
    assert pool["type"] == "NodePool"
    assert pool["href"] == f"{cluster['href']}/nodepools/{pool['id']}"
    assert pool["metadata"]["clusterId"] == cluster["id"]
    assert client.get(path_of(pool)).json() == pool
    problem_of(client.get(f"{path_of(stranger)}/nodepools/{pool['id']}"), 404, "NotFound")
    problem_of(client.get(f"/clusters/{pool['id']}"), 404, "NotFound")
    problem_of(client.post("/clusters/cls-nobody/nodepools", {"name": "a", "spec": {}}), 404, "NotFound")


def test_a_head_has_the_headers_of_a_get_and_no_body(client: Fleet) -> None:
    path = path_of(client.create())
    head, get = client.request("HEAD", path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "content-type", "content-length", "cache-control"):
        assert head.headers[name] == get.headers[name]


def test_parts_of_a_resource_can_be_read(client: Fleet) -> None:
    cluster = client.create(labels={"a": "b"})
    whole = client.get(path_of(cluster))
    part = client.get(f"{path_of(cluster)}?fields=name,status.phase&fields=metadata.labels")
    assert part.json() == {
        "id": cluster["id"],
        "name": "my-cluster",
        "status": {"phase": "Pending"},
        "metadata": {"labels": {"a": "b"}},
    }
    assert part.headers["etag"] == whole.headers["etag"], "it names the state, with which a write can be guarded"


def test_no_query_parameter_is_ignored(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    path = path_of(cluster)
    memory_client.report(cluster, "dns")
    requests = [
        *[("GET", each) for each in (path, f"{path}/statuses", f"{path}/statuses/status-{cluster['id']}")],
        *[("GET", each) for each in (f"{path}/statuses/adapters/dns", "/adapters", "/adapters/dns", "/policy")],
        *[("POST", each) for each in ("/clusters", f"{path}/statuses", f"{path}/force-delete", "/statuses:batch")],
        *[("POST", "/policy:reload"), ("PUT", path), ("PATCH", path), ("DELETE", path)],
        *[("PUT", f"{path}/statuses/adapters/dns"), ("DELETE", f"{path}/statuses/adapters/dns")],
    ]
    for method, address in requests:
        for value in ("true", ""):
            answer = memory_client.request(method, f"{address}?dryRun={value}")
            assert errors_of(answer, 400, "InvalidQuery") == {("dryRun", "UnknownParameter")}, (method, address)
    assert memory_client.get(f"{ROOT}/healthz?verbose").status_code == 200, "probes may add what they like"


def test_labels_may_stand_in_the_metadata(client: Fleet) -> None:
    assert client.create(metadata={"labels": {"a": "b"}})["metadata"]["labels"] == {"a": "b"}
    assert client.create("both", labels={"a": "b"}, metadata={"labels": {"a": "b"}})
    response = client.post("/clusters", {"name": "x", "spec": {}, "labels": {}, "metadata": {"labels": {"a": "b"}}})
    assert errors_of(response) == {("/labels", "Contradiction")}


def test_nothing_below_the_spec_is_examined_or_rewritten(client: Fleet) -> None:
    spec = {"snake_case": {"camelCase": 1, "": None}, "list": [1, 2.5, "ü", True], "type": "anything", "~/": {}}
    assert client.create(spec=spec)["spec"] == spec


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"name": None}, {("/name", "WrongType")}, id="a name is a string"),
        pytest.param({"name": "Not-Lower"}, {("/name", "BadFormat")}, id="a name is a DNS label"),
        pytest.param({"name": "-a"}, {("/name", "BadFormat")}, id="it does not begin with -"),
        pytest.param({"name": "a\n"}, {("/name", "BadFormat")}, id="nor ends with a new line"),
        pytest.param({"name": "a" * 64}, {("/name", "TooLong")}, id="a name has at most 63 characters"),
        pytest.param({"spec": []}, {("/spec", "WrongType")}, id="a spec is an object"),
        pytest.param({"kind": "NodePool"}, {("/kind", "NotAllowed")}, id="a cluster is no node pool"),
        pytest.param({"type": 3}, {("/type", "NotAllowed")}, id="a type is a name"),
        pytest.param({"nmae": "x"}, {("/nmae", "UnknownField")}, id="unknown keys are refused"),
        pytest.param({"a/b~": 1}, {("/a~1b~0", "UnknownField")}, id="pointers are escaped"),
        pytest.param({"metadata": 1}, {("/metadata", "WrongType")}, id="metadata is an object"),
        pytest.param({"labels": ["a"]}, {("/labels", "WrongType")}, id="labels are an object"),
        pytest.param({"labels": {"a": 1}}, {("/labels/a", "WrongType")}, id="a label's value is a string"),
        pytest.param({"labels": {"a": None}}, {("/labels/a", "WrongType")}, id="null means something in a patch only"),
        pytest.param({"labels": {"a": "-"}}, {("/labels/a", "BadFormat")}, id="of Kubernetes' syntax"),
        pytest.param({"labels": {"A.com/x": ""}}, {("/labels/A.com~1x", "BadFormat")}, id="a prefix is a DNS name"),
        pytest.param({"labels": {"": "x"}}, {("/labels/", "BadFormat")}, id="a key is not empty"),
        pytest.param({"labels": {"a" * 64: "x"}}, {("/labels/" + "a" * 64, "BadFormat")}, id="nor too long"),
        pytest.param({"labels": {str(n): "" for n in range(65)}}, {("/labels", "TooMany")}, id="64 labels are enough"),
        pytest.param({"spec": {"a": "\0"}}, {("/spec/a", "BadFormat")}, id="NUL is not text"),
        pytest.param({"spec": {"\0": 1}}, {("/spec", "BadFormat")}, id="not in keys either"),
        pytest.param({"spec": {"a": 2**64}}, {("/spec/a", "OutOfRange")}, id="integers have 64 bits"),
    ],
)
def test_a_wrong_body_is_refused(memory_client: Fleet, change: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    response = memory_client.post("/clusters", {"name": "my-cluster", "spec": SPEC, **change})
    assert errors_of(response) == expected


def test_every_error_is_listed_at_once(memory_client: Fleet) -> None:
    response = memory_client.post("/clusters", {"name": "?", "labels": {"?": 1}, "unknown": 1, "type": "x"})
    assert errors_of(response) == {
        ("/unknown", "UnknownField"),
        ("/type", "NotAllowed"),
        ("/name", "BadFormat"),
        ("/spec", "MissingField"),
        ("/labels/?", "BadFormat"),
        ("/labels/?", "WrongType"),
    }
    assert errors_of(memory_client.post("/clusters", [])) == {("", "WrongType")} | {
        ("/name", "MissingField"),
        ("/spec", "MissingField"),
    }


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 0.1, 1e300])
def test_numbers_come_back_as_they_were_sent(client: Fleet, number: float) -> None:
    assert client.create(spec={"number": number})["spec"] == {"number": number}


def test_a_name_is_given_once_among_the_living(client: Fleet) -> None:
    first = client.create()
    assert errors_of(client.post("/clusters", {"name": "my-cluster", "spec": {}}), 409, "NameTaken") == {
        ("/name", "NameTaken")
    }
    client.delete(path_of(first))
    second = client.create()
    assert second["id"] != first["id"]
    client.create_pool(second)
    problem_of(client.post(f"{path_of(second)}/nodepools", {"name": "workers", "spec": {}}), 409, "NameTaken")


def test_a_spec_that_does_not_fit_its_schema_is_refused(client: Fleet) -> None:
    response = client.post("/clusters", {"name": "my-cluster", "spec": {"region": 3}})
    assert errors_of(response, 422, "InvalidSpec") == {("/spec/region", "SchemaMismatch")}
    path = path_of(client.create())
    assert errors_of(client.patch(path, {"spec": {"region": 3}}), 422, "InvalidSpec")
    assert client.get(path).json()["generation"] == 1


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_put_replaces_spec_and_labels(client: Fleet) -> None:
    cluster = client.create(labels={"a": "b"})
    response = client.put(path_of(cluster), {"spec": {"region": "eu"}})
    assert response.status_code == 200
    changed = response.json()
    assert (changed["generation"], changed["spec"], changed["metadata"]["labels"]) == (2, {"region": "eu"}, {})
    assert client.get(path_of(cluster)).json() == changed


def test_what_was_read_can_be_put_back(client: Fleet) -> None:
    cluster = client.create(labels={"a": "b"})
    response = client.put(path_of(cluster), cluster)
    assert (response.status_code, response.json()) == (200, cluster)
    pool = client.create_pool(cluster)
    assert client.put(path_of(pool), pool).json() == pool


def test_a_patch_merges(client: Fleet) -> None:
    cluster = client.create(labels={"a": "b", "c": "d"})
    change = {"spec": {"nodes": {"count": 5, "size": None}}, "labels": {"a": None, "e": "f"}}
    changed = client.patch(path_of(cluster), change).json()
    assert changed["spec"] == {"region": "us-east-1", "nodes": {"count": 5}}
    assert changed["metadata"]["labels"] == {"c": "d", "e": "f"}
    assert changed["generation"] == 2
    again = client.patch(path_of(cluster), change, headers={"Content-Type": "application/merge-patch+json"})
    assert again.json() == changed, "what changes nothing raises no generation"


@pytest.mark.parametrize(
    "patch", [{"labels": None}, {"metadata": {"labels": None}}, {"labels": None, "metadata": {"labels": None}}]
)
def test_null_takes_all_labels_away(client: Fleet, patch: dict[str, Any]) -> None:
    cluster = client.create(labels={"a": "b", "c": "d"})
    changed = client.patch(path_of(cluster), patch).json()
    assert (changed["metadata"]["labels"], changed["generation"]) == ({}, 2)
    assert client.patch(path_of(cluster), patch).json() == changed


def test_null_labels_are_for_patches_only(memory_client: Fleet) -> None:
    path = path_of(memory_client.create(labels={"a": "b"}))
    assert errors_of(memory_client.put(path, {"spec": {}, "labels": None})) == {("/labels", "WrongType")}
    contradiction = {"labels": None, "metadata": {"labels": {"a": "b"}}}
    assert ("/labels", "Contradiction") in errors_of(memory_client.patch(path, contradiction))


def test_an_integer_may_be_written_with_a_point(client: Fleet) -> None:
    path = path_of(client.create())
    assert client.patch(path, {"generation": 1.0, "spec": {"a": 1}}).json()["generation"] == 2
    assert errors_of(client.patch(path, {"generation": 1.5})) == {("/generation", "WrongType")}


def test_what_an_edit_may_not_change(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    assert errors_of(client.patch(path, {"name": "other"})) == {("/name", "Immutable")}
    assert errors_of(client.put(path, {"id": "cls-other", "spec": {}})) == {("/id", "Immutable")}
    assert errors_of(client.patch(path, {"spec": None, "generation": "1"})) == {
        ("/spec", "WrongType"),
        ("/generation", "WrongType"),
    }
    assert errors_of(client.put(path, {})) == {("/spec", "MissingField")}
    assert client.patch(path, {"name": "my-cluster"}).json() == cluster
    problem_of(client.patch("/clusters/cls-nobody", {"name": "other"}), 404, "NotFound")
    problem_of(client.patch("/clusters/cls-nobody", {"spec": {}}), 404, "NotFound")


def test_a_patch_cannot_add_labels_without_end(client: Fleet) -> None:
    path = path_of(client.create(labels={f"a{number}": "" for number in range(40)}))
    response = client.patch(path, {"labels": {f"b{number}": "" for number in range(40)}})
    assert errors_of(response, 422, "InvalidLabels") == {("/labels", "TooMany")}


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deletion_waits_for_adapters_and_cascades(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    deleted = client.delete(path)
    assert deleted.status_code == 202
    assert deleted.json()["status"]["phase"] == "Deleting"
    assert deleted.json()["metadata"]["deletionTimestamp"]
    assert deleted.json()["generation"] == 2
    again = client.delete(path)
    assert (again.status_code, again.content) == (202, deleted.content)
    problem_of(client.patch(path, {"spec": {"a": 1}}), 409, "BeingDeleted")
    same = client.put(path, {"spec": cluster["spec"]})
    assert (same.status_code, same.json()) == (200, deleted.json()), "what changes nothing does no harm"
    problem_of(client.post(f"{path}/nodepools", {"name": "a", "spec": {}}), 409, "ParentBeingDeleted")
    for adapter in ("validation", "dns"):
        answer = client.report(cluster, adapter, "False", generation=2, extra={"Finalized": "True"})
    assert answer["removed"] is True
    problem_of(client.get(path), 404, "NotFound")
    problem_of(client.delete(path), 404, "NotFound")


def test_what_needs_no_cleaning_up_is_gone_at_once(client: Fleet) -> None:
    pool = client.create_pool(client.create())  # the policy requires nothing of node pools
    deleted = client.delete(path_of(pool))
    assert (deleted.status_code, deleted.json()["id"]) == (202, pool["id"])
    assert "etag" not in deleted.headers
    problem_of(client.get(path_of(pool)), 404, "NotFound")


def test_force_needs_a_deletion_and_a_reason(client: Fleet) -> None:
    cluster = client.create()
    path = f"{path_of(cluster)}/force-delete"
    problem_of(client.post(path, {"reason": "the account is gone"}), 409, "NotBeingDeleted")
    client.delete(path_of(cluster))
    assert errors_of(client.post(path, {})) == {("/reason", "MissingField")}
    assert errors_of(client.post(path, {"reason": " "})) == {("/reason", "WrongType")}
    assert errors_of(client.post(path, {"reason": "x" * 1025})) == {("/reason", "WrongType")}
    assert errors_of(client.post(path, {"reason": "x", "force": True})) == {("/force", "UnknownField")}
    forced = client.post(path, {"reason": "the account is gone"})
    assert (forced.status_code, forced.content) == (204, b"")
    problem_of(client.get(path_of(cluster)), 404, "NotFound")
    problem_of(client.post(path, {"reason": "again"}), 404, "NotFound")


# ── idempotency ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_repeated_creation_is_answered_as_the_first(client: Fleet) -> None:
    key = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
    first = client.post("/clusters", {"name": "my-cluster", "spec": SPEC}, headers=key)
    assert "idempotency-replayed" not in first.headers
    client.report(first.json(), "dns")
    again = client.post("/clusters", {"spec": SPEC, "name": "my-cluster"}, headers=key)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    other = client.post("/clusters", {"name": "other", "spec": SPEC}, headers=key)
    problem_of(other, 422, "IdempotencyKeyReused")
    pools = f"{path_of(first.json())}/nodepools"
    assert client.post(pools, {"name": "other", "spec": SPEC}, headers=key).status_code == 201, "a key is per path"


def test_a_creation_without_key_is_not_repeatable(client: Fleet) -> None:
    client.create()
    problem_of(client.post("/clusters", {"name": "my-cluster", "spec": SPEC}), 409, "NameTaken")


@pytest.mark.parametrize("key", ["", " ", "a" * 256, "ü"])
def test_an_idempotency_key_is_short_and_printable(memory_client: Fleet, key: str) -> None:
    response = memory_client.post("/clusters", {"name": "a", "spec": {}}, headers={"Idempotency-Key": key.encode()})
    assert errors_of(response, 400, "InvalidHeader") == {("Idempotency-Key", "BadFormat")}


def test_a_status_moves_with_the_spec(client: Fleet) -> None:
    cluster = client.create()
    for adapter in ("validation", "dns"):
        client.report(cluster, adapter)
    assert client.get(path_of(cluster)).json()["status"]["phase"] == "Ready"
    changed = client.patch(path_of(cluster), {"spec": {"nodes": {"count": 4}}}).json()
    assert changed["status"]["phase"] != "Ready"
    assert {adapter["state"] for adapter in changed["status"]["adapters"]} == {"Outdated"}
    problem_of(client.post(f"{path_of(cluster)}/statuses", body("dns", "True", generation=3)), 409, "GenerationAhead")
