"""What is due, what a sentinel decided about it, and who its members are. On every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.ports import EVERYTHING, Store
from hyperfleet.sentinel.rules import Rule, RuleSet
from hyperfleet.services.look_planning import with_filters
from tests.api.fleet import Fleet, HandClock, open_fleet, problem_of
from tests.api.tenants import Keys, Voice
from tests.world import body as report_body

# Due at once, whatever the clock of the store.
AT_ONCE = Rule("new", "new", timedelta())
GOLD = Rule("gold", "new", timedelta(), where={"labelSelector": "tier=gold"}, when="resource.generation == 1")


@pytest.fixture
def eager(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a server whose sentinel looks at new resources at once."""
    with open_fleet(store, clock, limits, look_rules=with_filters(RuleSet([AT_ONCE, GOLD]))) as fleet:
        yield fleet


def due_of(client: Fleet, query: str = "", kind: str = "clusters") -> list[dict[str, Any]]:
    """Return what is due."""
    answer = client.get(f"/{kind}:due{query}")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def look(client: Fleet, *looks: dict[str, Any], name: str = "night") -> dict[str, Any]:
    """Send decisions."""
    answer = client.post("/clusters:look", {"sentinel": name, "looks": list(looks)})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def events_of(client: Fleet) -> list[dict[str, Any]]:
    """Pull all events of the subscription `dns`."""
    answer = client.post("/subscriptions/dns:pull", {"max": 100})
    return [each["event"] for each in answer.json()["messages"]]


def ids_of(items: list[dict[str, Any]]) -> set[str]:
    """Return the ids of resources that are due."""
    return {each["resource"]["id"] for each in items}


def test_what_is_due_comes_with_its_rules_and_an_event_is_published_once(eager: Fleet) -> None:
    eager.put("/subscriptions/dns", {})
    created = eager.create("one")
    (due,) = due_of(eager)
    assert due["resource"] == eager.get(f"/clusters/{created['id']}").json()
    (rule,) = due["rules"]
    assert (rule["name"], rule["state"], rule["attempts"]) == ("new", "new", 0), "`where` of the other does not hold"
    assert look(eager, {"id": created["id"], "rule": "new", "receipt": due["receipt"]}) == {
        "published": 1,
        "skipped": 0,
    }
    (event,) = events_of(eager)
    assert event["type"] == "io.hyperfleet.cluster.reconcile"
    assert event["source"].endswith("/sentinel/night")
    assert event["subject"] == f"Cluster/{created['id']}"
    assert event["id"][14] == "7", "a UUID of version 7"
    assert {key: event["data"][key] for key in ("id", "kind", "generation", "reason")} == {
        "id": created["id"],
        "kind": "Cluster",
        "generation": 1,
        "reason": "new",
    }
    assert due_of(eager) == [], "the next look is later"
    assert look(eager, {"id": created["id"], "rule": "new", "receipt": due["receipt"]}) == {
        "published": 0,
        "skipped": 1,
    }
    assert events_of(eager) == []
    assert eager.get(f"/clusters/{created['id']}").json() == due["resource"], "nothing of it has changed"


def test_a_decision_against_an_event_only_schedules_the_next_look(eager: Fleet) -> None:
    eager.put("/subscriptions/dns", {})
    created = eager.create("one", labels={"tier": "gold"})
    (due,) = due_of(eager)
    assert {each["name"]: each.get("when") for each in due["rules"]} == {"new": None, "gold": GOLD.when}
    assert look(eager, {"id": created["id"], "rule": None, "receipt": due["receipt"]}) == {"published": 0, "skipped": 0}
    assert due_of(eager) == []
    assert events_of(eager) == []


def test_a_sentinel_with_rules_of_its_own_needs_no_receipt(eager: Fleet) -> None:
    eager.put("/subscriptions/dns", {})
    created = eager.create("one")
    data = {"owner": "me", "reason": "no"}
    done = look(eager, {"id": created["id"], "rule": "mine", "data": data}, {"id": "cls-gone", "rule": "mine"})
    assert done == {"published": 1, "skipped": 1}
    (event,) = events_of(eager)
    assert (event["data"]["reason"], event["data"]["owner"]) == ("mine", "me")
    assert due_of(eager) == []


def test_members_share_what_is_due_without_a_gap(eager: Fleet) -> None:
    created = {eager.create(f"c-{number}")["id"] for number in range(20)}
    assert eager.request("PUT", "/sentinels/night/members/a").json()["members"] == ["a"]
    assert ids_of(due_of(eager, "?sentinel=night&member=a")) == created
    answer = eager.request("PUT", "/sentinels/night/members/b").json()
    assert answer == {"sentinel": "night", "members": ["a", "b"], "expiresInSeconds": 15}
    a, b = (ids_of(due_of(eager, f"?sentinel=night&member={each}")) for each in "ab")
    assert a | b == created
    assert not a & b
    assert a
    assert b
    (shown,) = eager.get("/sentinels").json()["items"]
    assert shown == {"name": "night", "members": ["a", "b"]}
    assert eager.delete("/sentinels/night/members/a").json()["members"] == ["b"]
    problem_of(eager.get("/clusters:due?sentinel=night&member=a"), 409, "UnknownMember")
    problem_of(eager.delete("/sentinels/night/members/a"), 404, "NotFound")
    assert ids_of(due_of(eager, "?sentinel=night&member=b")) == created, "the others take over at once"


