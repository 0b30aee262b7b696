"""Configuration files of the Go sentinel: the same decisions, and every difference is reported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperfleet.sentinel.go_decision import GoSentinel
from hyperfleet.sentinel.go_files import is_go_file, load_go_sentinel

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

SAMPLE = """\
sentinel: {name: pulse}
clients:
  hyperfleet_api: {base_url: http://localhost:8000, timeout: 5s, page_size: 50, auth: {token_path: /t}}
  broker: {topic: ns-clusters}
log: {level: debug}
resource_type: clusters
poll_interval: 2s
resource_selector:
  - {label: region, value: us-east}
  - {label: "tier", value: gold}
message_decision:
  params:
    - {name: ref_time, expr: 'condition("Reconciled").last_updated_time'}
    - {name: is_old, expr: 'ref_time != "" && now - timestamp(ref_time) > duration("2m")'}
  result: is_old || condition("Reconciled").status != "True"
message_data:
  id: resource.id
  kind: resource.kind
  generation: resource.generation
  why: reason
  constant: '"text"'
  number: 5
  owner: {id: resource.owner_references.id}
"""


def load_good(text: str) -> GoSentinel:
    loaded = load_go_sentinel(text, "c.yaml")
    assert loaded.sentinel is not None, loaded.problems
    return loaded.sentinel


def make_resource(
    status: str = "", age: int = 0, generation: int = 1, observed: int = 1, **more: Any
) -> dict[str, Any]:
    """Return a resource in the form of the compat API; without a status it has no conditions."""
    time = (NOW - timedelta(seconds=age)).isoformat().replace("+00:00", "Z")
    reconciled = {
        "type": "Reconciled",
        "status": status,
        "observed_generation": observed,
        "last_updated_time": time,
    }
    return {
        "id": "cls-1",
        "kind": "Cluster",
        "href": "/api/hyperfleet/v1/clusters/cls-1",
        "generation": generation,
        "spec": {"size": 3},
        "status": {"conditions": [{"type": "Other"}, reconciled] if status else []},
        **more,
    }


@pytest.mark.parametrize(
    ("resource", "is_wanted", "code", "because"),
    [
        (make_resource("True", 5), False, "notMatched", "reconciled lately"),
        (make_resource("True", 1800), False, "notMatched", "exactly 30m is not more than 30m"),
        (make_resource("True", 1801), True, "matched", "reconciled, and not looked at for 30m"),
        (make_resource("False", 10), False, "notMatched", "exactly 10s"),
        (make_resource("False", 11), True, "matched", "not reconciled for more than 10s"),
        (make_resource("True", 0, generation=3, observed=2), True, "matched", "the generation is ahead"),
        (make_resource(), False, "noAdapters", "Go would ask in every pass, for ever"),
        ({"status": None, "generation": 1}, False, "noAdapters", "also without a status"),
        (make_resource("True", 5) | {"generation": "x"}, False, "failed", "an error skips the resource"),
    ],
)
def test_the_default_decision(resource: dict[str, Any], is_wanted: bool, code: str, because: str) -> None:
    decision = load_good("resource_type: clusters\n").decide(resource, NOW)
    assert (decision.is_wanted, decision.code) == (is_wanted, code), because


def test_a_sample_file() -> None:
    sentinel = load_good(SAMPLE)
    assert (sentinel.name, sentinel.resource_type, sentinel.poll_interval) == (
        "pulse",
        "clusters",
        timedelta(seconds=2),
    )
    assert sentinel.labels == (("region", "us-east"), ("tier", "gold"))
    assert sentinel.decide(make_resource("True", 121), NOW) == (True, "message decision matched", "matched")
    assert sentinel.decide(make_resource("True", 120), NOW) == (False, "message decision result is false", "notMatched")
    assert sentinel.decide(make_resource("False", 0), NOW).is_wanted


def test_the_data_of_an_event() -> None:
    sentinel = load_good(SAMPLE)
    owner = {"id": "cls-0", "kind": "Cluster"}
    expected = {"id": "cls-1", "kind": "Cluster", "generation": 1, "why": "r", "constant": "text", "number": 5}
    built = sentinel.data(make_resource("True", owner_references=owner), "r")
    assert built == (expected | {"owner": {"id": "cls-0"}}, ())
    built = sentinel.data(make_resource("True"), "r")
    assert built.data == expected, "a field that is not there is left out, and an object left empty"
    assert built.omitted == ('owner.id: Key not found in map : "owner_references"',)


def test_the_default_data_is_the_usual_identity() -> None:
    built = load_good("resource_type: nodepools\n").data(make_resource("True", owner_references={"id": "o"}), "r")
    assert built.data == {
        "id": "cls-1",
        "kind": "Cluster",
        "href": "/api/hyperfleet/v1/clusters/cls-1",
        "generation": 1,
        "owner_references": {"id": "o"},
    }
    built = load_good("resource_type: clusters\n").data(make_resource("True"), "r")
    assert "owner_references" not in built.data
    assert built.omitted == (), "a cluster has no owner, and that is nothing to report"


@pytest.mark.parametrize(
    ("expr", "result", "reason"),
    [
        ("resource.spec.nope", "a == 1", 'param "a" evaluation failed: Key not found in map : "nope"'),
        ("resource.spec.size", "a", "result evaluation failed: the result must be bool, and is int"),
        ("'\"x\"'", "resource.nope == a", 'result evaluation failed: Key not found in map : "nope"'),
    ],
)
def test_a_failure_skips_with_the_reason(expr: str, result: str, reason: str) -> None:
    text = f"resource_type: clusters\nmessage_decision: {{params: [{{name: a, expr: {expr}}}], result: {result}}}\n"
    assert load_good(text).decide(make_resource("True"), NOW) == (False, reason, "failed")


def test_an_absent_condition_has_empty_fields() -> None:
    fields = ("status", "last_updated_time", "last_transition_time", "reason", "message")
    all_empty = " && ".join(f'condition("Nope").{field} == ""' for field in fields)
    text = (
        f"resource_type: c\nmessage_decision: {{result: '{all_empty} && condition(\"Nope\").observed_generation == 0'}}"
    )
    assert load_good(text).decide(make_resource("True"), NOW).is_wanted


def test_times_of_conditions_may_be_times() -> None:
    resource = make_resource("True", 60)
    resource["status"]["conditions"][1]["last_updated_time"] = NOW - timedelta(hours=1)
    assert load_good("resource_type: clusters\n").decide(resource, NOW).is_wanted


def test_times_may_be_params() -> None:
    text = """
resource_type: clusters
message_decision:
  params:
    - {name: late, expr: now - created > limit}
    - {name: limit, expr: duration("5m")}
    - {name: created, expr: timestamp(resource.created_time)}
  result: late
"""
    loaded = load_go_sentinel(text)
    assert loaded.sentinel is not None
    assert loaded.sentinel.decide({"created_time": "2026-01-01T11:50:00Z"}, NOW).is_wanted
    assert not loaded.sentinel.decide({"created_time": "2026-01-01T11:55:00Z"}, NOW).is_wanted
    assert [each.message.split(" is below")[0] for each in loaded.problems if each.place.line == 5] == [
        "created", "limit",
    ]  # fmt: skip


def test_differences_are_warnings() -> None:
    text = SAMPLE.replace("result: is_old", "result: has(resource.deleted_time) || is_old")
    loaded = load_go_sentinel(text, "c.yaml")
    assert loaded.sentinel is not None
    assert {each.level for each in loaded.problems} == {"warning"}
    assert {each.code for each in loaded.problems} == {"GoDifference"}
    assert [(each.place.line, each.message.partition(" ")[0]) for each in loaded.problems] == [
        (2, "clients"),
        (5, "log"),
        (15, "the"),
    ]
    assert "deleted_time" in loaded.problems[2].message


@pytest.mark.parametrize(
    ("old", "new", "place", "message", "because"),
    [
        ("resource_type: clusters\n", "", (1, 1), 'the key "resource_type" is missing', "it is needed"),
        ("clusters\n", "../x\n", (6, 16), "expected a plural such as clusters", "it is part of a path"),
        ("poll_interval: 2s", "poll_interval: 0s", (7, 16), "must be longer than 0s", "a pass takes time"),
        ("poll_interval", "poll_intervall", (7, 1), 'unknown key "poll_intervall"', "a typo"),
        ("page_size: 50", "page_size: 501", (3, 77), "expected at most 500", "as in Go"),
        ("name: is_old", "name: ref_time", (14, 14), "there is already a param ref_time", "a name twice"),
        ("name: is_old", "name: now", (14, 14), "the name now has a meaning of its own", "hidden otherwise"),
        ("name: is_old", "name: map", (14, 14), "the name map has a meaning of its own", "a type"),
        ("name: is_old", "name: is-old", (14, 14), "expected a name of letters", "that is a subtraction"),
        ("result: is_old", "result: is_odd", (15, 11), "undeclared reference to 'is_odd'", "a typo"),
        ('!= "True"', "== 1 + ''", (15, 57), "found no matching overload", "types are checked"),
        (
            "why: reason",
            "why: condition(reason)",
            (20, 17),
            "undeclared reference to 'condition'",
            "not here, as in Go",
        ),
        ("why: reason", "why: ''", (20, 8), "expected a CEL expression", "nothing"),
        ("why: reason", "why: [a]", (20, 8), "expected a CEL expression", "a list"),
        ("why: reason", "why: {}", (20, 8), "must not be empty", "an empty object"),
        ("why: reason", "why: resource.?x", (20, 8), "unsupported syntax '.?'", "Go's sentinel has no optionals"),
    ],
)
def test_problems_have_a_place(old: str, new: str, place: tuple[int, int], message: str, because: str) -> None:
    assert old in SAMPLE
    loaded = load_go_sentinel(SAMPLE.replace(old, new), "c.yaml")
    assert loaded.sentinel is None
    errors = [each for each in loaded.problems if each.level == "error"]
    found = [((each.place.line, each.place.column), each.message[: len(message)]) for each in errors]
    assert (place, message) in found, because


def test_params_that_need_each_other() -> None:
    text = "resource_type: c\nmessage_decision:\n  params: [{name: a, expr: b}, {name: b, expr: a}]\n  result: a\n"
    errors = [each for each in load_go_sentinel(text).problems if each.level == "error"]
    assert [(each.code, each.message) for each in errors] == [
        ("Cycle", "these params need each other or themselves: a, b")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SAMPLE, True),
        ("resource_type: x", True),
        ("rules: []\n", False),
        ("ages:\n  resource_type: 5\n", False),
        ("", False),
    ],
)
def test_files_of_go_are_recognized(text: str, expected: bool) -> None:
    assert is_go_file(text) is expected
