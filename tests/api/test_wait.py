"""Waiting: answered by the first version that is as wanted, or with the reason why there was none."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.ports import Pruning
from hyperfleet.services import tail
from tests.api.fleet import Fleet, errors_of, path_of, problem_of
from tests.api.listening import Connection

FAILED = "False/Broken/no such zone"


def wait(client: Fleet, cluster: dict[str, Any], query: str) -> Connection:
    return Connection(client, f"{path_of(cluster)}:wait?{query}", is_answered=False)


def answer_of(waiting: Connection) -> dict[str, Any]:
    waiting.wait_for(lambda: waiting.is_over)
    return dict(json.loads(waiting.body))


def make_ready(client: Fleet, cluster: dict[str, Any], **more: Any) -> None:
    client.report(cluster, "validation", **more)
    client.report(cluster, "dns", **more)


def remove(client: Fleet, cluster: dict[str, Any]) -> None:
    client.delete(path_of(cluster))
    client.post(f"{path_of(cluster)}/force-delete", {"reason": "test"})


# ── met ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "query",
    [
        "",
        "for=condition=Ready",
        "for=condition=Ready=True&for=phase=Ready",
        "for=adapter=dns&for=adapter=validation=Completed",
        "for=generation=1",
        "for=condition=Ready&failOn=phase=Failed&failOn=deleted",
    ],
)
def test_what_holds_already_is_answered_at_once(client: Fleet, query: str) -> None:
    cluster = client.create()
    make_ready(client, cluster)
    answer = client.get(f"{path_of(cluster)}:wait?{query}")
    assert answer.status_code == 200, answer.text
    now = client.get(path_of(cluster))
    assert answer.json() == {"outcome": "met", "revision": int(now.headers["etag"].strip('"')), "resource": now.json()}


def test_what_comes_later_is_waited_for(client: Fleet) -> None:
    cluster = client.create()
    with wait(client, cluster, "for=condition=Ready&for=phase=Ready&failOn=phase=Failed") as waiting:
        client.report(cluster, "validation")
        client.create("another")
        assert not waiting.is_over
        client.report(cluster, "dns")
        answer = answer_of(waiting)
    assert (waiting.status, answer["outcome"]) == (200, "met")
    assert answer["resource"] == client.get(path_of(cluster)).json()


def test_a_version_that_passed_counts(client: Fleet) -> None:
    cluster = client.create()
    with wait(client, cluster, "for=condition=Ready") as waiting:
        make_ready(client, cluster)
        ready = client.get(path_of(cluster)).json()
        client.report(cluster, "dns", FAILED)
        answer = answer_of(waiting)
    assert answer["resource"] == ready


def test_all_must_hold_of_one_version(client: Fleet) -> None:
    cluster = client.create()
    with wait(client, cluster, "for=adapter=dns&for=adapter=validation") as waiting:
        client.report(cluster, "dns")
        client.report(cluster, "dns", FAILED)
        client.report(cluster, "validation")
        assert not waiting.is_over
        client.clock.pass_time(timedelta(seconds=1))  # or it would be the first report once more
        client.report(cluster, "dns")
        answer = answer_of(waiting)
    assert {each["name"]: each["state"] for each in answer["resource"]["status"]["adapters"]} == {
        "dns": "Completed",
        "validation": "Completed",
    }


def test_what_was_before_an_edit_does_not_count(client: Fleet) -> None:
    cluster = client.create()
    make_ready(client, cluster)
    client.patch(path_of(cluster), {"spec": {"region": "eu-west-1"}})
    available = client.get(path_of(cluster)).json()["status"]["conditions"][0]
    assert (available["type"], available["status"], available["observedGeneration"]) == ("Available", "True", 1)
    old = client.get(f"{path_of(cluster)}:wait?for=condition=Available&observed=any")
    assert old.json()["outcome"] == "met"
    with wait(client, cluster, "for=condition=Available") as waiting:
        client.report(cluster, "validation", generation=2)
        assert not waiting.is_over
        client.report(cluster, "dns", generation=2)
        answer = answer_of(waiting)
    assert answer["resource"]["status"]["conditions"][0]["observedGeneration"] == 2


def test_deleted(client: Fleet) -> None:
    cluster = client.create()
    with wait(client, cluster, "for=deleted") as waiting:
        client.delete(path_of(cluster))
        assert not waiting.is_over
        client.post(f"{path_of(cluster)}/force-delete", {"reason": "test"})
        assert answer_of(waiting) == {"outcome": "met"}
    assert client.get(f"{path_of(cluster)}:wait?for=deleted").json() == {"outcome": "met"}


def test_a_node_pool(client: Fleet) -> None:
    pool = client.create_pool(client.create())
    assert client.get(f"{path_of(pool)}:wait?for=phase={pool['status']['phase']}").json()["resource"] == pool


# ── not met ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_fails_with_the_reason(client: Fleet) -> None:
    cluster = client.create()
    with wait(client, cluster, "for=condition=Ready&failOn=adapter=dns=Failed&failOn=phase=Failed") as waiting:
        client.report(cluster, "validation")
        client.report(cluster, "dns", FAILED)
        problem = answer_of(waiting)
    assert (waiting.status, problem["code"]) == (409, "WaitFailed")
    (error,) = problem["errors"]
    assert (error["parameter"], error["code"]) == ("failOn", "Met")
    assert error["message"].startswith("adapter=dns=Failed: dns is Failed")
    assert "no such zone" in error["message"]
    failed = problem_of(client.get(f"{path_of(cluster)}:wait?failOn=phase=Failed"), 409, "WaitFailed")
    assert "phase=Failed: the phase is Failed" in failed["detail"]


def test_time_is_up(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns", FAILED)
    query = "for=condition=Ready&for=phase=Ready&for=adapter=validation&for=generation=2&timeout=50ms"
    problem = problem_of(client.get(f"{path_of(cluster)}:wait?{query}"), 504, "WaitTimeout")
    status = client.get(path_of(cluster)).json()["status"]
    words = f"Ready is False: {status['conditions'][1]['reason']}, {status['conditions'][1]['message']}"
    assert [error["message"] for error in problem["errors"]] == [
        f"condition=Ready: {words}",
        f"phase=Ready: the phase is Failed: {status['phaseDescription']}; {words}",
        "adapter=validation: validation has not reported",
        "generation=2: the resource is at generation 1",
    ]
    assert problem["detail"].startswith("after 50ms: condition=Ready: ")
    missing = problem_of(client.get(f"{path_of(cluster)}:wait?for=condition=Else&timeout=0s"), 504, "WaitTimeout")
    assert "it has no condition Else; it has Available, Ready, AllDone" in missing["detail"]


def test_what_is_gone_never_comes(client: Fleet) -> None:
    cluster = client.create()
    with wait(client, cluster, "for=condition=Ready") as waiting:
        remove(client, cluster)
        problem = answer_of(waiting)
    assert (waiting.status, problem["code"]) == (410, "Gone")
    problem_of(client.get(f"{path_of(cluster)}:wait"), 410, "Gone")
    problem_of(client.get(f"{path_of(cluster)}:wait?failOn=deleted"), 409, "WaitFailed")
    problem_of(client.get("/clusters/cls-none:wait"), 404, "NotFound")


@pytest.mark.parametrize(
    ("query", "parameter", "code"),
    [
        ("for=Ready", "for", "BadFormat"),
        ("for=condition=", "for", "BadFormat"),
        ("for=condition=Ready=Yes", "for", "BadFormat"),
        ("for=condition=Ready=", "for", "BadFormat"),
        ("for=phase=Red", "for", "BadFormat"),
        ("for=adapter=dns=Done", "for", "BadFormat"),
        ("for=generation=x", "for", "BadFormat"),
        ("for=deleted=True", "for", "BadFormat"),
        ("for=deleted&for=phase=Ready", "for", "Exclusive"),
        ("failOn=colour", "failOn", "BadFormat"),
        ("timeout=5", "timeout", "BadFormat"),
        ("timeout=2h", "timeout", "OutOfRange"),
        ("observed=2", "observed", "NotAllowed"),
        ("until=phase", "until", "UnknownParameter"),
        ("&".join(["for=phase=Ready"] * 17), "for", "TooMany"),
    ],
)
def test_what_makes_no_sense_is_refused(memory_client: Fleet, query: str, parameter: str, code: str) -> None:
    answer = memory_client.get(f"/clusters/cls-1:wait?{query}")
    assert errors_of(answer, 400, "InvalidQuery") == {(parameter, code)}


# ── around it ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_progress_as_events(client: Fleet) -> None:
    cluster = client.create()
    stream = Connection(client, f"{path_of(cluster)}:wait?for=phase=Ready", {"Accept": "text/event-stream"})
    with stream:
        client.report(cluster, "validation")
        client.report(cluster, "dns")
        stream.wait_for(lambda: stream.is_over)
    told = [each for each in stream.heard if each.event]
    assert [each.event for each in told] == ["version", "version", "version", "result"]
    assert [each.data["status"]["phase"] for each in told[:3]] == ["Pending", "Provisioning", "Ready"]
    assert told[-1].data == {"outcome": "met", "revision": told[-2].id, "resource": told[-2].data}
    stream = Connection(client, f"{path_of(cluster)}:wait?failOn=phase=Ready", {"Accept": "text/event-stream"})
    with stream:
        stream.wait_for(lambda: stream.is_over)
    assert stream.heard[-1].event == "failed"
    assert stream.heard[-1].data["code"] == "WaitFailed"


def test_who_leaves_gives_the_seat_back(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    for _ in range(50):
        with wait(memory_client, cluster, "for=phase=Ready&timeout=1h") as waiting:
            assert not waiting.is_over


def test_a_stop_sends_away_who_waits(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    with wait(memory_client, cluster, "for=phase=Ready&timeout=1h") as waiting:
        memory_client.tail.close()
        problem = answer_of(waiting)
    assert (waiting.status, problem["code"], waiting.headers["retry-after"]) == (503, "Overloaded", "1")


def test_a_stop_tells_who_listens_while_waiting(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    stream = Connection(memory_client, f"{path_of(cluster)}:wait?for=phase=Ready", {"Accept": "text/event-stream"})
    with stream:
        stream.wait_for(lambda: any(each.event == "version" for each in stream.heard))
        memory_client.tail.close()
        stream.wait_for(lambda: stream.is_over)
    assert (stream.heard[-1].event, stream.heard[-1].data["code"]) == ("failed", "Overloaded")


def test_who_listens_too_slowly_while_waiting_is_told_so(client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_CACHED_EVENTS", 1)
    cluster = client.create()
    path = f"{path_of(cluster)}:wait?for=phase=Ready"
    with Connection(client, path, {"Accept": "text/event-stream"}, is_reading=False) as stream:
        for verdict in (FAILED, "False/JobRunning", FAILED, "False/JobRunning"):
            client.report(cluster, "dns", verdict)
        client.clock.pass_time(timedelta(hours=1))
        while client.run(client.store.prune(Pruning("events", timedelta()), 1_000)):
            pass
        stream.begin_reading()
        stream.wait_for(lambda: stream.is_over)
    assert (stream.heard[-1].event, stream.heard[-1].data["code"]) == ("failed", "Forgotten")
