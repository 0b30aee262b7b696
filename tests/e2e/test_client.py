"""The client against a real server process, on both faces: every operation, restarts in the midst, and its guide."""

from __future__ import annotations

import asyncio
import doctest
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.client import (
    Ambiguous,
    AsyncFleet,
    BatchReport,
    Cluster,
    Conflict,
    Fleet,
    Forgotten,
    Gone,
    Invalid,
    NotFound,
    PreconditionFailed,
    WaitFailed,
    WaitTimeout,
)
from tests.e2e.server import ROOT, Server, await_state, running
from tests.unit.client.faces import FACES, Face

GUIDE = ROOT / "docs/client.md"
POLICY = "requiredAdapters: [validation]"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("client")
    with running(directory, f"sqlite:{directory / 'fleet.db'}") as server:
        yield server


@pytest.fixture
def fleet(server: Server) -> Iterator[Fleet]:
    """Give a fleet in which there is nothing."""
    with Fleet(server.url) as fleet:
        for cluster in fleet.clusters.list():
            fleet.clusters.delete(cluster)
            fleet.clusters.force_delete(cluster, "another test begins")
        yield fleet


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest) -> Face:
    return FACES[request.param]


def test_the_guide_tells_the_truth(fleet: Fleet, server: Server) -> None:
    text = GUIDE.read_text().replace("http://127.0.0.1:8000", server.url)
    test = doctest.DocTestParser().get_doctest(text, {}, "client.md", str(GUIDE), 0)
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert result.attempted > 30
    assert result.failed == 0, "".join(told)


def test_a_life_on_both_faces(face: Face, fleet: Fleet, server: Server) -> None:
    url = server.url
    cluster = face.ask(url, lambda f: f.clusters.create("payments", {"cloud": "aws"}, labels={"env": "prod"}))
    pool = face.ask(url, lambda f: f.node_pools.create("workers", {"replicas": 3}, parent=cluster.id))
    assert face.ask(url, lambda f: f.clusters.get(cluster)).raw == cluster.raw
    assert face.ask(url, lambda f: f.node_pools.get(pool.id)) == pool, "its cluster is looked up"
    assert face.ask(url, lambda f: f.node_pools.get(pool.id, parent=cluster)) == pool
    assert face.ask(url, lambda f: f.node_pools.get(pool.href)) == pool
    assert face.ask(url, lambda f: f.node_pools.find("workers", parent=cluster)) == pool
    assert face.collect(url, lambda f: f.node_pools.list(parent=cluster)) == [pool]
    assert face.collect(url, lambda f: f.node_pools.list(phase=["Failed", "Degraded"])) == []

    for adapter in ("validation", "dns", "infrastructure", "hypershift"):
        outcome = face.ask(url, partial(report_done, cluster=cluster, adapter=adapter))
        assert outcome.outcome == "aggregated"
    assert outcome.raw["phase"] == "Ready"
    assert face.ask(url, lambda f: f.is_ready(cluster))
    assert face.ask(url, lambda f: f.clusters.wait(cluster, timeout=60)).phase == "Ready"
    reports = face.ask(url, lambda f: f.clusters.statuses(cluster, generation=1))
    assert reports.of("dns").data == {"a": 1}
    assert face.ask(url, lambda f: f.clusters.adapter_status(cluster, "dns")).condition("Available").status == "True"

    again = face.ask(url, lambda f: f.clusters.replace(cluster, {"cloud": "gcp"}, labels={"env": "x"}, generation=1))
    assert (again.generation, again.spec, again.labels) == (2, {"cloud": "gcp"}, {"env": "x"})
    assert face.ask(url, lambda f: f.clusters.get(cluster, at=again.metadata.updated_at)).generation == 2
    diff = face.ask(url, lambda f: f.clusters.diff(cluster, from_=cluster.metadata.created_at))
    assert ("/spec/cloud", "aws", "gcp") in [(each.path, each.from_, each.to) for each in diff.items]
    moves = face.collect(url, lambda f: f.clusters.history(cluster, subjects=["phase"]))
    assert [move.to for move in moves][-1] == "Pending"
    assert face.ask(url, lambda f: f.clusters.explain(cluster, condition="Ready")).conditions[0].type == "Ready"

    assert face.ask(url, lambda f: f.clusters.retire_adapter(cluster, "dns")) is None
    assert face.ask(url, lambda f: f.clusters.statuses(cluster)).of("dns") is None
    assert face.ask(url, lambda f: f.clusters.delete(cluster)).phase == "Deleting"
    assert face.ask(url, lambda f: f.clusters.force_delete(cluster, "test")) is None
    with pytest.raises(NotFound):
        face.ask(url, lambda f: f.clusters.get(cluster))


