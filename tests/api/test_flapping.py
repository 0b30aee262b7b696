"""Flapping over HTTP: the mark beside what moves too often, how it is found, explained and ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.ports import StatusCause, Store
from hyperfleet.services.upkeep import recompute_all
from tests.api.fleet import POLICY, Fleet, HandClock, errors_of, open_fleet, path_of

DAMPED = """
requiredAdapters: [dns]
flapping: {transitions: 0}
clusterConditions:
  - type: Calm
    goBadAfter: 1h
    flapping: {window: 20m, transitions: 3}
    evaluate: {expr: 'adapters["dns"].available == "True"'}
"""
OFF = f"{POLICY}\nflapping: {{transitions: 0}}\n"


def flap(client: Fleet, resource: dict[str, Any], times: int, adapter: str = "dns") -> None:
    """Let an adapter go up and down, ten seconds apart; the last of an odd number of times leaves it up."""
    for turn in range(times):
        client.clock.pass_time(timedelta(seconds=10))
        client.report(resource, adapter, "False/Broken/gone" if turn % 2 else "True")


def marks(client: Fleet, resource: dict[str, Any]) -> dict[str, int]:
    """Return how often each marked subject has moved."""
    status = client.get(path_of(resource)).json()["status"]
    found = {each["type"]: each["flapping"]["transitions"] for each in status["conditions"] if "flapping" in each}
    return {**found, **({"phase": status["phaseFlapping"]["transitions"]} if "phaseFlapping" in status else {})}


def wake(client: Fleet) -> None:
    """Do what the timer does."""

    async def recompute() -> None:
        await recompute_all(client.committer, (await client.store.due(100)).ids, StatusCause("deadline"))

    client.run(recompute())


@pytest.fixture
def restless(client: Fleet) -> dict[str, Any]:
    """Give a cluster whose dns has gone up and down, and a calm one beside it."""
    restless = client.create("restless", labels={"env": "prod"})
    client.create("calm")
    client.report(restless, "validation")
    flap(client, restless, 5)
    return restless


def test_the_mark_stands_beside_what_moves_too_often(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "validation")
    flap(client, cluster, 3)
    assert b"lapping" not in client.get(path_of(cluster)).content, "what does not flap pays nothing"
    flap(client, cluster, 2)  # up again moves nothing, so Ready has moved four times, the phase five
    assert marks(client, cluster) == {"phase": 5}
    flap(client, cluster, 3)
    assert marks(client, cluster) == {"Available": 7, "Ready": 7, "AllDone": 7, "phase": 8}
    status = client.get(path_of(cluster)).json()["status"]
    (ready,) = [each for each in status["conditions"] if each["type"] == "Ready"]
    assert ready["flapping"].keys() == {"transitions", "window", "since"}
    assert ready["flapping"]["window"] == "10m"
    assert status["phaseFlapping"]["since"] <= ready["flapping"]["since"] < ready["lastTransitionTime"]


def test_lists_summaries_and_problems_find_it(client: Fleet, restless: dict[str, Any]) -> None:
    def names(query: str) -> list[str]:
        return [item["name"] for item in client.get(f"/clusters?{query}").json()["items"]]

    assert names("flapping=any") == names("flapping=Ready,Nonesuch") == names("flapping=phase") == ["restless"]
    assert names("flapping=!any") == names("flapping=!Ready") == ["calm"]
    assert names("flapping=Nonesuch") == names("flapping=any&labelSelector=env!=prod") == []
    summary = client.get("/clusters:summary?groupBy=flapping").json()
    counts = {group["flapping"]: group["count"] for group in summary["groups"]}
    assert (summary["total"], counts) == (2, {"AllDone": 1, "Available": 1, "Ready": 1, "phase": 1, None: 1})
    client.report(restless, "dns", "False/Broken/gone")
    assert client.get("/problems?flapping=any").json()["items"][0]["count"] == 1
    assert client.get("/problems?flapping=!any").json()["items"] == []
    assert errors_of(client.get("/clusters?flapping=-"), 400, "InvalidQuery") == {("flapping", "BadFormat")}


def test_explain_tells_the_moves(client: Fleet, restless: dict[str, Any]) -> None:
    told = client.get(f"{path_of(restless)}:explain?condition=Ready").json()
    (ready,) = told["conditions"]
    status = client.get(path_of(restless)).json()["status"]
    moves = ready["flapping"].pop("moves")
    assert [each["to"] for each in moves] == ["True", "False", "True", "False", "True"]
    assert moves[-1]["time"] == ready["since"] == ready["flapping"]["since"]
    assert [ready["flapping"]] == [each["flapping"] for each in status["conditions"] if each["type"] == "Ready"]
    assert told["phaseFlapping"]["moves"][-1]["to"] == "Ready"
    text = client.get(f"{path_of(restless)}:explain?condition=Ready", headers={"Accept": "text/plain"}).text
    assert "it has moved 5 times, the last 5 within " in text
    assert "True→False→True→False→True\n" in text


def test_another_policy_takes_the_marks_away_and_that_is_news_but_no_transition(
    client: Fleet, restless: dict[str, Any]
) -> None:
    history = client.get(f"{path_of(restless)}/history").json()["items"]
    before = client.get(path_of(restless))
    client.policy = OFF
    assert client.post("/policy:reload").status_code == 200
    client.run(recompute(client, restless))
    after = client.get(path_of(restless))
    assert marks(client, restless) == {}
    assert after.headers["etag"] != before.headers["etag"]
    assert client.get("/clusters?flapping=any").json()["items"] == []
    assert client.get(f"{path_of(restless)}/history").json()["items"] == history
    assert client.run(last_event(client, restless["id"])) == ("StatusChanged", after.content)


async def recompute(client: Fleet, resource: dict[str, Any]) -> None:
    await recompute_all(client.committer, [resource["id"]], StatusCause("policy"))


async def last_event(client: Fleet, id_: str) -> tuple[str, bytes | None]:
    events = (await client.store.read_events(0, 1_000)).entries
    return [(event.type, event.answer) for event in events if event.resource_id == id_][-1]


# ── time, on the stores that let us set the clock: PostgreSQL has its own ────────────────────────────────────────


@pytest.fixture(params=["memory", "sqlite"])
def timed_store(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Store:
    return MemoryStore(clock) if request.param == "memory" else SqliteStore(tmp_path / "fleet.db", clock)


@pytest.fixture
def timed(timed_store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    with open_fleet(timed_store, clock, limits) as fleet:
        yield fleet


def test_the_mark_ends_at_its_deadline(timed: Fleet) -> None:
    cluster = timed.create()
    timed.report(cluster, "validation")
    flap(timed, cluster, 5)
    shown = timed.get(path_of(cluster))
    timed.clock.pass_time(timedelta(minutes=9, seconds=39))
    wake(timed)
    assert timed.get(path_of(cluster)).content == shown.content
    timed.clock.pass_time(timedelta(seconds=1))  # ten minutes after the third last move
    wake(timed)
    assert marks(timed, cluster) == {}
    status, before = timed.get(path_of(cluster)).json()["status"], shown.json()["status"]
    assert status["phaseSince"] == before["phaseSince"]
    assert status["lastUpdated"] == "2025-10-17T12:10:30Z"
    assert timed.run(last_event(timed, cluster["id"]))[0] == "StatusChanged"
    assert timed.get("/clusters?flapping=any").json()["items"] == []


def test_a_heartbeat_neither_keeps_nor_ends_it(timed: Fleet) -> None:
    cluster = timed.create()
    timed.report(cluster, "validation")
    flap(timed, cluster, 5)
    for _ in range(9):
        timed.clock.pass_time(timedelta(minutes=1))
        timed.report(cluster, "dns")
        assert marks(timed, cluster)["Ready"] == 5
    timed.clock.pass_time(timedelta(minutes=1))
    timed.report(cluster, "dns")
    assert marks(timed, cluster)["Ready"] == 5  # the deadline has passed, but only the timer looks
    wake(timed)
    assert marks(timed, cluster) == {}


def test_a_restart_forgets_nothing(tmp_path: Path, clock: HandClock, limits: RequestLimits) -> None:
    with open_fleet(SqliteStore(tmp_path / "fleet.db", clock), clock, limits) as client:
        cluster = client.create()
        client.report(cluster, "validation")
        flap(client, cluster, 5)
        before = client.get(path_of(cluster)).content
    with open_fleet(SqliteStore(tmp_path / "fleet.db", clock), clock, limits) as client:
        assert client.get(path_of(cluster)).content == before
        client.report(cluster, "dns", "False/Broken/gone")
        assert marks(client, cluster)["Ready"] == 6
        clock.pass_time(timedelta(minutes=11))
        wake(client)
        assert marks(client, cluster) == {}


def test_what_damping_hides_is_marked(clock: HandClock, limits: RequestLimits) -> None:
    with open_fleet(MemoryStore(clock), clock, limits, DAMPED) as client:
        cluster = client.create()
        flap(client, cluster, 4)
        (calm,) = [each for each in client.get(path_of(cluster)).json()["status"]["conditions"] if "flapping" in each]
        assert (calm["type"], calm["status"], calm["raw"]["status"]) == ("Calm", "True", "False")
        assert calm["flapping"] == {"transitions": 4, "window": "20m", "since": "2025-10-17T12:00:30Z"}
        assert calm["lastTransitionTime"] == "2025-10-17T12:00:10Z"
