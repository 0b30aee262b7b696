"""Watching: the list, then everything that happens, in order, once, from any position on, as filtered."""

from __future__ import annotations

import asyncio
import random
import sys
from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.api import adapter_watch, watch
from hyperfleet.api.shapes import AdapterSummaryBody
from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import EVERYTHING, Pruning, Scope
from hyperfleet.services import tail
from tests.api.fleet import WATCHES, Fleet, errors_of, path_of, problem_of
from tests.api.listening import Connection, Heard

FAILED = "False/Broken/no such zone"


def summary(heard: list[Heard]) -> list[tuple[str, str]]:
    """Return what happened to whom; names are told only of what is there."""
    return [(each.event, each.data.get("name") or each.data.get("reason", "")) for each in heard]


def head_of(client: Fleet) -> int:
    return int(client.run(client.store.position()))


def prune(client: Fleet) -> None:
    """Forget every event that may be forgotten."""
    client.clock.pass_time(timedelta(hours=1))
    while client.run(client.store.prune(Pruning("events", timedelta()), 1_000)):
        pass


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_and_then_what_happens(client: Fleet) -> None:
    one = client.create("one")
    with Connection(client, "/clusters?watch=true") as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "etag" not in stream.headers
        listed = stream.take_list()
        assert summary(listed) == [("added", "one"), ("synced", "")]
        assert listed[0].id is None
        assert listed[0].data == one
        assert listed[1].id == head_of(client)
        client.create("two")
        client.report(one, "dns", FAILED)
        added, modified = stream.take(2)
        assert summary([added, modified]) == [("added", "two"), ("modified", "one")]
        answer = client.get(path_of(one))
        assert modified.data == answer.json()
        assert f'"{modified.id}"' == answer.headers["etag"]
        assert listed[1].id < added.id < modified.id  # type: ignore[operator]  # all of them have one


def test_all_events_have_their_position_and_none_is_missing(client: Fleet) -> None:
    with Connection(client, "/clusters?watch=true") as stream:
        (synced,) = stream.take_list()
        clusters = [client.create(f"c{number}") for number in range(5)]
        for cluster in clusters:
            client.report(cluster, "dns", FAILED)
        heard = stream.take(10)
        assert synced.id == 0
        assert [each.id for each in heard] == list(range(1, 11))


def test_heartbeats_are_no_news(client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "QUIET", 0.05)
    cluster = client.create()
    client.report(cluster, "dns")
    with Connection(client, "/clusters?watch=true") as stream:
        stream.take_list()
        stream.wait_for(lambda: any(each.event == "" for each in stream.heard))
        head = head_of(client)
        client.clock.pass_time(timedelta(seconds=1))
        client.report(cluster, "dns")
        quiet = sum(each.event == "" for each in stream.heard)
        stream.wait_for(lambda: sum(each.event == "" for each in stream.heard) > quiet)
        assert head_of(client) == head
        assert {each.event for each in stream.heard} == {""}, "no event, and no bookmark: the position stays"
        client.create("news")
        assert summary(stream.take(1)) == [("added", "news")]


def test_a_bookmark_tells_only_what_an_event_has_not_told(client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "QUIET", 0.05)
    with Connection(client, "/clusters?watch=true") as stream:
        stream.take_list()
        client.create("one")
        (added,) = stream.take(1)
        stream.wait_for(lambda: sum(each.event == "" for each in stream.heard) >= 2)
        assert {each.event for each in stream.heard} == {""}
        client.create_pool(client.get(f"/clusters/{added.data['id']}").json())
        stream.wait_for(lambda: any(each.event == "bookmark" for each in stream.heard))
        assert stream.heard[-1].id == head_of(client) > added.id  # type: ignore[operator]  # it has one


