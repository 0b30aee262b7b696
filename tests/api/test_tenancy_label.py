"""Whose a new resource is: its creator's, or that of the tenant whom a label names; and that this never changes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.ports import EVERYTHING, Scope, Store
from hyperfleet.services.callers import Caller
from hyperfleet.services.resources import MAX_LABELS
from hyperfleet.services.tenancy import Tenancy
from tests.api.compat_client import COMPAT
from tests.api.fleet import Fleet, HandClock, errors_of, open_fleet, problem_of
from tests.api.tenants import LABEL, Keys, Voice


class Owner(Keys):
    """An authenticator who takes everybody for somebody with many tenants."""

    def __init__(self, tenants: frozenset[str]) -> None:
        self._caller = Caller("owner", Scope(tenants))

    def recognize(self, token: bytes) -> Caller | None:
        """Know one caller."""
        return self._caller


@pytest.fixture
def labelled(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a server on which a label says whose a resource is."""
    with open_fleet(store, clock, limits, authenticator=Keys(), tenancy=Tenancy(LABEL)) as fleet:
        yield fleet


@pytest.fixture
def unlabelled(clock: HandClock, limits: RequestLimits, store: Store) -> Iterator[Fleet]:
    """Give a server on which a resource is its creator's."""
    with open_fleet(store, clock, limits, authenticator=Keys()) as fleet:
        yield fleet


def create(fleet: Fleet, token: str, path: str = "/clusters", **labels: str) -> Any:
    """Ask for a resource with labels, and return the response."""
    new = {"name": f"c{len(labels)}-{token}", "spec": {}, "labels": labels}
    return Voice(fleet, token).request("POST", path, json=new)


def tenant_of(fleet: Fleet, id_: str, kind: str = "Cluster") -> str:
    """Return whose a resource is, as stored."""
    record = fleet.run(fleet.store.read_record(kind, id_, EVERYTHING))
    assert record is not None
    return str(record.resource.tenant)


# ── by who creates it ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("token", "tenant"), [("red", "red"), ("blue", "blue"), ("all", "")])
def test_a_resource_is_its_creators(unlabelled: Fleet, token: str, tenant: str) -> None:
    made = create(unlabelled, token, **{LABEL: "blue"})
    assert made.status_code == 201, made.text
    assert tenant_of(unlabelled, made.json()["id"]) == tenant, "a label says nothing"
    assert made.json()["metadata"].get("tenant", "") == tenant
    assert made.json()["metadata"]["labels"] == {LABEL: "blue"}


def test_who_has_several_tenants_must_be_told_how_to_choose(unlabelled: Fleet) -> None:
    refused = create(unlabelled, "both")
    assert errors_of(refused, 422, "InvalidLabels") == {("/labels", "Undecided")}
    problem = problem_of(refused, 422, "InvalidLabels")
    assert "blue, red" in problem["detail"]
    assert "tenancy.label" in problem["detail"]


def test_who_has_many_tenants_can_repeat_a_creation(store: Store, clock: HandClock, limits: RequestLimits) -> None:
    tenants = frozenset(sha256(b"%d" % number).hexdigest()[:40] for number in range(500))  # nothing to compress
    new = {"json": {"name": "mine", "spec": {}, "labels": {LABEL: min(tenants)}}, "headers": {"Idempotency-Key": "k"}}
    with open_fleet(store, clock, limits, authenticator=Owner(tenants), tenancy=Tenancy(LABEL)) as fleet:
        made = [Voice(fleet, "owner").must(201, "POST", "/clusters", **new)["id"] for _ in range(2)]
    assert made[0] == made[1]


def test_who_has_no_tenant_creates_nothing(unlabelled: Fleet) -> None:
    problem = problem_of(create(unlabelled, "none"), 403, "Forbidden")
    assert "nemo belongs to no tenant" in problem["detail"]


def test_what_is_below_a_resource_is_whose_that_is(unlabelled: Fleet) -> None:
    cluster = create(unlabelled, "red").json()["id"]
    for token in ("all", "both", "red"):
        pool = create(unlabelled, token, f"/clusters/{cluster}/nodepools")
        assert pool.status_code == 201, pool.text
        assert tenant_of(unlabelled, pool.json()["id"], "NodePool") == "red"
    problem_of(create(unlabelled, "blue", f"/clusters/{cluster}/nodepools"), 404, "NotFound")


# ── by a label ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("token", "labels", "tenant"),
    [
        ("red", {LABEL: "red"}, "red"),
        ("red", {}, "red"),
        ("both", {LABEL: "blue"}, "blue"),
        ("all", {LABEL: "green"}, "green"),
        ("all", {}, ""),
    ],
)
def test_a_label_says_whose_a_resource_is(labelled: Fleet, token: str, labels: dict[str, str], tenant: str) -> None:
    made = create(labelled, token, **labels)
    assert made.status_code == 201, made.text
    assert tenant_of(labelled, made.json()["id"]) == tenant
    assert made.json()["metadata"]["labels"] == ({LABEL: tenant} if tenant else {}), "it is added if left out"


