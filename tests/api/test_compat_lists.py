"""Lists in the dialect: envelope, pages, order, fields and every construct of `search`, on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.api.compat import listing
from hyperfleet.api.compat.search import compile_search
from hyperfleet.api.compat.wildcards import matches
from tests.api.compat_client import GoClient, declined, fields_of, path_of
from tests.api.fleet import Fleet


@pytest.fixture
def go(client: Fleet) -> GoClient:
    return GoClient(client)


@pytest.fixture
def memory_go(memory_client: Fleet) -> GoClient:
    return GoClient(memory_client)


def make(go: GoClient, *names: str) -> list[dict[str, Any]]:
    """Create clusters a minute after each other, where there is a clock to be moved."""
    made = []
    for name in names:
        made.append(go.create(name))
        go.fleet.clock.pass_time(timedelta(minutes=1))
    return made


# ── envelope and pages ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_come_first_page_by_page(go: GoClient) -> None:
    assert go.get("/clusters").json() == {"items": [], "page": 1, "size": 0, "total": 0}
    make(go, "one", "two", "three")
    first = go.get("/clusters", page=1, size=2).json()
    assert ([item["name"] for item in first["items"]], first["size"], first["total"]) == (["three", "two"], 2, 3)
    second = go.get("/clusters", page=2, size=2).json()
    assert ([item["name"] for item in second["items"]], second["page"], second["size"]) == (["one"], 2, 1)
    beyond = go.get("/clusters", page=3, size=2).json()
    assert (beyond["items"], beyond["size"], beyond["total"]) == ([], 0, 3)
    assert go.names(page="", size=" ", pageSize=1, orderBy="nonsense") == ["three", "two", "one"]


def test_items_are_what_a_get_shows_also_of_what_is_being_deleted(go: GoClient) -> None:
    one, two = make(go, "one", "two")
    go.request("DELETE", path_of(one))
    assert go.get("/clusters").json()["items"] == [go.read(two), go.read(one)]
    assert go.search("deleted_time IS NULL") == {"two"}
    assert go.search("deleted_time is not null") == {"one"}


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({"page": "0"}, [("page", "min")]),
        ({"page": "-1"}, [("page", "min")]),
        ({"page": "100001"}, [("page", "max")]),
        ({"size": "0"}, [("size", "min")]),
        ({"size": "101"}, [("size", "max")]),
        ({"size": "1.5"}, [("size", "format")]),
        ({"size": "many"}, [("size", "format")]),
        ({"page": "0", "size": "x"}, [("size", "format"), ("page", "min")]),
        ({"ref_type": "wif"}, [("ref_target_id", "required")]),
        ({"ref_target_id": "x"}, [("ref_type", "required")]),
        ({"ref_type": "wif", "ref_target_id": "x"}, [("ref_type", "enum")]),
    ],
)
def test_parameters_that_are_wrong(
    memory_go: GoClient, parameters: dict[str, str], fields: list[tuple[str, str]]
) -> None:
    problem = declined(memory_go.get("/clusters", **parameters), 400, "VAL-000")
    assert [(error["field"], error["constraint"]) for error in problem["errors"]] == fields
    if {"page", "size"} & parameters.keys():
        for error in problem["errors"]:
            sent = parameters[error["field"]]
            assert error["value"] == (sent if error["constraint"] == "format" else int(sent)), "as it was read"
        assert problem["detail"] == "Invalid query parameters"


def test_lists_of_children_and_of_everything(go: GoClient) -> None:
    one, two = make(go, "one", "two")
    go.create_pool(one, "red")
    go.create_pool(two, "blue")
    assert set(go.names("/nodepools")) == {"red", "blue"}
    assert go.names(f"/clusters/{one['id']}/nodepools") == ["red"]
    declined(go.get("/clusters/nope/nodepools"), 404, "NTF-001")
    assert set(go.names("/resources")) == {"one", "two", "red", "blue"}
    assert set(go.names("/resources", kind="NodePool", ref_type="ignored")) == {"red", "blue"}
    assert go.get("/resources", size=3).json()["total"] == 4
    assert fields_of(declined(go.get("/resources", kind="Planet"), 400, "VAL-000")) == {("kind", "enum")}


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_order(go: GoClient) -> None:
    one, *_ = make(go, "one", "two", "three")
    assert go.names(order="name") == ["one", "three", "two"]
    assert go.names(order="name desc") == ["two", "three", "one"]
    assert go.names(order="created_time asc") == ["one", "two", "three"]
    go.request("PATCH", path_of(one), json={"spec": {}})
    assert go.names(order="generation desc,name asc") == ["one", "three", "two"]
    assert go.names(order=["generation", "name desc"]) == ["two", "three", "one"]
    assert go.names(order="generation desc,name", page=2, size=2) == ["two"]
    go.request("DELETE", path_of(one))
    assert go.names(order="deleted_time,name")[0] == "one", "what is absent comes last"


@pytest.mark.parametrize("order", ["Name", "nonsense", "name up", "name;drop", "name desc asc", "tenancy"])
def test_orders_that_are_none(memory_go: GoClient, order: str) -> None:
    declined(memory_go.get("/clusters", order=order), 400, "VAL-005")


# ── fields ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ("name", {"id", "name"}),
        ("name,generation", {"id", "name", "generation"}),
        ("spec,labels,references", {"id", "spec", "labels"}),
        ("deleted_time", {"id"}),
        ("status.*", {"id", "status"}),
        ("owner_references", {"id"}),
        ("", {"id", "kind", "name", "href", "spec", "labels", "generation", "status", "tenancy"}),
    ],
)
def test_fields(memory_go: GoClient, fields: str, keys: set[str]) -> None:
    cluster = memory_go.create(labels={"env": "prod"})
    one = memory_go.get(path_of(cluster), fields=fields).json()
    assert {key for key in one if not key.endswith(("_time", "_by"))} == keys
    assert one.items() <= cluster.items(), "as it is shown otherwise, to the microsecond"
    assert memory_go.get("/clusters", fields=fields).json()["items"] == [one]


def test_parts_of_conditions_and_owners(memory_go: GoClient) -> None:
    cluster = memory_go.create()
    pool = memory_go.create_pool(cluster)
    shown = memory_go.get(path_of(cluster), fields=["status.conditions.type", "status.conditions.status"]).json()
    assert shown["status"]["conditions"][0] == {"type": "Reconciled", "status": "False"}
    assert memory_go.get(path_of(pool), fields="owner_references.id").json() == {
        "id": pool["id"],
        "owner_references": {"id": cluster["id"]},
    }


@pytest.mark.parametrize("fields", ["status", "spec.region", "labels.env", "nonsense", "status.conditions.nonsense"])
def test_fields_that_are_none(memory_go: GoClient, fields: str) -> None:
    declined(memory_go.get("/clusters", fields=fields), 400, "VAL-000")
    declined(memory_go.get(path_of(memory_go.create()), fields=fields), 400, "VAL-000")


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────

SEARCHES = [
    ("", {"red", "green", "blue"}),
    ("name='red'", {"red"}),
    ('name == "red"', {"red"}),
    ("name = `red`", {"red"}),
    ("name != 'red'", {"green", "blue"}),
    ("name <> 'red'", {"green", "blue"}),
    ("name > 'c'", {"red", "green"}),
    ("name in ['red', 'blue']", {"red", "blue"}),
    ("name in ('red', 'blue')", {"red", "blue"}),
    ("name not in ['red', 'blue']", {"green"}),
    ("name like 're%'", {"red"}),
    ("name like '_e_'", {"red"}),
    ("name ilike 'R%D'", {"red"}),
    ("name not like '%e%'", set()),
    ("name between 'a' and 'h'", {"green", "blue"}),
    ("not name='red'", {"green", "blue"}),
    ("not (name='red' or name='blue')", {"green"}),
    ("NAME='x' or name='red'", None),
    ("kind='Cluster'", {"red", "green", "blue"}),
    ("kind='NodePool'", set()),
    ("id='nonsense'", set()),
    ("name='it''s'", set()),
    ("name='it\\'s' or name='red'", {"red"}),
    ("generation = 1", {"green", "blue"}),
    ("generation >= 2", {"red"}),
    ("generation > 1.5", {"red"}),
    ("generation between 1 and 1", {"green", "blue"}),
    ("generation in [2, 3]", {"red"}),
    ("generation < 1k", {"red", "green", "blue"}),
    ("generation < 1Ki and generation < 1e3", {"red", "green", "blue"}),
    ("created_time > '2020-01-01'", {"red", "green", "blue"}),
    ("created_time < '2020-01-01T00:00:00Z'", set()),
    ("created_time between '2020-01-01' and '2999-01-01'", {"red", "green", "blue"}),
    ("deleted_time is null", {"red", "green", "blue"}),
    ("owner_id is null", {"red", "green", "blue"}),
    ("created_by = 'anonymous'", {"red", "green", "blue"}),
    ("labels.env='prod'", {"red", "green"}),
    ("labels.env='prod' and labels.tier='web'", {"red"}),
    ("labels.env='prod' or labels.tier='db'", {"red", "green"}),
    ("labels.env!='prod'", {"blue"}),
    ("labels.tier!='web'", {"green", "blue"}),
    ("not labels.tier='web'", {"green", "blue"}),
    ("labels.env in ['prod', 'test']", {"red", "green", "blue"}),
    ("labels.env not in ['prod']", {"blue"}),
    ("labels.env like 'p%'", {"red", "green"}),
    ("labels.env > 'q'", {"blue"}),
    ("labels.tier is null", {"blue"}),
    ("labels.tier is not null", {"red", "green"}),
    ("labels.cost-centre='a-1'", {"green"}),
    ("labels.cost-centre != 'a-1'", {"red", "blue"}),
    ("labels.app.kubernetes.io/Part-of='x'", {"blue"}),
    ("labels.hyperfleet-no-such-label='x'", set()),
    ("spec.region='eu'", {"red"}),
    ("spec.nodes.count=3", {"red", "green"}),
    ("spec.nodes.count > 3", {"blue"}),
    ("spec.nodes.count='3'", {"red", "green"}),
    ("spec.nodes.machineType='m5'", {"red"}),
    ("spec.is_private=true", {"green", "blue"}),
    ("spec.is_private='true'", {"green", "blue"}),
    ("spec.is_private=false", set()),
    ("spec.is_private!=true", {"red"}),
    ("spec.region!='eu'", {"green", "blue"}),
    ("spec.nodes.count!=3", {"blue"}),
    ("spec.nodes.count!='3'", {"blue"}),
    ("spec.is_private is null", {"red"}),
    ("spec.region > 3", set()),
    ("spec.region in [3, 'eu']", {"red"}),
    ("spec.no.such.path is null", {"red", "green", "blue"}),
    ("status.conditions.Reconciled='True'", {"green"}),
    ("status.conditions.Reconciled='False'", {"red", "blue"}),
    ("status.conditions.Reconciled!='True'", {"red", "blue"}),
    ("not status.conditions.Reconciled='False'", {"green"}),
    ("status.conditions.Reconciled in ['True', 'False']", {"red", "green", "blue"}),
    ("status.conditions.Reconciled='Unknown'", set()),
    ("status.conditions.DnsSuccessful is null", {"red", "blue"}),
    ("status.conditions.Reconciled.observed_generation >= 2", {"red"}),
    ("status.conditions.Reconciled.last_updated_time > '2020-01-01T00:00:00Z'", {"red", "green", "blue"}),
    ("status.conditions.Reconciled.last_transition_time < '2020-01-01T00:00:00Z'", set()),
    ("labels.env='prod' and status.conditions.Reconciled='False' and deleted_time is null", {"red"}),
    ("labels.env='prod' and (name='blue' or spec.region='eu')", {"red"}),
]


def make_colours(go: GoClient) -> None:
    """Make three clusters that differ in everything one can ask for."""
    red = go.create("red", labels={"env": "prod", "tier": "web"}, spec={"nodes": {"count": 1}})
    spec = {"region": "eu", "nodes": {"count": 3, "machineType": "m5"}}
    go.request("PATCH", path_of(red), json={"spec": spec})
    green = go.create(
        "green",
        labels={"env": "prod", "tier": "db", "cost-centre": "a-1"},
        spec={"nodes": {"count": 3}, "is_private": True},
    )
    go.report(green, "dns")
    go.report(green, "validation")
    labels = {"env": "test", "app.kubernetes.io/Part-of": "x"}
    go.create("blue", labels=labels, spec={"region": "us", "nodes": {"count": 5}, "is_private": "true"})


def test_every_construct(go: GoClient) -> None:
    make_colours(go)
    for text, names in SEARCHES:
        if names is None:
            declined(go.get("/clusters", search=text), 400, "VAL-005")
        else:
            assert go.search(text) == names, text
            assert go.get("/clusters", search=text, size=1).json()["total"] == len(names), text


def test_by_id_and_by_owner(go: GoClient) -> None:
    cluster, other = make(go, "one", "two")
    go.create_pool(cluster, "red")
    go.create_pool(other, "blue")
    assert go.search(f"id='{cluster['id']}'") == {"one"}
    assert go.search(f"id in ['{cluster['id']}', '{other['id']}']") == {"one", "two"}
    assert go.search(f"owner_id='{cluster['id']}'", "/nodepools") == {"red"}
    assert go.search(f"owner_href='{cluster['href']}' and owner_kind='Cluster'", "/nodepools") == {"red"}
    assert go.search("name='red' or name='one'", "/resources") == {"red", "one"}


@pytest.mark.parametrize(
    "text",
    ["name='x') OR (kind='NodePool'", "name='x') or (1=1", "name='x' -- ", "name='x'; drop table resources", "1=1"],
)
def test_no_text_escapes_its_scope(go: GoClient, text: str) -> None:
    cluster, other = make(go, "one", "two")
    go.create_pool(other, "hidden")
    for path in ("/clusters", f"/clusters/{cluster['id']}/nodepools"):
        declined(go.get(path, search=text), 400, "VAL-005")


def test_alternatives_stay_in_their_scope(go: GoClient) -> None:
    cluster, other = make(go, "one", "two")
    go.create_pool(other, "hidden")
    everything = "kind='NodePool' or name!='x' or owner_id is not null"
    assert go.search(everything) == {"one", "two"}
    assert go.search(everything, f"/clusters/{cluster['id']}/nodepools") == set()


@pytest.mark.parametrize(
    "text",
    [
        "name",
        "name=",
        "='x'",
        "name='x",
        "labels.env='\0'",
        "name='x' and",
        "name='x' name='y'",
        "(name='x'",
        "name in []",
        "name in ['x'",
        "name in ['x')",
        "name = null",
        "name ~= 'x'",
        "name ~! 'x'",
        "name = 'x' + 'y'",
        "len name = 1",
        "any(name='x')",
        "Name='x'",
        "nonsense='x'",
        "a.b='x'",
        "labels.='x'",
        "spec.='x'",
        "status='x'",
        "tenancy='x'",
        "name=1",
        "name=true",
        "generation='1'",
        "generation=true",
        "generation=-1",
        "generation like '1'",
        "labels.env=1",
        "labels.env like 1",
        "created_time=1",
        "created_time='yesterday'",
        "created_time between 'a' and 'b'",
        "created_time like '2020%'",
        "status.conditions.reconciled='True'",
        "status.conditions.Reconciled='true'",
        "status.conditions.Reconciled=true",
        "status.conditions.Reconciled > 'False'",
        "status.conditions.Reconciled like 'T%'",
        "status.conditions.Reconciled.reason='x'",
        "status.conditions.Reconciled.message='x'",
        "status.conditions.Reconciled.created_time > '2020-01-01T00:00:00Z'",
        "status.conditions.Reconciled.last_updated_time > '2020-01-01'",
        "status.conditions.Reconciled.observed_generation='1'",
        "(" * 60 + "name='x'" + ")" * 60,
        "not " * 60 + "name='x'",
        "name='" + "x" * 4096 + "'",
    ],
)
def test_searches_that_are_none(memory_go: GoClient, text: str) -> None:
    declined(memory_go.get("/clusters", search=text), 400, "VAL-005")


@pytest.mark.parametrize(
    ("text", "is_exact"),
    [
        ("labels.a='x' and labels.b='y' and deleted_time is null", True),
        ("labels.a='x' or labels.b='y'", True),
        ("labels.a in ['x', 'y'] and labels.b is null and labels.c != 'z'", True),
        ("not (labels.a='x' or labels.b='y')", True),
        ("name='x'", False),
        ("labels.a='x' and name='y'", False),
        ("labels.a='x' or name!='y'", False),
    ],
)
def test_what_the_index_can_find_alone(text: str, is_exact: bool) -> None:
    assert compile_search(text).is_exact is is_exact


def test_what_must_be_looked_at_is_bounded(memory_go: GoClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_EXAMINED", 2)
    make(memory_go, "one", "two", "three")
    problem = declined(memory_go.get("/clusters", search="spec.region='eu'"), 400, "VAL-005")
    assert "more than 2 resources" in problem["detail"]
    assert memory_go.search("name='one' and spec.region is not null") == {"one"}, "the index rules the others out"


@pytest.mark.parametrize(
    ("text", "pattern", "is_match"),
    [
        ("", "", True),
        ("", "%", True),
        ("a", "", False),
        ("abc", "%c", True),
        ("abc", "a%b%c%", True),
        ("abc", "a_c", True),
        ("abc", "a_", False),
        ("a%c", r"a\%c", True),
        ("abc", r"a\%c", False),
        ("a\\", "a\\", True),
        ("aab", "%ab", True),
        ("a\nb", "a%b", True),
        ("a" * 5_000, "%a" * 200 + "b", False),
    ],
)
def test_patterns(text: str, pattern: str, is_match: bool) -> None:
    assert matches(text, pattern) is is_match
