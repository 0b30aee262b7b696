"""`:diff`: what is different between then and later, or to another resource."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from hyperfleet.api.difference_wire import MAX_DIFFERENCES, Side, find_differences
from hyperfleet.services.past import write_time
from tests.api.fleet import Fleet, errors_of, path_of, problem_of
from tests.api.lives import pass_time

TEXT = {"Accept": "text/plain"}


def diff(client: Fleet, resource: dict[str, Any], **query: Any) -> dict[str, Any]:
    """Return the differences, which there must be an answer about; `from_` is `from`."""
    pass_time(client)
    params = {
        name.rstrip("_"): write_time(value) if isinstance(value, datetime) else value for name, value in query.items()
    }
    response = client.get(f"{path_of(resource)}:diff", params=params)
    assert response.status_code == 200, response.text
    return dict(response.json())


def by_path(told: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what was and what is, by path; `…` stands for what was not there."""
    return {each["path"]: (each.get("from", "…"), each.get("to", "…")) for each in told["items"]}


def test_what_an_incident_changed(client: Fleet) -> None:
    cluster = client.create()
    for adapter in ("validation", "dns"):
        client.report(cluster, adapter)
    then = pass_time(client)
    pass_time(client)
    client.report(cluster, "dns", "False/Broken/no such zone")
    client.report(cluster, "monitoring")
    told = diff(client, cluster, from_=then)
    assert told["summary"] == (
        "phase Ready → Failed; Available True → False (AdaptersNotAvailable); Ready True → False (AdaptersFailed); "
        "AllDone True → False (NotAllDone); dns Completed → Failed; monitoring is new: Completed"
    )
    found = by_path(told)
    assert found["/status/phase"] == ("Ready", "Failed")
    assert found["/status/conditions/Ready/status"] == ("True", "False")
    assert found["/status/adapters/dns/state"] == ("Completed", "Failed")
    was, became = found["/status/adapters/monitoring"]
    assert (was, became["state"]) == ("…", "Completed")
    assert {each["path"]: each["kind"] for each in told["items"]}["/status/adapters/monitoring"] == "added"
    assert not [path for path in found if path.endswith(("lastUpdated", "lastTransitionTime", "since", "phaseSince"))]
    assert told["timesChanged"] > 4
    assert (told["total"], told["truncated"]) == (len(told["items"]), False)
    assert told["from"] == {
        "id": cluster["id"],
        "href": cluster["href"],
        "revision": told["from"]["revision"],
        "generation": 1,
        "time": write_time(then),
    }
    assert "time" not in told["to"]
    assert client.get(path_of(cluster)).headers["etag"] == f'"{told["to"]["revision"]}"'


def test_edits_and_deletion(client: Fleet) -> None:
    cluster = client.create(spec={"region": "a", "nodes": {"count": 3}, "zones": ["a", "b"]}, labels={"tier": "web"})
    client.report(cluster, "dns", "False/Broken")
    then = pass_time(client)
    pass_time(client)
    client.put(path_of(cluster), {"spec": {"nodes": {"count": 3.0}, "zones": ["a", "c", "d"]}, "labels": {"a/b": "x"}})
    later = pass_time(client)
    pass_time(client)
    client.delete(path_of(cluster))
    found = by_path(diff(client, cluster, from_=then, to=later))
    assert {path: values for path, values in found.items() if path.startswith(("/spec", "/metadata", "/gen"))} == {
        "/generation": (1, 2),
        "/spec/region": ("a", "…"),
        "/spec/nodes/count": (3, 3.0),
        "/spec/zones/1": ("b", "c"),
        "/spec/zones/2": ("…", "d"),
        "/metadata/labels/tier": ("web", "…"),
        "/metadata/labels/a~1b": ("…", "x"),
    }
    told = diff(client, cluster, from_=then)
    assert told["summary"].startswith("phase Failed → Deleting; ")
    assert told["summary"].endswith("generation 1 → 3; deletion requested; spec: 4 differences; labels: 2 differences")