def test_what_happens_while_the_list_is_read_is_told_once(client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_PAGE", 2)
    names = [f"c{number}" for number in range(7)]
    clusters = {name: client.create(name) for name in names}
    with Connection(client, "/clusters?watch=true", is_reading=False) as stream:
        client.report(clusters["c1"], "dns", FAILED)  # listed already
        client.report(clusters["c6"], "dns", FAILED)  # not listed yet, or in this state
        client.create("a0")  # before those that were listed
        client.create("d0")  # behind those that will be
        client.delete(path_of(clusters["c5"]))
        client.post(f"{path_of(clusters['c5'])}/force-delete", {"reason": "test"})
        stream.begin_reading()
        heard = stream.take_list()
        *told, synced = heard
        assert synced.id == head_of(client)
        assert all(each.id is None for each in told)
        state = replay(told)
        assert state == {each["id"]: each for each in client.get("/clusters").json()["items"]}
        again = [(each.event, each.data["id"], each.data.get("status", {}).get("phase")) for each in told]
        assert len(again) == len(set(again))


def test_a_list_that_was_told_is_not_kept(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    answer = memory_client.run(memory_client.store.read_answer("Cluster", cluster["id"], EVERYTHING))
    before = sys.getrefcount(answer.body)
    for path in ("/clusters", path_of(cluster)):
        with Connection(memory_client, f"{path}?watch=true") as stream:
            stream.take_list()
            holders = sys.getrefcount(answer.body)
            assert holders <= before, path  # fewer, if what created it has been let go of meanwhile


def replay(heard: list[Heard], state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what somebody knows who believes everything that they hear."""
    state = dict(state or {})
    for each in heard:
        if each.event in ("added", "modified"):
            state[each.data["id"]] = each.data
        elif each.event == "deleted":
            state.pop(each.data["id"], None)
    return state


# ── resuming ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_goes_on_after_any_position(client: Fleet) -> None:
    clusters = [client.create(f"c{number}") for number in range(4)]
    for cluster in clusters:
        client.report(cluster, "dns", FAILED)
    with Connection(client, "/clusters?watch=true&after=0") as stream:
        whole = stream.take(8)
    assert [each.id for each in whole] == list(range(1, 9))
    for position in range(9):
        with Connection(client, "/clusters?watch=true", {"Last-Event-ID": str(position)}) as stream:
            client.patch(path_of(clusters[0]), {"labels": {"at": f"p{position}"}})
            heard = stream.take(8 - position + position + 1)
            assert heard[: 8 - position] == whole[position:]


def test_the_header_is_newer_than_the_address(client: Fleet) -> None:
    for number in range(3):
        client.create(f"c{number}")
    with Connection(client, "/clusters?watch=true&after=0", {"Last-Event-ID": "2"}) as stream:
        assert summary(stream.take(1)) == [("added", "c2")]


def test_what_was_pruned_is_gone(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns", FAILED)
    client.report(cluster, "dns", "True")
    client.clock.pass_time(timedelta(hours=1))
    prune(client)
    problem_of(client.get("/clusters?watch=true&after=0"), 410, "Forgotten")
    with Connection(client, f"/clusters?watch=true&after={head_of(client)}") as stream:
        client.create("another")
        assert summary(stream.take(1)) == [("added", "another")]


def test_a_reader_who_is_too_slow_is_told_so(client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_PAGE", 2)
    cluster = client.create()
    for number in range(6):
        client.report(cluster, "dns", FAILED if number % 2 else "True")
    with Connection(client, "/clusters?watch=true&after=0", is_reading=False) as stream:
        prune(client)
        stream.begin_reading()
        stream.wait_for(lambda: stream.is_over)
        assert stream.heard[-1].event == "gone"
        assert stream.heard[-1].data["code"] == "Forgotten"


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────

FILTERS = [
    "phase=Failed",
    "phase=!Failed",
    "labelSelector=tier=web",
    "labelSelector=!tier",
    "conditions=Ready!%3DTrue",
    "adapterState=dns:Failed",
    "adapterState=dns:Unreported",
    "blockedBy=dns",
    "q=c1",
    "reason=AdaptersFailed",
    "phase=Failed&labelSelector=tier=web",
]


def test_a_filter_decides_who_comes_and_who_leaves(client: Fleet) -> None:
    cluster = client.create()
    with Connection(client, "/clusters?watch=true&phase=Failed") as stream:
        assert summary(stream.take_list()) == [("synced", "")]
        client.report(cluster, "validation")
        client.report(cluster, "dns", FAILED)
        client.report(cluster, "dns", "False/Broken/in other words")
        client.report(cluster, "dns", "True")
        client.delete(path_of(cluster))
        added, modified, left = stream.take(3)
        assert [each.event for each in (added, modified, left)] == ["added", "modified", "deleted"]
        assert left.data["reason"] == "NoLongerMatches"
        assert left.data["object"]["status"]["phase"] == "Ready"
        assert (left.data["id"], left.data["href"], left.data["type"]) == (cluster["id"], cluster["href"], "Cluster")


def act(client: Fleet, chance: random.Random, clusters: list[dict[str, Any]]) -> None:
    """Do something to the fleet."""
    cluster = chance.choice(clusters) if clusters else None
    match chance.randrange(10) if cluster else 0:
        case 0:
            labels = chance.choice([{}, {"tier": "web"}, {"tier": "db"}])
            clusters.append(client.create(f"c{len(clusters)}-{chance.randrange(10**6)}", labels=labels))
        case 1 if cluster:
            client.patch(path_of(cluster), {"labels": {"tier": chance.choice(["web", None])}})
        case 2 if cluster:
            client.delete(path_of(cluster))
            client.post(f"{path_of(cluster)}/force-delete", {"reason": "test"})
            clusters.remove(cluster)
        case _ if cluster:
            verdict = chance.choice(["True", FAILED, "False/JobRunning"])
            client.report(cluster, chance.choice(["dns", "validation", "other"]), verdict)


def test_filtered_watches_know_what_filtered_lists_know(client: Fleet) -> None:
    """Follow one log with many filters, from its beginning and from the midst; each must know what a list shows."""
    chance = random.Random(5)
    clusters: list[dict[str, Any]] = []
    for _ in range(40):
        act(client, chance, clusters)
    midst, lists = head_of(client), {each: members(client, each) for each in FILTERS}
    for _ in range(60):
        act(client, chance, clusters)
    client.create("the-last-of-all", labels={"tier": "web"})
    for each in FILTERS:
        for start, state in ((0, {}), (midst, lists[each])):
            heard = read_to_end(client, f"/clusters?watch=true&{each}&after={start}")
            known = set(state)
            for event in heard:  # nothing comes twice, changes before it came, or leaves that was not there
                assert (event.data["id"] in known) is (event.event != "added"), (each, event)
                known = known - {event.data["id"]} if event.event == "deleted" else known | {event.data["id"]}
            assert replay(heard, state) == members(client, each), each


def members(client: Fleet, query: str) -> dict[str, Any]:
    return {each["id"]: each for each in client.get(f"/clusters?limit=1000&{query}").json()["items"]}


def read_to_end(client: Fleet, path: str) -> list[Heard]:
    """Read a watch up to the position that the log has reached, which its last bookmark tells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "QUIET", 0.01)
        head = head_of(client)
        with Connection(client, path) as stream:
            stream.wait_for(lambda: any((each.id or 0) >= head for each in stream.heard))
            return [each for each in stream.heard if each.event not in ("", "bookmark")]


def test_fields_are_masked_as_in_lists(client: Fleet) -> None:
    cluster = client.create()
    with Connection(client, "/clusters?watch=true&fields=status.phase") as stream:
        assert stream.take_list()[0].data == {"id": cluster["id"], "status": {"phase": "Pending"}}
        client.report(cluster, "dns", FAILED)
        assert stream.take(1)[0].data == {"id": cluster["id"], "status": {"phase": "Failed"}}


def test_node_pools_of_one_cluster_and_of_all(client: Fleet) -> None:
    one, other = client.create("one"), client.create("other")
    with (
        Connection(client, f"{path_of(one)}/nodepools?watch=true") as own,
        Connection(client, "/nodepools?watch=true") as every,
    ):
        own.take_list()
        every.take_list()
        client.create_pool(other, "elsewhere")
        client.create_pool(one, "here")
        assert summary(own.take(1)) == [("added", "here")]
        assert summary(every.take(2)) == [("added", "elsewhere"), ("added", "here")]


# ── one resource ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_resource_to_its_end(client: Fleet) -> None:
    cluster = client.create()
    client.create("another")
    start = head_of(client)
    with Connection(client, f"{path_of(cluster)}?watch=true") as stream:
        added, synced = stream.take_list()
        assert (added.event, added.data) == ("added", cluster)
        assert synced.id == start
        client.create("third")
        client.report(cluster, "dns", FAILED)
        client.delete(path_of(cluster))
        client.post(f"{path_of(cluster)}/force-delete", {"reason": "test"})
        stream.wait_for(lambda: stream.is_over)
        assert [each.event for each in stream.heard] == ["modified", "modified", "deleted"]
        end = stream.heard[-1]
        assert end.data == {"id": cluster["id"], "type": "Cluster", "href": cluster["href"], "reason": "Removed"}
    problem_of(client.get(f"{path_of(cluster)}?watch=true"), 404, "NotFound")
    with Connection(client, f"{path_of(cluster)}?watch=true&after={start}") as stream:
        stream.wait_for(lambda: stream.is_over)
        assert [each.event for each in stream.heard] == ["", "modified", "modified", "deleted"]
    problem_of(client.get(f"{path_of(cluster)}?watch=true&after={end.id}"), 404, "NotFound")


def test_a_node_pool(client: Fleet) -> None:
    pool = client.create_pool(client.create())
    with Connection(client, f"{path_of(pool)}?watch=true") as stream:
        assert summary(stream.take_list()) == [("added", "workers"), ("synced", "")]
        client.patch(path_of(pool), {"labels": {"tier": "web"}})
        assert summary(stream.take(1)) == [("modified", "workers")]


# ── adapters ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_adapters(client: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_watch, "_INTERVAL", 0.05)
    cluster = client.create()
    client.report(cluster, "dns")
    with Connection(client, "/adapters?watch=true") as stream:
        listed = stream.take_list()
        assert summary(listed) == [("added", "dns"), ("added", "validation"), ("synced", "")]
        assert [each.data for each in listed[:-1]] == client.get("/adapters").json()["items"]
        client.report(cluster, "validation", FAILED)
        client.report(cluster, "pull")
        stream.wait_for(lambda: {"validation", "pull"} <= {each.data["name"] for each in stream.heard if each.data})
        last = {each.data["name"]: each for each in stream.heard if each.data}
        assert {name: each.event for name, each in last.items() if name != "dns"} == {
            "validation": "modified",
            "pull": "added",
        }
        assert last["pull"].data in client.get("/adapters").json()["items"]
    assert errors_of(client.get("/adapters?watch=true&after=1"), 400, "InvalidQuery") == {("after", "UnknownParameter")}


class AwayStore(MemoryStore):
    """A store that is away, and takes a moment to say so."""

    asked = 0

    async def position(self) -> int:
        """Fail."""
        self.asked += 1
        await asyncio.sleep(0.01)
        raise StoreUnavailable("away")


def test_those_who_watch_adapters_find_out_together_that_the_store_is_away() -> None:
    async def scenario() -> None:
        store = AwayStore(SystemClock())
        adapters = adapter_watch.AdapterWatch(store, tail.LogTail(store), find_none)
        found = await asyncio.gather(*(adapters.watch(EVERYTHING) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(each, StoreUnavailable) for each in found)
        assert store.asked == 1

    asyncio.run(scenario())


async def find_none(_: Scope) -> tuple[AdapterSummaryBody, ...]:
    return ()


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "parameter", "code"),
    [
        ("watch=yes", "watch", "BadFormat"),
        ("watch=true&limit=1", "limit", "Exclusive"),
        ("watch=true&page=1", "page", "Exclusive"),
        ("watch=true&orderBy=name", "orderBy", "Exclusive"),
        ("watch=true&continue=x", "continue", "Exclusive"),
        ("watch=true&updatedSince=1h", "updatedSince", "Exclusive"),
        ("watch=true&phase=Red", "phase", "NotAllowed"),
        ("watch=true&fields=colour", "fields", "UnknownField"),
        ("watch=true&after=-1", "after", "BadFormat"),
        ("watch=true&after=x", "after", "BadFormat"),
        ("watch=true&after=0&after=0", "after", "BadFormat"),
        ("watch=true&after=1000", "after", "BadFormat"),
        ("after=1", "after", "Exclusive"),
        ("watch=false&after=1", "after", "Exclusive"),
    ],
)
def test_what_makes_no_sense_is_refused(memory_client: Fleet, query: str, parameter: str, code: str) -> None:
    assert errors_of(memory_client.get(f"/clusters?{query}"), 400, "InvalidQuery") == {(parameter, code)}


def test_a_header_that_makes_no_sense_is_refused(memory_client: Fleet) -> None:
    for value in ("x", "-1", "7"):
        answer = memory_client.get("/clusters?watch=true", headers={"Last-Event-ID": value})
        assert errors_of(answer, 400, "InvalidHeader") == {("Last-Event-ID", "BadFormat")}


def test_watch_false_is_a_list(memory_client: Fleet) -> None:
    memory_client.create()
    assert memory_client.get("/clusters?watch=false").json() == memory_client.get("/clusters").json()


def test_seats_are_limited_and_given_back(memory_client: Fleet) -> None:
    streams = [Connection(memory_client, "/clusters?watch=true") for _ in range(WATCHES)]
    for stream in streams:
        stream.__enter__()
    problem = problem_of(memory_client.get("/clusters?watch=true"), 503, "Overloaded")
    assert problem["title"]
    memory_client.run(streams[0].leave())
    with Connection(memory_client, "/clusters?watch=true") as another:
        assert another.status == 200
    for stream in streams[1:]:
        memory_client.run(stream.leave())


def test_head(memory_client: Fleet) -> None:
    answer = memory_client.request("HEAD", "/clusters?watch=true")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_stop_ends_every_stream_with_where_it_was(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    with (
        Connection(memory_client, "/clusters?watch=true") as every,
        Connection(memory_client, f"{path_of(cluster)}?watch=true") as one,
    ):
        every.take_list()
        memory_client.create("another")
        every.take(1)
        memory_client.tail.close()
        every.wait_for(lambda: every.is_over)
        one.wait_for(lambda: one.is_over)
        assert [(each.event, each.id) for each in every.heard] == [("bookmark", 2)]
        assert one.heard[-1].event == "bookmark"
    problem_of(memory_client.get("/clusters?watch=true"), 503, "Overloaded")


def test_many_watchers_read_no_more_than_one(memory_client: Fleet) -> None:
    def reads(watchers: int) -> int:
        streams = [Connection(memory_client, "/clusters?watch=true&phase=Pending") for _ in range(watchers)]
        for stream in streams:
            stream.__enter__()
            stream.take_list()
        before = memory_client.tail.reads
        for number in range(20):
            memory_client.create(f"c{watchers}-{number}")
            for stream in streams:
                stream.take(1)
        taken = memory_client.tail.reads - before
        for stream in streams:
            memory_client.run(stream.leave())
        return taken

    assert reads(WATCHES) <= 2 * reads(1)  # one for each write, and those of the passing time
