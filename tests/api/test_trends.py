"""Summaries of the past: at one moment, and as a trend; what they tell is what a summary told then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.services import trends
from tests.api.fleet import Fleet, HandClock, errors_of, open_fleet, path_of, problem_of
from tests.api.lives import pass_time
from tests.contract.stores import prune_all

MINUTE = timedelta(minutes=1)
OUTCOMES = ("True", "False/Broken/no such zone", "False/JobRunning")
QUESTIONS = (
    "",
    "groupBy=label:env,phase",
    "groupBy=adapter:dns&conditions=Ready!=True",
    "groupBy=blockedBy&labelSelector=env=prod",
    "groupBy=condition:Ready,reason",
    "q=dns",
)


def written(time: datetime) -> str:
    return quote(time.isoformat())


def summary(client: Fleet, query: str = "", at: datetime | None = None) -> dict[str, Any]:
    parameters = [query] if query else []
    parameters += [f"at={written(at)}"] if at else []
    response = client.get(f"/clusters:summary?{'&'.join(parameters)}")
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.fixture(params=["memory", "sqlite"])
def timed(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Fleet]:
    """Give a server whose store has the clock of the test; PostgreSQL has its own."""
    store = MemoryStore(clock) if request.param == "memory" else SqliteStore(tmp_path / "fleet.db", clock)
    with open_fleet(store, clock, RequestLimits()) as fleet:
        yield fleet


def live(client: Fleet, steps: int, seed: int = 1) -> dict[datetime, list[dict[str, Any]]]:
    """Let real things happen to clusters, and return every summary of each moment."""
    random, clusters = Random(seed), [client.create(f"c{number}") for number in range(3)]
    recorded: dict[datetime, list[dict[str, Any]]] = {}
    for step in range(steps):
        if isinstance(client.store, PostgresStore):
            pass_time(client)
        else:
            client.clock.pass_time(random.choice((1, 7, 20)) * MINUTE / 4)
        cluster = random.choice(clusters)
        match random.choices(("report", "label", "create", "delete"), (10, 3, 2, 1))[0]:
            case "report":
                client.report(cluster, random.choice(("dns", "validation")), random.choice(OUTCOMES))
            case "label":
                client.patch(path_of(cluster), {"labels": {"env": random.choice(("prod", "dev", None))}})
            case "create":
                clusters.append(client.create(f"n{step}", labels={"env": "prod"}))
            case "delete" if len(clusters) > 2:
                clusters.remove(cluster)
                client.delete(path_of(cluster))
                client.post(f"{path_of(cluster)}/force-delete", {"reason": "no longer needed"})
        recorded[pass_time(client)] = [summary(client, each) for each in QUESTIONS]
    return recorded


def test_a_summary_of_a_moment_is_the_one_of_then(client: Fleet) -> None:
    recorded = live(client, 30)
    for time, then in recorded.items():
        for question, expected in zip(QUESTIONS, then, strict=True):
            found = summary(client, question, time)
            assert datetime.fromisoformat(found.pop("at")) == time
            assert found == expected, (time, question)


def test_a_trend_has_a_point_for_every_step(timed: Fleet) -> None:
    recorded = live(timed, 20)
    now = timed.clock.now()
    found = summary(timed, "trend=30m&step=5m&groupBy=label:env,phase")
    times = [datetime.fromisoformat(point["at"]) for point in found["trend"]]
    assert times == [now - number * 5 * MINUTE for number in range(6, -1, -1)]
    assert "at" not in found
    for time, point in zip(times, found["trend"], strict=True):
        before = [each for each in recorded if each <= time]
        if before:
            then = recorded[before[-1]][1]
            assert (point["total"], point["groups"]) == (then["total"], then["groups"])
    assert found["trend"][-1]["groups"] == found["groups"] == summary(timed, "groupBy=label:env,phase")["groups"]


def test_a_trend_may_end_at_a_moment_and_has_24_steps_unless_told(memory_client: Fleet) -> None:
    client = memory_client
    live(client, 10)
    end = client.clock.now() - 10 * MINUTE
    found = summary(client, "trend=24m", end)
    times = [datetime.fromisoformat(point["at"]) for point in found["trend"]]
    assert (times[0], times[-1], len(times)) == (end - 24 * MINUTE, end, 25)
    assert found["trend"][-1]["groups"] == found["groups"] == summary(client, "", end)["groups"]


def test_on_every_store(client: Fleet) -> None:
    cluster = client.create()
    created = datetime.fromisoformat(cluster["metadata"]["createdAt"])
    client.clock.pass_time(MINUTE)
    client.report(cluster, "dns", "False/Broken")
    failed = datetime.fromisoformat(client.get(path_of(cluster)).json()["status"]["phaseSince"])
    pass_time(client)
    assert summary(client, "", created)["groups"] == [{"phase": "Pending", "count": 1}]
    assert summary(client, "", failed)["groups"] == [{"phase": "Failed", "count": 1}]
    assert summary(client, "", created - MINUTE) | {"at": None} == {
        "groupBy": ["phase"],
        "total": 0,
        "groups": [],
        "at": None,
    }


def test_below_a_parent(memory_client: Fleet) -> None:
    one, two = memory_client.create("one"), memory_client.create("two")
    for cluster in (one, one, two):
        memory_client.clock.pass_time(MINUTE)
        memory_client.create_pool(cluster, f"p{memory_client.clock.now().minute}")
    found = memory_client.get(f"{path_of(one)}/nodepools:summary?trend=3m&step=1m").json()
    assert [point["total"] for point in found["trend"]] == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("at=2999-01-01T00:00:00Z", "at"),
        ("at=soon", "at"),
        ("trend=1d", "trend"),
        ("trend=0s", "trend"),
        ("step=5m", "step"),
        ("trend=24h&step=1s", "step"),
        ("trend=24h&step=x", "step"),
        ("at=0001-01-01T00:00:00Z&trend=24h", "trend"),
        ("at=5m&updatedSince=1h", "updatedSince"),
        ("at=5m&limit=5", "limit"),
    ],
)
def test_what_makes_no_sense_is_refused(memory_client: Fleet, query: str, parameter: str) -> None:
    response = memory_client.get(f"/clusters:summary?{query}")
    assert {name for name, _ in errors_of(response, code="InvalidQuery")} == {parameter}


def test_what_is_forgotten_is_told(client: Fleet) -> None:
    cluster = client.create()
    for outcome in ("False/Broken", "True", "False/Broken"):
        client.report(cluster, "dns", outcome)
    client.clock.pass_time(MINUTE)
    assert client.run(prune_all(client.store, "events", timedelta(0))) > 0
    for query in ("at=24h", "trend=24h"):
        problem = problem_of(client.get(f"/clusters:summary?{query}"), 410, "Forgotten")
        assert "been pruned" in problem["detail"]


def test_how_far_back_one_can_go_is_told(memory_client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trends, "MAX_POSITIONS", 3)
    for number in range(6):
        memory_client.create(f"c{number}")
        memory_client.clock.pass_time(10 * MINUTE)
    response = memory_client.get("/clusters:summary?trend=2h")
    assert errors_of(response, code="InvalidQuery") == {("trend", "TooFar")}
    (error,) = response.json()["errors"]
    earliest = error["message"].partition("goes back to ")[2].split(" ")[0]
    assert summary(memory_client, "", datetime.fromisoformat(earliest))["total"] == 4
