"""`:reconcile`: an event, and nothing else of the resource changes. On every store."""

from __future__ import annotations

from hyperfleet.ports import ChangeQuery
from tests.api.fleet import Fleet, path_of, problem_of
from tests.api.tenants import World


def events_of(client: Fleet) -> list[tuple[str, str]]:
    """Return the type and the resource of every event."""
    page = client.run(client.store.read_changes(ChangeQuery(after=0)))
    return [(change.type, change.resource_id) for change in page.changes]


def test_a_request_adds_an_event_and_changes_nothing_else(client: Fleet) -> None:
    cluster = client.create()
    before = client.get(path_of(cluster))
    answer = client.post(f"{path_of(cluster)}:reconcile")
    assert (answer.status_code, answer.json()) == (202, {"requested": 1, "position": 2})
    after = client.get(path_of(cluster))
    assert after.content == before.content
    assert after.headers["etag"] != before.headers["etag"]
    assert events_of(client)[-1] == ("ReconcileRequested", cluster["id"])
    assert client.get(f"{path_of(cluster)}/history").json()["items"] == before_history(client, cluster["id"])


def before_history(client: Fleet, id_: str) -> list[object]:
    """Return the history of a cluster without requests."""
    items: list[object] = client.get(f"/clusters/{id_}/history").json()["items"]
    return [each for each in items if isinstance(each, dict) and each["position"] == 1]


def test_filters_choose_who_is_asked(client: Fleet) -> None:
    chosen = [client.create(f"c{number}", labels={"env": "prod"}) for number in range(3)]
    client.create("other")
    answer = client.post("/clusters:reconcile?labelSelector=env%3Dprod")
    assert answer.json()["requested"] == 3
    assert events_of(client)[-3:] == [("ReconcileRequested", each["id"]) for each in chosen]
    assert client.post("/clusters:reconcile").json()["requested"] == 4
    assert client.post("/clusters:reconcile?phase=Deleting").json() == {"requested": 0, "position": 0}


def test_node_pools_of_one_cluster_are_asked(client: Fleet) -> None:
    one, other = client.create("one"), client.create("other")
    pools = [client.create_pool(one, name, labels={"size": name}) for name in ("big", "small")]
    client.create_pool(other)
    below = f"{path_of(one)}/nodepools:reconcile"
    assert client.post(below).json()["requested"] == 2
    assert client.post(f"{below}?labelSelector=size%3Dsmall").json()["requested"] == 1
    assert events_of(client)[-1] == ("ReconcileRequested", pools[1]["id"])
    assert client.post("/nodepools:reconcile").json()["requested"] == 3
    problem_of(client.post("/clusters/cls-nope/nodepools:reconcile"), 404, "NotFound")


def test_what_is_not_there_or_wrong_is_refused(memory_client: Fleet) -> None:
    problem_of(memory_client.post("/clusters/cls-nope:reconcile"), 404, "NotFound")
    problem_of(memory_client.post("/clusters:reconcile?phase=Nope&limit=3"), 400, "InvalidQuery")


def test_only_ones_own_clusters_are_asked(own_world: World) -> None:
    blue = own_world.voice("blue")
    count = len(blue.must(200, "GET", "/clusters")["items"])
    assert blue.must(202, "POST", "/clusters:reconcile")["requested"] == count
    assert blue.request("POST", f"/clusters/{own_world.red.cluster}:reconcile").status_code == 404
    fleet = own_world.fleet
    asked = {id_ for type_, id_ in events_of(fleet) if type_ == "ReconcileRequested"}
    assert asked
    assert not asked & set(own_world.red.ids)
