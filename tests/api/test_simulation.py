"""What if: what is predicted is what comes when the policy is in force, and nothing is written until then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.ports import StatusCause
from hyperfleet.services import simulation_cost
from hyperfleet.services.upkeep import recompute_all
from tests.api.fleet import POLICY, Fleet, errors_of, path_of, problem_of
from tests.candidates import (
    CANDIDATES,
    FAMILIES,
    FEWER_ADAPTERS,
    MORE_ADAPTERS,
    NOTHING,
    State,
    foretell,
    states_of,
)

YAML = {"Content-Type": "application/yaml"}
STREAM = {**YAML, "Accept": "text/event-stream"}
MINUTE = timedelta(minutes=1)


def simulate(client: Fleet, policy: str, query: str = "?limit=1000") -> dict[str, Any]:
    response = client.post(f"/policy:simulate{query}", content=policy.encode(), headers=YAML)
    assert response.status_code == 200, response.text
    return dict(response.json())


def put_in_force(client: Fleet, policy: str) -> None:
    """Put a policy in force and let the server compute everything anew, as its loop does."""
    client.policy = policy
    version = client.post("/policy:reload").json()["version"]

    async def recompute() -> None:
        while ids := (await client.store.outdated(version, 3))[0]:
            await recompute_all(client.committer, ids, StatusCause("policy"))

    client.run(recompute())


def states(client: Fleet) -> dict[str, State]:
    """Return how every resource is."""
    listed = [client.get(f"/{kind}?limit=1000").json()["items"] for kind in ("clusters", "nodepools")]
    return states_of(*listed)


def build(client: Fleet) -> None:
    """Make a fleet in which there is one of everything."""
    client.create("silent")
    for number, env in enumerate(("prod", "test")):
        done = client.create(f"done-{number}", labels={"env": env})
        client.report(done, "validation")
        client.report(done, "dns")
        failed = client.create(f"failed-{number}", labels={"env": env})
        client.report(failed, "validation")
        client.report(failed, "dns", "False/Broken/no such zone")
    running = client.create("running")
    client.report(running, "validation", "False/JobRunning")
    client.report(running, "monitoring")
    sick = client.create("sick")
    client.report(sick, "validation", health="False/Down")
    edited = client.create("edited")
    client.report(edited, "validation")
    client.patch(path_of(edited), {"spec": {"region": "eu-west-1"}}, headers={"Content-Type": "application/json"})
    parent = client.create("parent")
    client.report(parent, "validation")
    client.report(parent, "dns")
    for number, said in enumerate(("True", "False/Broken/out of stock", "Unknown")):
        client.report(client.create_pool(parent, f"pool-{number}"), "nodepool", said)
    client.create_pool(parent, "silent-pool")
    leaving = client.create("leaving")
    client.report(leaving, "validation")
    client.report(client.create_pool(leaving, "kept"), "nodepool")
    client.delete(path_of(leaving))
    client.report(leaving, "validation", generation=2, extra={"Finalized": "True"})
    client.clock.pass_time(2 * MINUTE)


def test_what_is_predicted_comes_true(client: Fleet) -> None:
    build(client)
    moved = 0
    for candidate in CANDIDATES:
        before = states(client)
        answer = simulate(client, candidate)
        assert states(client) == before, "nothing was written"
        put_in_force(client, candidate)
        assert states(client) == foretell(before, answer["changes"])
        assert answer["policy"] == client.get("/policy").json()["digest"]
        assert answer["examined"] == len(before) == answer["changed"] + answer["reworded"] + answer["unchanged"]
        assert len(answer["changes"]) == answer["changed"] + answer["reworded"]
        moved += answer["changed"]
        client.clock.pass_time(MINUTE)
    assert moved > 2 * len(before), "the candidates are to make a difference"


def test_the_policy_in_force_changes_nothing(client: Fleet) -> None:
    build(client)
    answer = simulate(client, f"# as it is\n{POLICY}")
    assert (answer["changed"], answer["reworded"], answer["changes"], answer["summary"]) == (0, 0, [], [])
    assert answer["policy"] == client.get("/policy").json()["digest"]
    assert answer["truncated"] is False
    assert answer["warnings"] == []


def test_what_would_move_and_why(memory_client: Fleet) -> None:
    cluster = memory_client.create(labels={"env": "prod"})
    memory_client.report(cluster, "validation")
    memory_client.report(cluster, "dns")
    answer = simulate(memory_client, MORE_ADAPTERS)
    (change,) = answer["changes"]
    assert {key: change[key] for key in ("id", "name", "kind", "href")} == {
        "id": cluster["id"],
        "name": "my-cluster",
        "kind": "Cluster",
        "href": cluster["href"],
    }
    moves = {move["subject"]: move for move in change["transitions"]}
    assert (moves["phase"]["from"], moves["phase"]["to"]) == ("Ready", "Provisioning")
    assert moves["phase"]["why"] == (
        "to be Ready, it lacks AllDone=True, Ready=True; "
        "the required adapter validation is Completed; the required adapter dns is Completed"
    )
    assert (moves["AllDone"]["from"], moves["AllDone"]["to"]) == ("True", "False")
    assert moves["AllDone"]["why"] == 'all(requiredAdapters, .state == "Completed"): ghost is Unreported'
    assert moves["Ready"]["why"] == "ghost is Unreported"
    summary = [(row["subject"], row["from"], row["to"], row["count"]) for row in answer["summary"]]
    assert summary == [
        ("AllDone", "True", "False", 1),
        ("Available", "True", "False", 1),
        ("Ready", "True", "False", 1),
        ("phase", "Ready", "Provisioning", 1),
    ]


def test_a_policy_that_never_wants_ready_says_so(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "validation")
    memory_client.report(cluster, "dns")
    (change,) = simulate(memory_client, "requiredAdapters: [dns]")["changes"]
    (phase,) = [move for move in change["transitions"] if move["subject"] == "phase"]
    assert (phase["to"], phase["why"]) == (
        "Provisioning",
        "the policy requires no conditions for Ready, so nothing is; the required adapter dns is Completed",
    )


def test_what_appears_vanishes_or_would_be_removed(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.delete(path_of(cluster))
    other = memory_client.create("other")
    answer = simulate(memory_client, NOTHING)
    by_id = {change["id"]: change["transitions"] for change in answer["changes"]}
    (gone,) = by_id[cluster["id"]]
    assert (gone["subject"], gone["from"], gone["to"], gone["reason"]) == ("phase", "Deleting", None, "Removed")
    vanished = [move for move in by_id[other["id"]] if move["to"] is None]
    assert [(move["subject"], move["from"], move["why"]) for move in vanished] == [
        ("AllDone", "False", "the policy has no rule for it")
    ]
    (pools,) = [row for row in simulate(memory_client, FAMILIES)["summary"] if row["subject"] == "PoolsReady"]
    assert (pools["from"], pools["count"]) == (None, 2)


def test_only_words_may_change(memory_client: Fleet) -> None:
    memory_client.create("first")
    memory_client.create("second")
    reworded = POLICY.replace("evaluate:", "templates: {inProgress: {reason: Soon, message: soon}}\n    evaluate:")
    answer = simulate(memory_client, reworded)
    assert (answer["changed"], answer["reworded"], answer["unchanged"]) == (0, 2, 0)
    (row,) = answer["summary"]
    assert (row["subject"], row["from"], row["to"], row["count"]) == ("AllDone", "False", "False", 2)


def test_filters_say_on_what_it_is_tried(client: Fleet) -> None:
    for number in range(3):
        client.create(f"prod-{number}", labels={"env": "prod"})
    tested = client.create("test", labels={"env": "test"})
    client.create_pool(tested)
    assert simulate(client, MORE_ADAPTERS)["examined"] == 5
    answer = simulate(client, MORE_ADAPTERS, "?labelSelector=env=prod&limit=2")
    assert (answer["examined"], answer["changed"] + answer["reworded"]) == (3, 3)
    assert answer["truncated"] is True
    assert len(answer["changes"]) == 2
    assert simulate(client, MORE_ADAPTERS, "?phase=Pending&q=test")["examined"] == 1


def test_what_moves_is_told_before_what_is_reworded(memory_client: Fleet) -> None:
    for number in range(3):
        memory_client.create(f"silent-{number}")
    done = memory_client.create("done")
    memory_client.report(done, "validation")
    memory_client.report(done, "dns")
    answer = simulate(memory_client, MORE_ADAPTERS, "?limit=1")
    assert [change["id"] for change in answer["changes"]] == [done["id"]]
    assert (answer["changed"], answer["reworded"], answer["truncated"]) == (1, 3, True)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_may_be_json(memory_client: Fleet) -> None:
    memory_client.create()
    answer = memory_client.post("/policy:simulate", {"requiredAdapters": ["validation"]})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["policy"] == simulate(memory_client, "requiredAdapters: [validation]")["policy"]


def test_a_policy_with_problems_is_refused_with_every_place(memory_client: Fleet) -> None:
    wrong = b"requiredAdapters: dns\nclusterConditions:\n  - type: A\n    evaluate: {expr: '1 +'}\n"
    problem = problem_of(memory_client.post("/policy:simulate", content=wrong), 422, "InvalidPolicy")
    places = {(error["pointer"], error["line"], error["column"]) for error in problem["errors"]}
    assert places == {("/requiredAdapters", 1, 19), ("/clusterConditions/0/evaluate/expr", 4, 25)}
    assert problem["detail"] == "the body has 2 problems; the policy in force does not change"
    problem_of(memory_client.post("/policy:simulate"), 422, "InvalidPolicy")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?page=1", {("page", "UnknownParameter")}),
        ("?replay=soon&limit=0", {("replay", "BadFormat"), ("limit", "OutOfRange")}),
        ("?replay=-1h", {("replay", "BadFormat")}),
        ("?replay=1h&replay=2h", {("replay", "Repeated")}),
        ("?replay=", {("replay", "Empty")}),
        ("?fields=id&orderBy=name", {("fields", "UnknownParameter"), ("orderBy", "UnknownParameter")}),
    ],
)
def test_wrong_parameters(memory_client: Fleet, query: str, expected: set[tuple[str, str]]) -> None:
    response = memory_client.post(f"/policy:simulate{query}", content=NOTHING.encode())
    assert errors_of(response, 400, "InvalidQuery") == expected


def test_bodies_that_cannot_be_a_policy(memory_client: Fleet) -> None:
    image = {"Content-Type": "image/png"}
    problem_of(memory_client.post("/policy:simulate", content=b"x", headers=image), 415, "UnsupportedMediaType")
    assert errors_of(memory_client.post("/policy:simulate", content=b"\xff")) == {("", "BadEncoding")}


def test_what_is_no_character_can_be_told(memory_client: Fleet) -> None:
    response = memory_client.post("/policy:simulate", content=b'{"\\ud83d": 1, "\\ud83d\\ude00": 2}')
    pointers = {error["pointer"] for error in problem_of(response, 422, "InvalidPolicy")["errors"]}
    assert pointers >= {"/\N{REPLACEMENT CHARACTER}", "/\U0001f600"}


def test_what_is_likely_wrong_is_told(memory_client: Fleet) -> None:
    (warning,) = simulate(memory_client, "requiredAdapters: [dns]\n")["warnings"]
    assert (warning["code"], warning["line"]) == ("UnreachablePhase", 1)
    assert memory_client.get("/policy").json()["warnings"] == [], "that of the policy in force is another matter"


def test_the_past_is_lived_again(client: Fleet) -> None:
    cluster = client.create()
    client.create("other")
    for adapter, said in (("validation", "True"), ("dns", "False/Broken/no such zone"), ("dns", "True")):
        client.clock.pass_time(MINUTE)
        client.report(cluster, adapter, said)
    client.clock.pass_time(MINUTE)
    replay = simulate(client, FEWER_ADAPTERS, "?replay=7d")["replay"]
    assert (replay["complete"], replay["resources"], replay["reports"], replay["differing"]) == (True, 2, 3, 1)
    assert [each.partition(":")[0] for each in replay["inexact"]] == ["staleness", "missing adapters"]
    (life,) = replay["lives"]
    assert (life["id"], life["href"]) == (cluster["id"], cluster["href"])
    (phase,) = [story for story in life["subjects"] if story["subject"] == "phase"]
    assert [each["state"] for each in phase["present"]] == ["Pending", "Provisioning", "Failed", "Ready"]
    assert [each["state"] for each in phase["candidate"]] == ["Pending", "Ready"]
    (counted,) = [row for row in replay["subjects"] if row["subject"] == "phase"]
    assert (counted["present"]["transitions"], counted["candidate"]["transitions"]) == (3, 1)
    total = {side: sum(counted[side]["seconds"].values()) for side in ("present", "candidate")}
    assert total["present"] == pytest.approx(total["candidate"])
    assert "replay" not in simulate(client, FEWER_ADAPTERS)


EXPENSIVE = "requiredAdapters: [dns]\nclusterConditions:\n" + "".join(
    f"  - {{type: R{place}, evaluate: {{expr: 'count(1..900, count(1..{900 + place}, # > 0) > 90) > 899'}}}}\n"
    f"  - {{type: S{place}, evaluate: {{expr: 'count(1..300, count(1..{90 + place}, # > 0) > 90) > 299'}}}}\n"
    for place in range(30)
)


def test_a_policy_that_is_too_expensive_is_a_problem(memory_client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_cost, "FREE_STEPS", 500_000)
    for number in range(8):
        memory_client.create(f"c{number}")
    refused = memory_client.post("/policy:simulate", content=EXPENSIVE.encode(), headers=YAML)
    problem = problem_of(refused, 422, "PolicyTooExpensive")
    assert "for each, after the first 500,000" in problem["detail"]
    stream = memory_client.post("/policy:simulate", content=EXPENSIVE.encode(), headers=STREAM).text
    assert "event: failed\ndata: {" in stream
    assert '"code":"PolicyTooExpensive"' in stream
    assert simulate(memory_client, NOTHING)["examined"] == 8, "the next simulation may run"
