"""Watching and waiting through lost connections, as flows."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.client import waiting
from hyperfleet.client.answers.resource import Cluster, WatchEvent
from hyperfleet.client.effects import ApiRequest
from hyperfleet.client.errors import ConnectionFailed, FleetError, Gone, Invalid, NotFound, WaitFailed, WaitTimeout
from hyperfleet.client.waiting import WaitOptions
from hyperfleet.client.watching import Watch
from tests.unit.client.world import LOST, REFUSED, World, event, problem, stream

REQUEST = ApiRequest("GET", "/clusters")
END = b""


def cluster(number: int, phase: str = "Ready") -> dict[str, Any]:
    return {"id": f"cls-{number}", "name": f"c{number}", "status": {"phase": phase}}


def follow(
    world: World, most: int | None = None, *, after: int | None = None, **how: bool
) -> list[WatchEvent[Cluster]]:
    return world.collect(Watch(REQUEST, Cluster, world.retry(), after=after).follow(**how), most)


def told(events: list[WatchEvent[Cluster]]) -> list[tuple[str, str, int | None]]:
    return [(each.kind, each.id, each.position) for each in events]


def resumed(world: World) -> list[str | None]:
    return [request.headers.get("Last-Event-ID") for request in world.sent]


def test_a_lost_connection_is_resumed_after_the_last_position() -> None:
    world = World(
        *(stream(), event("added", cluster(1)), event("synced", {}, 5), event("modified", cluster(1), 6), LOST),
        *(REFUSED, problem(503, "Overloaded")),
        *(stream(), event("bookmark", {}, 9) + event("added", cluster(2), 10), END),
        *(stream(), event("deleted", {"id": "cls-2", "reason": "Removed"}, 11)),
    )
    assert told(follow(world, 6)) == [
        ("added", "cls-1", None),
        ("synced", "", 5),
        ("modified", "cls-1", 6),
        ("bookmark", "", 9),
        ("added", "cls-2", 10),
        ("deleted", "cls-2", 11),
    ]
    assert resumed(world) == [None, "6", "6", "6", "10"]
    assert all(("watch", "true") in request.query for request in world.sent)


@pytest.mark.parametrize("break_", [LOST, END])
def test_an_interrupted_list_starts_over_with_a_relist(break_: bytes | FleetError) -> None:
    world = World(
        *(stream(), event("added", cluster(1)), break_),
        *(stream(), event("added", cluster(1)), event("synced", {}, 5)),
    )
    kinds = [each.kind for each in follow(world, 4)]
    assert kinds == ["added", "relist", "added", "synced"]
    assert resumed(world) == [None, None]


def test_a_forgotten_position_starts_over_with_a_relist() -> None:
    for word in (
        (problem(410, "Forgotten"),),
        (stream(), event("gone", {"code": "Forgotten"})),
    ):
        world = World(
            *(stream(), event("synced", {}, 5), LOST),
            *word,
            *(stream(), event("added", cluster(2)), event("synced", {}, 90)),
        )
        assert [each.kind for each in follow(world, 4)] == ["synced", "relist", "added", "synced"]
        assert resumed(world) == [None, "5", None]


def test_a_forgotten_start_position_gives_a_relist() -> None:
    world = World(problem(410, "Forgotten"), stream(), event("synced", {}, 90))
    assert [each.kind for each in follow(world, 2, after=3)] == ["relist", "synced"]
    assert resumed(world) == ["3", None]


def test_there_is_no_relist_before_the_first_event() -> None:
    world = World(REFUSED, stream(), LOST, stream(), event("synced", {}, 1))
    assert [each.kind for each in follow(world, 1)] == ["synced"]


def test_adapters_have_no_positions() -> None:
    world = World(stream(), event("synced", {}), LOST, stream(), event("synced", {}))
    assert [each.kind for each in follow(world, 3, is_log=False)] == ["synced", "relist", "synced"]
    assert resumed(world) == [None, None]


def test_a_watch_of_one_resource_ends_when_it_is_deleted() -> None:
    world = World(stream(), event("added", cluster(1)), event("deleted", {"id": "cls-1", "reason": "Removed"}, 7))
    assert [each.kind for each in follow(world, is_single=True)] == ["added", "deleted"]


def test_a_watch_of_one_resource_that_is_gone_after_a_reconnect_ends() -> None:
    world = World(stream(), event("synced", {}, 5), LOST, problem(410, "Forgotten"), problem(404, "NotFound"))
    assert [each.kind for each in follow(world, is_single=True)] == ["synced", "relist", "deleted"]
    world = World(stream(), event("synced", {}, 5), LOST, problem(404, "NotFound"))
    assert [each.kind for each in follow(world, is_single=True)] == ["synced", "deleted"]


def test_a_watch_of_a_missing_resource_is_an_error() -> None:
    world = World(problem(404, "NotFound"))
    with pytest.raises(NotFound):
        follow(world, is_single=True)


def test_an_invalid_watch_is_not_retried() -> None:
    world = World(problem(400, "InvalidQuery"))
    with pytest.raises(Invalid):
        follow(world)


def test_a_watch_gives_up_after_the_deadline() -> None:
    world = World(stream(), event("synced", {}, 5), LOST, *[REFUSED] * 100)
    begun = world.time
    with pytest.raises(ConnectionFailed):
        follow(world)
    assert 100 < world.time - begun <= 120, "as long as an operation may take, counted from the loss"


def test_a_long_quiet_watch_is_resumed() -> None:
    world = World(stream(), event("synced", {}, 5), *[b":\n\n"] * 5, LOST, stream(), event("bookmark", {}, 6), takes=60)
    assert [each.kind for each in follow(world, 2)] == ["synced", "bookmark"]


def test_a_resource_that_no_longer_matches_comes_with_the_event() -> None:
    world = World(
        stream(), event("deleted", {"id": "cls-1", "reason": "NoLongerMatches", "object": cluster(1, "Failed")}, 7)
    )
    [left] = follow(world, 1)
    assert left.reason == "NoLongerMatches"
    assert left.resource is not None
    assert left.resource.phase == "Failed"


def test_an_unknown_event_moves_the_position() -> None:
    world = World(stream(), event("paused", {"why": "?"}, 8), LOST, stream(), event("synced", {}, 9))
    assert told(follow(world, 2)) == [("bookmark", "", 8), ("synced", "", 9)]
    assert resumed(world) == [None, "8"]


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def wait(world: World, seen: list[str] | None = None, **options: Any) -> Cluster | None:
    given: WaitOptions = {"timeout": 100.0, **options}  # type: ignore[typeddict-item]  # the tests give what fits

    def see(version: Cluster) -> None:
        if seen is not None:
            seen.append(version.phase)

    return world.run(waiting.wait("/c", given, Cluster, world.retry(), see))


MET = event("result", {"outcome": "met", "revision": 7, "resource": cluster(1)})


def timeout_of(request: ApiRequest) -> str:
    return dict(request.query)["timeout"]


def failed(status: int, code: str) -> bytes:
    return event("failed", {"status": status, "code": code, "title": "No", "detail": code})


def test_a_wait_shows_versions_and_returns_the_result() -> None:
    seen: list[str] = []
    world = World(stream(), event("version", cluster(1, "Pending")), event("version", cluster(1)), MET)
    found = wait(world, seen, for_=["phase=Ready", "adapter=dns"], fail_on="phase=Failed", observed="any")
    assert found is not None
    assert (found.id, seen) == ("cls-1", ["Pending", "Ready"])
    assert world.sent[0].path == "/c:wait"
    assert world.sent[0].query == (
        ("for", "phase=Ready"),
        ("for", "adapter=dns"),
        ("failOn", "phase=Failed"),
        ("observed", "any"),
        ("timeout", "100000ms"),
    )


def test_a_wait_is_resumed_with_the_remaining_time() -> None:
    world = World(
        *(stream(), event("version", cluster(1)), LOST),
        *(REFUSED, problem(503, "Overloaded"), stream(), failed(503, "Overloaded")),
        *(stream(), failed(410, "Forgotten"), stream(), MET),
        takes=5.0,
    )
    assert wait(world) is not None
    times = [int(timeout_of(request).removesuffix("ms")) for request in world.sent]
    assert times == sorted(times, reverse=True)
    assert times[0] == 100_000
    assert times[-1] < 70_000


def test_a_long_wait_takes_several_requests() -> None:
    world = World(stream(), failed(504, "WaitTimeout"), stream(), MET, takes=1800.0)
    assert wait(world, timeout=7000.0) is not None
    assert [timeout_of(request) for request in world.sent] == ["3600000ms", "3399900ms"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failed(409, "WaitFailed"), WaitFailed),
        (failed(410, "Gone"), Gone),
        (failed(400, "InvalidQuery"), Invalid),
    ],
)
def test_a_failed_wait_ends_at_once(answer: bytes, kind: type[FleetError]) -> None:
    world = World(stream(), answer)
    with pytest.raises(kind):
        wait(world)


def test_a_wait_times_out() -> None:
    world = World(stream(), failed(504, "WaitTimeout"), takes=60.0)
    with pytest.raises(WaitTimeout):
        wait(world)


def test_there_is_a_pause_after_an_early_timeout() -> None:
    world = World(*[each for _ in range(100) for each in (stream(), failed(504, "WaitTimeout"))])
    with pytest.raises(WaitTimeout):
        wait(world, timeout=5.0)
    assert len(world.sent) == 50
    assert world.pauses == [0.1] * 49


def test_a_silent_server_prolongs_a_wait_only_a_little() -> None:
    world = World(ConnectionFailed("it did not answer in time", is_sent=True), takes=7.0)
    with pytest.raises(ConnectionFailed):
        wait(world, timeout=2.0)
    assert world.timeouts == world.silences == [7.0], "and 5s for its last word"


def test_a_wait_retries_a_lost_server_until_its_timeout() -> None:
    world = World(stream(), event("version", cluster(1)), LOST, *[REFUSED] * 200)
    begun = world.time
    with pytest.raises(ConnectionFailed):
        wait(world, timeout=500.0)
    assert 480 < world.time - begun <= 500


def test_a_wait_fails_if_the_server_was_never_reachable() -> None:
    world = World(*[REFUSED] * 200)
    with pytest.raises(ConnectionFailed):
        wait(world, timeout=500.0)
    assert len(world.sent) == 7


def test_a_wait_for_deletion_returns_none() -> None:
    world = World(stream(), event("result", {"outcome": "met"}))
    assert wait(world, for_="deleted") is None