def test_times_are_folded(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns")
    then = pass_time(client)
    pass_time(client)
    client.report(cluster, "dns", "False/Broken")
    pass_time(client)
    client.report(cluster, "dns")
    told = diff(client, cluster, from_=then)
    assert (told["summary"], told["items"], told["total"]) == ("nothing but times", [], 0)
    times = told["timesChanged"]
    told = diff(client, cluster, from_=then, times="true")
    assert {"/status/adapters/dns/stateSince", "/status/phaseSince", "/status/lastUpdated"} <= set(by_path(told))
    assert (told["summary"], told["timesChanged"]) == ("nothing but times", times)
    now = pass_time(client)
    told = diff(client, cluster, from_=now)
    assert (told["summary"], told["items"], told["timesChanged"]) == ("no difference", [], 0)


def test_against_another(client: Fleet) -> None:
    one = client.create("one", spec={"region": "a"})
    two = client.create("two", spec={"region": "b"})
    client.report(two, "dns", "False/Broken")
    told = diff(client, one, against=two["id"])
    assert (told["from"]["id"], told["to"]["id"]) == (one["id"], two["id"])
    found = by_path(told)
    assert found["/spec/region"] == ("a", "b")
    assert found["/status/phase"] == ("Pending", "Failed")
    assert found.keys().isdisjoint({"/id", "/href", "/name"})
    assert diff(client, one, against=one["id"])["summary"] == "no difference"


def test_node_pools_of_different_clusters(client: Fleet) -> None:
    one, two = client.create("one"), client.create("two")
    first, second = client.create_pool(one), client.create_pool(two)
    told = diff(client, first, against=second["id"])
    assert by_path(told) == {"/metadata/clusterId": (one["id"], two["id"])}
    assert told["summary"] == "1 small difference"


def test_text_for_a_terminal(memory_client: Fleet) -> None:
    cluster = memory_client.create(spec={"gone": "a" * 100, "odd\x1b\x9bkey": 1})
    memory_client.clock.pass_time(timedelta(minutes=10))
    memory_client.put(path_of(cluster), {"spec": {"odd\x1b\x9bkey": 2, "new": [1]}})
    path = f"{path_of(cluster)}:diff?from=5m"
    response = memory_client.get(path, headers=TEXT)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.splitlines() == [
        f"from {cluster['id']} 2025-10-17T12:05:00Z (revision 1, generation 1)",
        f"to   {cluster['id']} now (revision 2, generation 2)",
        "generation 1 → 2; spec: 3 differences",
        "  ~ /generation                                    1 → 2",
        f'  - /spec/gone                                     "{"a" * 58}…',
        "  ~ /spec/odd\\u001b\\u009bkey                       1 → 2",
        "  + /spec/new                                      [1]",
        "  ~ /status/conditions/Ready/observedGeneration    1 → 2",
        "  ~ /status/conditions/AllDone/observedGeneration  1 → 2",
        "  2 times left out; times=true shows them",
    ]
    whole = memory_client.get(f"{path}&times=true", headers=TEXT).text
    assert "  ~ /metadata/updatedAt " in whole
    assert "left out" not in whole
    again = memory_client.get(path, headers={**TEXT, "If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    assert "Accept" in response.headers["vary"]


def test_many_differences_are_counted_and_cut(memory_client: Fleet) -> None:
    cluster = memory_client.create(spec={})
    memory_client.clock.pass_time(timedelta(minutes=1))
    memory_client.patch(path_of(cluster), {"spec": {f"k{number}": 1 for number in range(MAX_DIFFERENCES)}})
    told = diff(memory_client, cluster, from_="30s")
    assert (len(told["items"]), told["total"], told["truncated"]) == (MAX_DIFFERENCES, MAX_DIFFERENCES + 3, True)
    text = memory_client.get(f"{path_of(cluster)}:diff?from=30s", headers=TEXT).text
    assert "  … and 3 more\n" in text


def test_who_was_not_there(client: Fleet) -> None:
    before = pass_time(client)
    pass_time(client)
    cluster, other = client.create("one"), client.create("two")
    pool = client.create_pool(other)
    then = pass_time(client)
    pass_time(client)
    path = f"{path_of(cluster)}:diff"
    for query in ("?against=cls-none", f"?against={pool['id']}", "?against=no%20id"):
        problem_of(client.get(f"{path}{query}"), 404, "NotFound")
    problem_of(client.get("/clusters/cls-none:diff?from=5m"), 404, "NotFound")
    problem = problem_of(client.get(path, params={"from": write_time(before)}), 404, "NotFound")
    assert "it was created" in problem["detail"]
    client.delete(path_of(cluster))
    client.post(f"{path_of(cluster)}/force-delete", {"reason": "the account was closed"})
    now = pass_time(client)
    problem = problem_of(client.get(path, params={"from": write_time(then)}), 404, "NotFound")
    assert "it was removed" in problem["detail"]
    assert diff(client, cluster, from_=then, to=then)["summary"] == "no difference"
    problem_of(client.get(path, params={"from": write_time(then), "to": write_time(now)}), 404, "NotFound")


@pytest.mark.parametrize(
    ("query", "expected", "because"),
    [
        ("", {("from", "MissingParameter")}, "there is nothing to compare it with"),
        ("?to=1m", {("from", "MissingParameter")}, "an end without a beginning"),
        ("?from=1m&to=2m", {("from", "Reversed")}, "the way from later to earlier is hardly meant"),
        ("?from=1m&against=x", {("from", "Exclusive")}, "two things to compare it with"),
        ("?to=1m&against=x", {("to", "Exclusive")}, "another one is compared as it is now"),
        ("?from=2099-01-01T00:00:00Z", {("from", "InTheFuture")}, "nobody knows"),
        ("?from=x&to=y", {("from", "BadFormat"), ("to", "BadFormat")}, "everything wrong is told at once"),
        ("?from=1m&times=yes", {("times", "NotAllowed")}, "true or false"),
        ("?from=1m&at=1m", {("at", "UnknownParameter")}, "what is not read must not be ignored"),
    ],
)
def test_wrong_parameters(memory_client: Fleet, query: str, expected: set[tuple[str, str]], because: str) -> None:
    path = path_of(memory_client.create())
    assert errors_of(memory_client.get(f"{path}:diff{query}"), 400, "InvalidQuery") == expected, because


READY = {"type": "Ready", "status": "True", "reason": "AllWell", "lastTransitionTime": "2025-10-17T12:00:00Z"}
DNS = {"name": "dns", "state": "Completed", "stale": False, "since": "2025-10-17T12:00:00Z"}
MARK = {"transitions": 5, "window": "10m", "since": "2025-10-17T12:00:00Z"}
DELETED = {"deletionTimestamp": "2025-10-17T12:00:00Z"}


def document(
    phase: str = "Ready", conditions: Any = (READY,), adapters: Any = (DNS,), more: Any = None, metadata: Any = None
) -> bytes:
    """Write as much of an answer as is looked at."""
    status = {"phase": phase, "conditions": conditions, "adapters": adapters, **(more or {})}
    identity = {"id": "cls-1", "href": "/cls-1", "name": "a", "generation": 1}
    return msgspec.json.encode({**identity, "metadata": {"labels": {}, **(metadata or {})}, "status": status})


def ready(**more: Any) -> tuple[dict[str, Any]]:
    return ({**READY, **more},)


@pytest.mark.parametrize(
    ("before", "after", "summary", "because"),
    [
        (document(), document(), "no difference", "the same"),
        (document("Ready"), document("Degraded"), "phase Ready → Degraded", "the phase comes first"),
        (
            document(),
            document(conditions=ready(status="False", reason="AdaptersFailed")),
            "Ready True → False (AdaptersFailed)",
            "with the reason of now, and once",
        ),
        (
            document(),
            document(conditions=ready(status="Unknown", reason="")),
            "Ready True → Unknown",
            "a condition may have no reason",
        ),
        (
            document(),
            document(conditions=ready(reason="Else")),
            "Ready still True (AllWell → Else)",
            "another reason is news, too",
        ),
        (document(), document(conditions=()), "Ready is gone", "the policy no longer has it"),
        (document(conditions=()), document(), "Ready is new: True", "the policy has it now"),
        (document(), document(adapters=()), "dns is gone", "it was retired"),
        (document(adapters=()), document(), "dns is new: Completed", "it reported for the first time"),
        (document(), document(adapters=({**DNS, "state": "Failed"},)), "dns Completed → Failed", "by its state"),
        (document(), document(adapters=({**DNS, "stale": True},)), "dns is stale", "silence is no state"),
        (document(adapters=({**DNS, "stale": True},)), document(), "dns is no longer stale", "it was heard again"),
        (document(), document(conditions=ready(flapping=MARK)), "Ready is flapping", "the mark of a condition"),
        (document(more={"phaseFlapping": MARK}), document(), "phase is no longer flapping", "the mark of the phase"),
        (document(), document(metadata=DELETED), "deletion requested", "somebody wants it gone"),
        (document(metadata=DELETED), document(), "deletion not requested", "of another one, nobody does"),
        (document(), document(conditions=ready(message="x")), "1 small difference", "no line can tell everything"),
        (document(), document(adapters=({**DNS, "since": "…"},)), "nothing but times", "nothing happened"),
        (
            document(metadata={"labels": {"since": "a"}}),
            document(metadata={"labels": {"since": "b"}}),
            "labels: 1 difference",
            "labels are called as people like",
        ),
        (
            document(adapters=()),
            document("Failed", adapters=[{**DNS, "name": f"a{number}"} for number in range(20)]),
            "phase Ready → Failed; " + "".join(f"a{number} is new: Completed; " for number in range(11)) + "and 9 more",
            "one line has an end",
        ),
    ],
)
def test_summaries(before: bytes, after: bytes, summary: str, because: str) -> None:
    assert find_differences(Side(before, 1), Side(after, 2), with_times=False).summary == summary, because