@pytest.mark.parametrize(
    ("token", "labels", "status", "code", "error"),
    [
        ("red", {LABEL: "blue"}, 403, "Forbidden", "NotYourTenant"),
        ("red", {LABEL: "nobody"}, 403, "Forbidden", "NotYourTenant"),
        ("red", {LABEL: ""}, 403, "Forbidden", "NotYourTenant"),
        ("both", {LABEL: "green"}, 403, "Forbidden", "NotYourTenant"),
        ("both", {}, 422, "InvalidLabels", "MissingLabel"),
    ],
)
def test_nobody_creates_for_others(
    labelled: Fleet, token: str, labels: dict[str, str], status: int, code: str, error: str
) -> None:
    refused = create(labelled, token, **labels)
    assert errors_of(refused, status, code) == {(f"/labels/{LABEL}", error)}
    assert LABEL in refused.json()["detail"]
    assert Voice(labelled, "all").must(200, "GET", "/clusters")["items"] == []


def test_a_child_is_labelled_as_its_parent_is(labelled: Fleet) -> None:
    cluster = create(labelled, "red").json()["id"]
    path = f"/clusters/{cluster}/nodepools"
    refused = create(labelled, "both", path, **{LABEL: "blue"})
    assert errors_of(refused, 422, "InvalidLabels") == {(f"/labels/{LABEL}", "Contradiction")}
    made = create(labelled, "both", path)
    assert made.json()["metadata"]["labels"] == {LABEL: "red"}
    assert tenant_of(labelled, made.json()["id"], "NodePool") == "red"


@pytest.mark.parametrize("token", ["red", "both", "all"])
def test_a_resource_never_changes_hands(labelled: Fleet, token: str) -> None:
    voice = Voice(labelled, token)
    id_ = create(labelled, "red", tier="web").json()["id"]
    path = f"/clusters/{id_}"
    for method, content in (
        ("PATCH", {"labels": {LABEL: "blue"}}),
        ("PATCH", {"labels": {LABEL: None}}),
        ("PUT", {"spec": {}, "labels": {LABEL: "blue"}}),
    ):
        refused = voice.request(method, path, json=content)
        assert errors_of(refused, 422, "InvalidLabels") == {(f"/labels/{LABEL}", "Immutable")}, content
    declined = voice.request("PATCH", f"{COMPAT}{path}", json={"labels": {LABEL: "blue"}})
    assert (declined.status_code, declined.json()["errors"][0]["field"]) == (400, f"labels[{LABEL}]")
    assert tenant_of(labelled, id_) == "red"
    assert voice.must(200, "GET", path)["generation"] == 1


def test_a_label_that_is_left_out_stays(labelled: Fleet) -> None:
    red = Voice(labelled, "red")
    path = f"/clusters/{create(labelled, 'red', tier='web').json()['id']}"
    for method, content, labels in (
        ("PUT", {"spec": {}, "labels": {"tier": "db"}}, {"tier": "db"}),
        ("PATCH", {"labels": None}, {}),
        ("PATCH", {"labels": {"tier": "web"}}, {"tier": "web"}),
        ("PUT", {"spec": {}}, {}),
    ):
        assert red.must(200, method, path, json=content)["metadata"]["labels"] == {LABEL: "red", **labels}
    generation = red.must(200, "GET", path)["generation"]
    assert red.must(200, "PUT", path, json={"spec": {}})["generation"] == generation, "nothing changed"


def test_a_label_that_was_never_there_cannot_come(labelled: Fleet) -> None:
    path = f"/clusters/{create(labelled, 'all').json()['id']}"
    refused = Voice(labelled, "all").request("PATCH", path, json={"labels": {LABEL: "red"}})
    assert errors_of(refused, 422, "InvalidLabels") == {(f"/labels/{LABEL}", "Immutable")}


def test_names_are_unique_in_each_tenant(labelled: Fleet) -> None:
    new: dict[str, Any] = {"name": "same", "spec": {}}
    made = {
        tenant: Voice(labelled, "all").must(201, "POST", "/clusters", json={**new, "labels": {LABEL: tenant}})["id"]
        for tenant in ("red", "blue", "green")
    }
    assert len(set(made.values())) == 3
    taken = Voice(labelled, "both").request("POST", "/clusters", json={**new, "labels": {LABEL: "blue"}})
    assert made["blue"] in problem_of(taken, 409, "NameTaken")["errors"][0]["message"]


def test_the_label_that_is_added_counts(labelled: Fleet) -> None:
    labels = {f"l{number}": "x" for number in range(MAX_LABELS)}
    assert errors_of(create(labelled, "red", **labels), 422, "InvalidLabels") == {("/labels", "TooMany")}


def test_the_dialect_creates_in_the_same_way(labelled: Fleet) -> None:
    new = {"kind": "Cluster", "name": "go", "spec": {}, "labels": {}}
    made = Voice(labelled, "red").must(201, "POST", f"{COMPAT}/clusters", json=new)
    assert tenant_of(labelled, made["id"]) == "red"
    assert made["labels"] == {LABEL: "red"}
    refused = Voice(labelled, "red").request("POST", f"{COMPAT}/clusters", json={**new, "labels": {LABEL: "blue"}})
    assert refused.status_code == 403