def report_done(fleet: Any, *, cluster: Cluster, adapter: str) -> Any:
    return fleet.report(cluster, adapter, available=True, data={"a": 1})


def test_lists_go_through_all_pages(face: Face, fleet: Fleet, server: Server) -> None:
    names = [f"c{number:02}" for number in range(23)]
    for name in names:
        fleet.clusters.create(name, {}, labels={"half": "late" if name[-1] > "4" else "early"})
    listed = face.collect(server.url, lambda f: f.clusters.list(page_size=5, order_by="name"))
    assert [each.name for each in listed] == names
    listed = face.collect(server.url, lambda f: f.clusters.list(page_size=5, limit=7, order_by="-name", fields="name"))
    assert [each.name for each in listed] == names[:-8:-1]
    early = face.collect(server.url, lambda f: f.clusters.list(labels={"half": "early"}, page_size=1000))
    assert {each.name for each in early} == {name for name in names if name[-1] <= "4"}
    page = face.ask(server.url, lambda f: f.clusters.page(page=2, size=10, order_by="name"))
    assert ([each.name for each in page.items], page.total) == (names[10:20], 23)
    summary = face.ask(server.url, lambda f: f.clusters.summary(["phase", "label:half"]))
    assert summary.total == 23


def test_the_fleet_is_asked(face: Face, fleet: Fleet, server: Server) -> None:
    url = server.url
    cluster = fleet.clusters.create("payments", {})
    done = face.ask(
        url,
        lambda f: f.report_batch(
            [
                BatchReport(cluster, "dns", {"available": False, "reason": "Throttled"}),
                {"clusterId": "cls-none", "adapter": "dns", "observedGeneration": 1, "conditions": []},
            ]
        ),
    )
    assert (done.accepted, done.refused) == (1, 1)
    assert done.results[1].problem.code in ("InvalidBody", "NotFound")
    causes = face.ask(url, lambda f: f.problems(q="payments"))
    assert [(each.adapter, each.reason) for each in causes.items] == [("dns", "Throttled")]
    assert "dns" in [each.name for each in face.ask(url, lambda f: f.adapters())]
    assert face.ask(url, lambda f: f.adapter("dns")).blocked[0].id == cluster.id
    events = face.collect(url, lambda f: f.watch_adapters(), 2)
    assert {each.kind for each in events} <= {"added", "synced"}
    assert "requiredAdapters" in face.ask(url, lambda f: f.policy()).text
    assert face.ask(url, lambda f: f.reload_policy()).version >= 1
    seen: list[int] = []
    found = face.ask(url, lambda f: f.simulate(POLICY, on_progress=lambda p: seen.append(p.total), replay="1h"))
    assert found.examined == 1
    assert found.replay is not None
    assert seen
    with pytest.raises(Invalid) as caught:
        face.ask(url, lambda f: f.simulate("requiredAdapters: [a, a, 7]"))
    assert caught.value.code == "InvalidPolicy"
    assert caught.value.errors[0].line
    assert face.ask(url, lambda f: f.health()).status == "alive"
    assert face.ask(url, lambda f: f.ready()).is_ready
    assert face.ask(url, lambda f: f.version())


