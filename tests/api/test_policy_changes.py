"""The policy at run time, over HTTP: replacing it, checking one, its versions, going back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.ports import NewPolicy
from tests.api.fleet import POLICY, Fleet, HandClock, errors_of, problem_of
from tests.api.guarding import GuardedFleet, known, open_guarded

OTHER = "# for now\nrequiredAdapters: [dns]\n"
BROKEN = "requiredAdapters: dns\nclusterConditions:\n  - type: A\n    evaluate: {expr: '1 +'}\n"
DOUBTFUL = """requiredAdapters: [dns]
clusterConditions:
  - type: Haunted
    evaluate: {expr: 'adapters["ghost"].state == "Completed"'}
"""
YAML = {"Content-Type": "application/yaml"}


def put(
    client: Fleet, text: str | bytes, if_match: str | None = '"1"', query: str = "", **headers: str
) -> httpx.Response:
    """Put a policy in place of a version."""
    given = {**YAML, **({} if if_match is None else {"If-Match": if_match}), **headers}
    return client.request("PUT", f"/policy{query}", content=text, headers=given)


def roll_back(client: Fleet, version: object, if_match: str = "*") -> httpx.Response:
    """Go back to a version."""
    return client.post("/policy:rollback", {"version": version}, headers={"If-Match": if_match})


def applied(client: Fleet, text: str, if_match: str = "*") -> dict[str, Any]:
    """Put a policy, which must succeed, and return the answer."""
    answer = put(client, text, if_match)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


# ── putting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_is_put_in_force(client: Fleet) -> None:
    cluster = client.create()
    before = client.get("/policy")
    answer = put(client, OTHER, before.headers["etag"])
    assert answer.status_code == 200, answer.text
    policy = answer.json()
    assert (policy["version"], policy["text"], policy["source"], policy["file"]) == (2, OTHER, "api", "")
    assert policy["digest"] != before.json()["digest"]
    assert policy["recomputation"] == {"remaining": 1}
    assert [warning["code"] for warning in policy["warnings"]] == ["UnreachablePhase"]
    assert policy["by"] == "anonymous", "nobody is asked who they are here"
    again = client.get("/policy")
    assert again.json() == policy
    assert again.headers["etag"] == answer.headers["etag"]
    assert answer.headers["cache-control"] == "no-store"
    client.report(cluster, "dns")
    names = [adapter["name"] for adapter in client.get(f"/clusters/{cluster['id']}").json()["status"]["adapters"]]
    assert names == ["dns"], "statuses are computed with it from now on"


def test_json_is_a_policy_too(memory_client: Fleet) -> None:
    answer = memory_client.put("/policy", {"requiredAdapters": ["dns"]}, headers={"If-Match": '"1"'})
    assert answer.status_code == 200
    assert answer.json()["digest"] == applied(memory_client, OTHER)["digest"]


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
def test_who_replaces_a_policy_says_which(memory_client: Fleet, query: str) -> None:
    problem = problem_of(put(memory_client, OTHER, None, query), 428, "PreconditionRequired")
    assert "If-Match" in problem["detail"]
    applied(memory_client, DOUBTFUL)
    for stale in ('"1"', '"7", "8"', '"0"', '"abc"', 'W/"2"'):
        problem = problem_of(put(memory_client, OTHER, stale, query), 412, "PreconditionFailed")
        assert problem["detail"] == "version 2 of the policy is in force"
    assert errors_of(put(memory_client, OTHER, "2", query), code="InvalidHeader") == {("If-Match", "BadFormat")}
    for good in ('"2"', '"1", "2"', "*", memory_client.get("/policy").headers["etag"], '"2.ab-gzip"'):
        assert put(memory_client, OTHER, good, "?dryRun=true").status_code == 200
    assert memory_client.get("/policy").json()["version"] == 2


def test_a_rollback_says_which_version_it_replaces(memory_client: Fleet) -> None:
    applied(memory_client, OTHER)
    problem_of(memory_client.post("/policy:rollback", {"version": 1}), 428, "PreconditionRequired")
    problem_of(roll_back(memory_client, 1, '"1"'), 412, "PreconditionFailed")
    assert memory_client.get("/policy").json()["version"] == 2


def test_the_tag_moves_with_what_is_shown(client: Fleet) -> None:
    client.create()
    tag = client.get("/policy").headers["etag"]
    assert tag.startswith('"1.')
    assert client.get("/policy", headers={"If-None-Match": tag}).status_code == 304
    client.create("second")  # nothing of the policy, or of what is to be recomputed
    assert client.get("/policy", headers={"If-None-Match": tag}).status_code == 304
    applied(client, OTHER)
    changed = client.get("/policy", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"].startswith('"2.')


def test_what_says_the_same_makes_no_version(client: Fleet) -> None:
    policy = applied(client, f"# other words\n{POLICY}")
    assert (policy["version"], policy["text"], policy["source"]) == (1, POLICY, "file")
    assert len(client.get("/policy/versions").json()["items"]) == 1


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
def test_a_policy_with_problems_is_refused_with_every_place(memory_client: Fleet, query: str) -> None:
    before = memory_client.get("/policy").json()
    problem = problem_of(put(memory_client, BROKEN, query=query), 422, "InvalidPolicy")
    assert problem["detail"] == "the body has 2 problems; the policy in force does not change"
    places = {(error["pointer"], error["line"], error["column"]) for error in problem["errors"]}
    assert places == {("/requiredAdapters", 1, 19), ("/clusterConditions/0/evaluate/expr", 4, 25)}
    assert memory_client.get("/policy").json() == before


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        (b"\xff\xfe", 400, "InvalidBody"),
        (b"", 422, "InvalidPolicy"),
        (b"requiredAdapters: [dns] # \x00\n", 422, "InvalidPolicy"),
        (b"[1, 2", 422, "InvalidPolicy"),
        (b"requiredAdapters: [dns]\n" + b"#" * 2_000_000, 413, "BodyTooLarge"),
    ],
)
def test_what_is_no_policy_changes_nothing(client: Fleet, text: bytes, status: int, code: str) -> None:
    problem_of(put(client, text), status, code)
    assert client.get("/policy").json()["version"] == 1


def test_other_media_types_and_parameters_are_refused(memory_client: Fleet) -> None:
    answer = put(memory_client, OTHER, **{"Content-Type": "application/xml"})
    problem_of(answer, 415, "UnsupportedMediaType")
    assert errors_of(put(memory_client, OTHER, query="?dryRun=maybe"), code="InvalidQuery") == {("dryRun", "BadFormat")}
    errors = errors_of(put(memory_client, OTHER, query="?dryrun=true"), code="InvalidQuery")
    assert errors == {("dryrun", "UnknownParameter")}
    assert memory_client.get("/policy").json()["version"] == 1


def test_a_dry_run_tells_what_is_likely_wrong_and_changes_nothing(client: Fleet) -> None:
    check = put(client, DOUBTFUL, query="?dryRun=true").json()
    (warning,) = [each for each in check.pop("warnings") if each["code"] == "UnconfiguredAdapter"]
    assert (warning["line"], warning["column"]) == (4, 22)
    assert check.pop("digest")
    assert check == {"dryRun": True, "changes": True, "inForce": 1}
    same = put(client, f"# other words\n{POLICY}", query="?dryRun=true").json()
    assert (same["changes"], same["digest"]) == (False, client.get("/policy").json()["digest"])
    assert len(client.get("/policy/versions").json()["items"]) == 1
    assert put(client, OTHER, query="?dryRun=false").json()["version"] == 2


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_versions_are_listed_the_newest_first(client: Fleet) -> None:
    applied(client, OTHER)
    roll_back(client, 1)
    items = client.get("/policy/versions").json()["items"]
    assert [(item["version"], item["source"], item["inForce"]) for item in items] == [
        (3, "api", True),
        (2, "api", False),
        (1, "file", False),
    ]
    assert items[0]["restores"] == 1
    assert items[0]["digest"] == items[2]["digest"] != items[1]["digest"]
    assert items[2]["file"] == "policy.yaml"
    assert not any("text" in item for item in items)
    assert all(item["activatedAt"] for item in items)


def test_versions_come_in_pages(client: Fleet) -> None:
    for number in range(1, 6):
        applied(client, f"requiredAdapters: [adapter-{number}]")
    found: list[int] = []
    query = "?limit=2"
    while query:
        page = client.get(f"/policy/versions{query}").json()
        found += [item["version"] for item in page["items"]]
        query = f"?limit=2&continue={page['continue']}" if "continue" in page else ""
    assert found == [6, 5, 4, 3, 2, 1]
    wrong = errors_of(client.get("/policy/versions?limit=0&continue=x&page=1"), code="InvalidQuery")
    assert wrong == {("limit", "OutOfRange"), ("continue", "BadFormat"), ("page", "UnknownParameter")}


def test_a_version_can_be_read(client: Fleet) -> None:
    applied(client, OTHER)
    first, second = (client.get(f"/policy/versions/{number}").json() for number in (1, 2))
    assert (first["text"], first["inForce"], first["file"]) == (POLICY, False, "policy.yaml")
    assert (second["text"], second["inForce"], second["source"]) == (OTHER, True, "api")
    plain = client.get("/policy/versions/2", headers={"Accept": "text/plain"})
    assert (plain.text, plain.headers["content-type"]) == (OTHER, "text/plain; charset=utf-8")
    for none in ("3", "0", "-1", "x", "1.0", "9" * 15, "9" * 30):
        problem_of(client.get(f"/policy/versions/{none}"), 404, "NotFound")


# ── going back ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_rollback_is_a_new_version_with_an_old_text(client: Fleet) -> None:
    client.create()
    applied(client, OTHER)
    answer = roll_back(client, 1, '"2"')
    policy = answer.json()
    assert (policy["version"], policy["text"], policy["source"], policy["restores"]) == (3, POLICY, "api", 1)
    assert policy["recomputation"] == {"remaining": 1}
    assert answer.headers["etag"].startswith('"3.')
    assert client.get("/policy").json() == policy


def test_going_back_to_what_is_in_force_changes_nothing(client: Fleet) -> None:
    assert roll_back(client, 1).json()["version"] == 1


def test_only_what_was_can_be_gone_back_to(client: Fleet) -> None:
    problem = problem_of(roll_back(client, 2), 404, "NotFound")
    assert problem["detail"] == "there is no version 2 of the policy"
    for wrong in ("1", 0, None, True, 1.5, 2**60):
        assert errors_of(roll_back(client, wrong)) == {("/version", "WrongType")}
    given = {"headers": {"If-Match": "*"}}
    assert errors_of(client.post("/policy:rollback", {}, **given)) == {("/version", "MissingField")}
    errors = errors_of(client.post("/policy:rollback", {"version": 1, "force": True}, **given))
    assert errors == {("/force", "UnknownField")}


def test_a_version_that_no_longer_compiles_is_refused_with_its_errors(client: Fleet) -> None:
    client.run(client.store.activate_policy(NewPolicy("old", BROKEN, "old.yaml")))
    applied(client, OTHER)
    problem = problem_of(roll_back(client, 2), 422, "InvalidPolicy")
    assert problem["detail"] == "old.yaml has 2 problems; the policy in force does not change"
    assert {error["line"] for error in problem["errors"]} == {1, 4}
    assert client.get("/policy").json()["version"] == 3


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reload_puts_the_file_in_force_although_it_did_not_change(client: Fleet) -> None:
    applied(client, OTHER)
    policy = client.post("/policy:reload").json()
    assert (policy["version"], policy["text"], policy["source"]) == (3, POLICY, "file")


# ── who did it ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def guarded(clock: HandClock, tmp_path: Path) -> Iterator[GuardedFleet]:
    """Give a server that asks callers who they are."""
    with open_guarded(MemoryStore(clock), clock, tmp_path) as guarded:
        yield guarded


def test_versions_tell_who_put_them_there_but_not_to_tenants(guarded: GuardedFleet) -> None:
    headers = {**known("admin"), **YAML, "If-Match": "*"}
    assert guarded.send("PUT", "/policy", headers, content=OTHER.encode()).json()["by"] == "admin"
    assert guarded.act("POST", "/policy:reload").json()["by"] == "admin"
    for path in ("/policy", "/policy/versions/2", "/policy/versions"):
        assert '"by":"admin"' in guarded.act("GET", path).text
        assert '"by"' not in guarded.act("GET", path, name="red-admin").text