def test_a_page_ends_at_its_limit(eager: Fleet) -> None:
    created = [eager.create(f"c-{number}")["id"] for number in range(5)]
    answer = eager.get("/clusters:due?limit=2").json()
    assert len(answer["items"]) == 2
    assert answer["next"] == answer["time"], "more is due now"
    assert ids_of(due_of(eager)) == set(created)


def test_rules_and_counts_are_shown(eager: Fleet) -> None:
    eager.create("one")
    shown = eager.get("/sentinels").json()
    assert shown["rules"][1] == {
        "name": "gold",
        "state": "new",
        "after": "0s",
        "where": {"labelSelector": "tier=gold"},
        "when": GOLD.when,
    }
    (clusters, pools) = shown["kinds"]
    assert (clusters["kind"], clusters["due"], pools["due"]) == ("Cluster", 1, 0)


def test_a_heartbeat_moves_nothing(eager: Fleet) -> None:
    id_ = eager.create("one")["id"]
    assert eager.post(f"/clusters/{id_}/statuses", report_body("dns", "True")).status_code in (200, 201)
    before = eager.run(eager.store.looks.read("Cluster", [id_], EVERYTHING)).looks[0].look
    assert eager.post(f"/clusters/{id_}/statuses", report_body("dns", "True")).status_code in (200, 201)
    assert eager.run(eager.store.looks.read("Cluster", [id_], EVERYTHING)).looks[0].look == before


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ([], [""]),
        ({}, ["/looks"]),
        ({"looks": []}, ["/looks"]),
        ({"looks": [{"rule": "x"}, 3]}, ["/looks/0/id", "/looks/1"]),
        ({"looks": [{"id": "a", "rule": "no such"}], "sentinel": "/"}, ["/sentinel", "/looks/0/rule"]),
        ({"looks": [{"id": "a"}, {"id": "a"}]}, ["/looks/1/id"]),
        ({"looks": [{"id": "a", "receipt": 1, "data": [], "rules": "x"}], "look": 1}, None),
    ],
)
def test_bad_decisions_are_refused_with_every_error(memory_client: Fleet, body: Any, places: list[str] | None) -> None:
    problem = problem_of(memory_client.post("/clusters:look", body), 400, "InvalidBody")
    found = [each["pointer"] for each in problem["errors"]]
    assert found == places if places is not None else len(found) == 4


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "sentinel=/", "member=/", "sentinel=&member=a", "phase=Ready"]
)
def test_bad_queries_are_refused(memory_client: Fleet, query: str) -> None:
    problem_of(memory_client.get(f"/clusters:due?{query}"), 400, "InvalidQuery")


def test_bad_names_of_members_are_refused(memory_client: Fleet) -> None:
    problem_of(memory_client.request("PUT", "/sentinels/a%20b/members/c"), 400, "InvalidRequest")


def test_tenants_see_and_move_their_own_and_share_with_their_own(
    store: Store, clock: HandClock, limits: RequestLimits
) -> None:
    with open_fleet(store, clock, limits, look_rules=with_filters(RuleSet([AT_ONCE])), authenticator=Keys()) as fleet:
        red, blue, everyone = (Voice(fleet, token) for token in ("red", "blue", "all"))
        ids = {
            voice: voice.must(201, "POST", "/clusters", json={"name": "one", "spec": {}})["id"] for voice in (red, blue)
        }
        for voice in (red, blue):
            assert ids_of(voice.must(200, "GET", "/clusters:due")["items"]) == {ids[voice]}
        looks = {"looks": [{"id": ids[blue], "rule": "new"}]}
        assert red.must(200, "POST", "/clusters:look", json=looks) == {"published": 0, "skipped": 1}
        assert ids_of(everyone.must(200, "GET", "/clusters:due")["items"]) == set(ids.values())
        everyone.must(200, "PUT", "/sentinels/default/members/server")
        assert red.must(200, "PUT", "/sentinels/default/members/red")["members"] == ["red"]
        assert ids_of(red.must(200, "GET", "/clusters:due?member=red")["items"]) == {ids[red]}, "its part is all of it"
        assert [each["members"] for each in blue.must(200, "GET", "/sentinels")["items"]] == []
        assert [each["members"] for each in red.must(200, "GET", "/sentinels")["items"]] == [["red"]]
        assert red.must(200, "GET", "/sentinels")["kinds"][0]["due"] == 1
        assert len(everyone.must(200, "GET", "/sentinels")["items"][0]["members"]) == 2