def test_what_changed_and_how_many_there_were(face: Face, fleet: Fleet, server: Server) -> None:
    url, before = server.url, next(iter(fleet.transitions(limit=1)), None)
    start = before.position if before else 0
    cluster = fleet.clusters.create("moving", {})
    fleet.report(cluster, "dns", available=False, reason="Broken")
    found = face.collect(url, lambda f: f.transitions(after=start, subjects="phase", q="moving"))
    assert [(each.name, each.phase) for each in found] == [("moving", "Pending"), ("moving", "Failed")]
    assert [move.from_ for each in found for move in each.transitions] == [None, "Pending"]
    newest = face.collect(url, lambda f: f.transitions(q="moving", moved_to=["Failed"], limit=1))
    assert [each.position for each in newest] == [found[-1].position]
    watched = face.collect(url, lambda f: f.watch_transitions(after=start, subjects="phase", q="moving"), 3)
    assert [(each.kind, each.resource) for each in watched][1:] == [("transitions", each) for each in found]
    then = face.ask(url, lambda f: f.clusters.summary(at=found[0].time, q="moving"))
    assert (then.total, then.groups, then.at) == (1, ({"phase": "Pending", "count": 1},), found[0].time)
    trend = face.ask(url, lambda f: f.clusters.summary(trend=timedelta(hours=1), step="10m", q="moving"))
    assert [point.total for point in trend.trend] == [0] * 6 + [1]


def test_names_that_are_shared(fleet: Fleet) -> None:
    one, other = fleet.clusters.create("one", {}), fleet.clusters.create("other", {})
    pools = [fleet.node_pools.create("workers", {}, parent=each) for each in (one, other)]
    with pytest.raises(Ambiguous) as caught:
        fleet.node_pools.find("workers")
    assert set(caught.value.candidates) == {pool.id for pool in pools}
    assert fleet.node_pools.find(pools[0].id) == pools[0]
    with pytest.raises(NotFound, match="no cluster with the name or id on"):
        fleet.clusters.find("on")
    fleet.clusters.delete(one)
    successor = fleet.clusters.create("one", {})
    assert fleet.clusters.find("one").id == successor.id, "the one that stays"
    fleet.clusters.force_delete(one, "test")
    with pytest.raises(NotFound):
        fleet.node_pools.get("np-none")
    with pytest.raises(ValueError, match="needs a parent"):
        fleet.node_pools.create("x", {})


def test_nobody_is_overwritten(fleet: Fleet) -> None:
    cluster = fleet.clusters.create("payments", {"a": 1})
    fleet.clusters.patch(cluster, {"spec": {"a": 2}})
    with pytest.raises(Conflict) as caught:
        fleet.clusters.replace(cluster, {"a": 3}, generation=cluster.generation)
    assert caught.value.code == "GenerationConflict"
    with pytest.raises(PreconditionFailed):
        fleet.clusters.replace(cluster, {"a": 3}, etag=cluster.etag)
    with pytest.raises(Conflict) as caught:
        fleet.clusters.create("payments", {})
    assert caught.value.code == "NameTaken"
    with pytest.raises(Conflict) as caught:
        fleet.clusters.label(fleet.clusters.label(cluster, {"env": "prod"}), {"env": "dev"}, overwrite=False)
    assert caught.value.code == "LabelTaken"
    assert fleet.clusters.create("same", {}, key="k-1").id == fleet.clusters.create("same", {}, key="k-1").id


def test_applying_at_the_same_time_ends_with_all_of_it(fleet: Fleet, server: Server) -> None:
    async def go() -> list[str]:
        async with AsyncFleet(server.url) as f:
            done = await asyncio.gather(*(f.clusters.apply("payments", {"n": number}) for number in range(4)))
            found = await f.clusters.find("payments")
            await asyncio.gather(*(f.clusters.label(found, {f"l{number}": "x"}) for number in range(4)))
            return [each.action for each in done]

    actions = asyncio.run(go())
    assert sorted(actions).count("created") >= 1
    found = [each for each in fleet.clusters.list() if each.name == "payments"]
    assert len(found) == 1
    assert set(found[0].labels) == {"l0", "l1", "l2", "l3"}


