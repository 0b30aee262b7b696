"""Watching and waiting through lost connections, as flows."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.client import waiting
from hyperfleet.client.answers.resource import Cluster, WatchEvent
from hyperfleet.client.effects import Request
from hyperfleet.client.errors import ConnectionFailed, FleetError, Gone, Invalid, NotFound, WaitFailed, WaitTimeout
from hyperfleet.client.waiting import Wishes
from hyperfleet.client.watching import Watch
from tests.unit.client.world import LOST, REFUSED, World, event, problem, stream

REQUEST = Request("GET", "/clusters")
END = b""


def cluster(number: int, phase: str = "Ready") -> dict[str, Any]:
    return {"id": f"cls-{number}", "name": f"c{number}", "status": {"phase": phase}}


def follow(
    world: World, most: int | None = None, *, after: int | None = None, **how: bool
) -> list[WatchEvent[Cluster]]:
    return world.collect(Watch(REQUEST, Cluster, world.patience(), after=after).follow(**how), most)


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
def test_a_list_that_breaks_off_begins_anew_and_says_so(break_: bytes | FleetError) -> None:
    world = World(
        *(stream(), event("added", cluster(1)), break_),
        *(stream(), event("added", cluster(1)), event("synced", {}, 5)),
    )
    kinds = [each.kind for each in follow(world, 4)]
    assert kinds == ["added", "relist", "added", "synced"]
    assert resumed(world) == [None, None]


def test_what_is_forgotten_is_listed_anew() -> None:
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


def test_who_comes_with_a_forgotten_position_is_told_to_forget_too() -> None:
    world = World(problem(410, "Forgotten"), stream(), event("synced", {}, 90))
    assert [each.kind for each in follow(world, 2, after=3)] == ["relist", "synced"]
    assert resumed(world) == ["3", None]


def test_nothing_told_nothing_to_forget() -> None:
    world = World(REFUSED, stream(), LOST, stream(), event("synced", {}, 1))
    assert [each.kind for each in follow(world, 1)] == ["synced"]


def test_adapters_have_no_positions() -> None:
    world = World(stream(), event("synced", {}), LOST, stream(), event("synced", {}))
    assert [each.kind for each in follow(world, 3, is_log=False)] == ["synced", "relist", "synced"]
    assert resumed(world) == [None, None]


def test_a_watch_of_one_ends_with_it() -> None:
    world = World(stream(), event("added", cluster(1)), event("deleted", {"id": "cls-1", "reason": "Removed"}, 7))
    assert [each.kind for each in follow(world, is_single=True)] == ["added", "deleted"]


def test_a_watch_of_one_that_is_gone_when_we_come_back_ends_too() -> None:
    world = World(stream(), event("synced", {}, 5), LOST, problem(410, "Forgotten"), problem(404, "NotFound"))
    assert [each.kind for each in follow(world, is_single=True)] == ["synced", "relist", "deleted"]
    world = World(stream(), event("synced", {}, 5), LOST, problem(404, "NotFound"))
    assert [each.kind for each in follow(world, is_single=True)] == ["synced", "deleted"]


def test_a_watch_of_one_that_was_never_there_is_an_error() -> None:
    world = World(problem(404, "NotFound"))
    with pytest.raises(NotFound):
        follow(world, is_single=True)


def test_a_watch_that_makes_no_sense_is_told_at_once() -> None:
    world = World(problem(400, "InvalidQuery"))
    with pytest.raises(Invalid):
        follow(world)


def test_a_server_that_stays_away_is_given_up() -> None:
    world = World(stream(), event("synced", {}, 5), LOST, *[REFUSED] * 100)
    begun = world.time
    with pytest.raises(ConnectionFailed):
        follow(world)
    assert 100 < world.time - begun <= 120, "as long as an operation may take, counted from the loss"


def test_a_quiet_watch_may_be_old_when_it_is_lost() -> None:
    world = World(stream(), event("synced", {}, 5), *[b":\n\n"] * 5, LOST, stream(), event("bookmark", {}, 6), takes=60)
    assert [each.kind for each in follow(world, 2)] == ["synced", "bookmark"]


def test_what_leaves_a_filter_comes_with_the_resource() -> None:
    world = World(
        stream(), event("deleted", {"id": "cls-1", "reason": "NoLongerMatches", "object": cluster(1, "Failed")}, 7)
    )
    [left] = follow(world, 1)
    assert left.reason == "NoLongerMatches"
    assert left.resource is not None
    assert left.resource.phase == "Failed"


def test_what_only_a_newer_server_tells_moves_the_position() -> None:
    world = World(stream(), event("paused", {"why": "?"}, 8), LOST, stream(), event("synced", {}, 9))
    assert told(follow(world, 2)) == [("bookmark", "", 8), ("synced", "", 9)]
    assert resumed(world) == [None, "8"]


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def wait(world: World, seen: list[str] | None = None, **wishes: Any) -> Cluster | None:
    given: Wishes = {"timeout": 100.0, **wishes}  # type: ignore[typeddict-item]  # the tests give what fits

    def see(version: Cluster) -> None:
        if seen is not None:
            seen.append(version.phase)

    return world.run(waiting.wait("/c", given, Cluster, world.patience(), see))


MET = event("result", {"outcome": "met", "revision": 7, "resource": cluster(1)})


def timeout_of(request: Request) -> str:
    return dict(request.query)["timeout"]


def failed(status: int, code: str) -> bytes:
    return event("failed", {"status": status, "code": code, "title": "No", "detail": code})


def test_a_wait_shows_what_comes_by_and_returns_what_was_wanted() -> None:
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


def test_a_wait_goes_on_after_losses_with_the_time_that_is_left() -> None:
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


def test_a_wait_that_is_longer_than_the_server_likes_is_asked_for_again() -> None:
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
def test_a_wait_that_is_in_vain_ends_at_once(answer: bytes, kind: type[FleetError]) -> None:
    world = World(stream(), answer)
    with pytest.raises(kind):
        wait(world)


def test_a_wait_ends_when_its_time_is_up() -> None:
    world = World(stream(), failed(504, "WaitTimeout"), takes=60.0)
    with pytest.raises(WaitTimeout):
        wait(world)


def test_a_server_that_says_at_once_that_time_is_up_is_not_asked_without_pause() -> None:
    world = World(*[each for _ in range(100) for each in (stream(), failed(504, "WaitTimeout"))])
    with pytest.raises(WaitTimeout):
        wait(world, timeout=5.0)
    assert len(world.sent) == 50
    assert world.pauses == [0.1] * 49


def test_a_wait_for_a_server_that_says_nothing_is_hardly_longer_than_wanted() -> None:
    world = World(ConnectionFailed("it did not answer in time", is_sent=True), takes=7.0)
    with pytest.raises(ConnectionFailed):
        wait(world, timeout=2.0)
    assert world.timeouts == world.silences == [7.0], "and 5s for its last word"


def test_a_server_that_goes_away_in_a_wait_is_waited_for_until_the_time_is_up() -> None:
    world = World(stream(), event("version", cluster(1)), LOST, *[REFUSED] * 200)
    begun = world.time
    with pytest.raises(ConnectionFailed):
        wait(world, timeout=500.0)
    assert 480 < world.time - begun <= 500


def test_a_server_that_was_never_there_is_not_waited_for() -> None:
    world = World(*[REFUSED] * 200)
    with pytest.raises(ConnectionFailed):
        wait(world, timeout=500.0)
    assert len(world.sent) == 7


def test_what_is_deleted_as_wanted_is_nothing() -> None:
    world = World(stream(), event("result", {"outcome": "met"}))
    assert wait(world, for_="deleted") is None
