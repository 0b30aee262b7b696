"""The policy over HTTP: reading it, and putting another one in force."""

from __future__ import annotations

from tests.api.fleet import POLICY, Fleet, problem_of

OTHER = "requiredAdapters: [dns]\n"
DOUBTFUL = """requiredAdapters: [dns]
clusterConditions:
  - type: Haunted
    evaluate: {expr: 'adapters["ghost"].state == "Completed"'}
phases: {ready: {requiredConditions: [{type: Ready, status: "True"}]}}
"""


def test_the_policy_in_force(client: Fleet) -> None:
    policy = client.get("/policy").json()
    assert policy["version"] == 1
    assert policy["file"] == "policy.yaml"
    assert policy["text"] == POLICY
    assert policy["recomputation"] == {"remaining": 0}
    assert policy["warnings"] == []
    assert policy["source"] == "file"
    assert policy.keys() == {"version", "digest", "source", "file", "activatedAt", "text", "recomputation", "warnings"}


def test_another_policy_is_put_in_force(client: Fleet) -> None:
    client.create()
    before = client.get("/policy").json()
    client.policy = OTHER
    answer = client.post("/policy:reload")
    assert answer.status_code == 200
    after = answer.json()
    assert (after["version"], after["text"]) == (2, OTHER)
    assert after["digest"] != before["digest"]
    assert after["recomputation"] == {"remaining": 1}
    assert client.get("/policy").json() == after


def test_the_same_policy_again_changes_nothing(client: Fleet) -> None:
    before = client.get("/policy").json()
    client.policy = f"# said otherwise\n{POLICY}"
    assert client.post("/policy:reload").json() == before


def test_a_policy_with_problems_is_refused_with_every_place(memory_client: Fleet) -> None:
    before = memory_client.get("/policy").json()
    memory_client.policy = "requiredAdapters: dns\nclusterConditions:\n  - type: A\n    evaluate: {expr: '1 +'}\n"
    problem = problem_of(memory_client.post("/policy:reload"), 422, "InvalidPolicy")
    places = {(error["pointer"], error["line"], error["column"]) for error in problem["errors"]}
    assert places == {("/requiredAdapters", 1, 19), ("/clusterConditions/0/evaluate/expr", 4, 25)}
    assert all(error["message"] and error["code"] for error in problem["errors"])
    assert memory_client.get("/policy").json() == before


def test_one_problem_is_not_called_problems(memory_client: Fleet) -> None:
    memory_client.policy = "requiredAdapter: [dns]\n"
    problem = problem_of(memory_client.post("/policy:reload"), 422, "InvalidPolicy")
    assert problem["detail"] == "policy.yaml has 1 problem; the policy in force does not change"


def test_what_is_likely_wrong_is_told_as_a_warning(memory_client: Fleet) -> None:
    memory_client.policy = DOUBTFUL
    (warning,) = memory_client.post("/policy:reload").json()["warnings"]
    assert (warning["code"], warning["line"], warning["column"]) == ("UnconfiguredAdapter", 4, 22)
    assert "names the adapter ghost" in warning["message"]
    assert memory_client.get("/policy").json()["warnings"] == [warning]


def test_a_body_is_not_looked_at(memory_client: Fleet) -> None:
    assert memory_client.post("/policy:reload", content=b"\xff{").status_code == 200
    assert memory_client.get("/policy:reload").headers["allow"] == "POST"