def test_waits_end_in_every_way(face: Face, fleet: Fleet, server: Server) -> None:
    url = server.url
    cluster = fleet.clusters.create("payments", {})
    with pytest.raises(WaitTimeout) as caught:
        face.ask(url, lambda f: f.wait_for_adapter(cluster, "dns", timeout=0.01))
    assert caught.value.errors
    fleet.report(cluster, "dns", available=False, reason="Throttled")
    with pytest.raises(WaitFailed, match="dns is Failed"):
        face.ask(url, lambda f: f.wait_for_adapter(cluster, "dns", timeout=60))
    with pytest.raises(Invalid):
        face.ask(url, lambda f: f.clusters.wait(cluster, for_="phase=Nonsense"))
    threading.Timer(0.2, remove, (server.url, cluster)).start()
    with pytest.raises(Gone):
        face.ask(url, lambda f: f.clusters.wait(cluster, timeout=60))
    assert face.ask(url, lambda f: f.clusters.wait(cluster, for_="deleted", timeout=60)) is None


def remove(url: str, cluster: Cluster) -> None:
    with Fleet(url) as fleet:
        fleet.clusters.delete(cluster)
        fleet.clusters.force_delete(cluster, "test")


def test_deleting_with_patience(face: Face, fleet: Fleet, server: Server) -> None:
    cluster = fleet.clusters.create("payments", {})
    fleet.report(cluster, "dns", available=True)
    with pytest.raises(WaitTimeout):
        face.ask(server.url, lambda f: f.clusters.delete(cluster, wait=True, timeout=0.05))
    threading.Timer(0.2, finalize, (server.url, cluster)).start()
    assert face.ask(server.url, lambda f: f.clusters.delete(cluster, wait=True, timeout=60)) is None


def finalize(url: str, cluster: Cluster) -> None:
    with Fleet(url) as fleet:
        for adapter in ("validation", "dns", "infrastructure", "hypershift"):
            if fleet.report(cluster.id, adapter, available=True, finalized=True).removed:
                return


def test_the_past_that_is_not_there(fleet: Fleet) -> None:
    cluster = fleet.clusters.create("payments", {})
    with pytest.raises((NotFound, Forgotten)):
        fleet.clusters.get(cluster, at=timedelta(hours=5))
    assert fleet.clusters.statuses(cluster).adapter_statuses == ()
    with pytest.raises(NotFound):
        fleet.clusters.statuses("cls-none")
    with pytest.raises(NotFound):
        fleet.clusters.retire_adapter(cluster, "dns")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def test_a_watch_and_a_wait_survive_a_killed_server(tmp_path: Path) -> None:
    """Between the kill and the restart nobody answers; what happened before and after it is told once, in order."""
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", listen=f"127.0.0.1:{free_port()}") as server:

        async def go() -> tuple[list[Any], Any]:
            async with AsyncFleet(server.url) as fleet:
                cluster = await fleet.clusters.create("payments", {"n": 0})
                waiting = asyncio.create_task(fleet.clusters.wait(cluster, for_="adapter=dns", timeout=120))
                positions = []
                async with aclosing(fleet.clusters.watch()) as events:
                    async for event in events:
                        assert event.kind != "relist"
                        if event.kind == "synced":
                            await asyncio.to_thread(restart, server)
                            for number in range(1, 4):
                                await fleet.clusters.patch(cluster, {"spec": {"n": number}})
                            await fleet.report(cluster.id, "dns", available=True)
                        if event.kind == "modified":
                            assert event.resource is not None
                            positions.append((event.position, event.resource.generation))
                        if len(positions) == 4:
                            break
                return positions, await waiting

        positions, found = asyncio.run(go())
    assert [generation for _, generation in positions] == [2, 3, 4, 4]
    assert positions == sorted(positions)
    assert found.status.adapter("dns").state == "Completed"


def test_nothing_of_ours_stays_open_when_a_server_goes_by_itself(tmp_path: Path) -> None:
    """The one above ends with the thread that started it again, now before and now after we look."""
    with running(tmp_path, "memory:") as server:
        os.kill(server.pid, signal.SIGKILL)
        await_state(lambda: not server.is_running())
    assert server.http.is_closed


def restart(server: Server) -> None:
    server.kill9()
    server.start()
