"""Consumers of events against a real server process: both faces of the client, restarts, tenants, the command line."""

from __future__ import annotations

import asyncio
import doctest
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.client import AsyncFleet, Conflict, Event, Fleet, Forbidden, NotFound, Poison
from tests.e2e.server import PATIENCE, ROOT, Server, await_state, command, run_command, running
from tests.e2e.test_client import free_port, restart

GUIDE = ROOT / "docs/events.md"
Receive = Callable[..., list[Event]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("consumers")
    with running(directory, f"sqlite:{directory / 'fleet.db'}", sentinel_enabled="false") as server:
        yield server


@pytest.fixture
def fleet(server: Server) -> Iterator[Fleet]:
    """Give a fleet without clusters and subscriptions."""
    with Fleet(server.url) as fleet:
        for subscription in fleet.subscriptions():
            fleet.delete_subscription(subscription.name)
        for cluster in fleet.clusters.list():
            fleet.clusters.delete(cluster)
            fleet.clusters.force_delete(cluster, "another test begins")
        await_published(fleet)
        yield fleet


def await_published(fleet: Fleet) -> None:
    """Wait until no event is on its way, so that later subscriptions get later events only."""

    def is_published() -> bool:
        state = fleet.pubsub()
        return state.position == state.head

    await_state(is_published)


def receive_plainly(url: str, count: int, name: str = "dns", **options: Any) -> list[Event]:
    """Receive and acknowledge so many events, synchronously."""
    found: list[Event] = []
    with Fleet(url) as fleet, closing(fleet.subscribe(name, **options)) as events:
        for event in islice(events, count):
            assert event.ack()
            found.append(event)
    return found


def receive_on_a_loop(url: str, count: int, name: str = "dns", **options: Any) -> list[Event]:
    """Receive and acknowledge so many events on an event loop."""

    async def go() -> list[Event]:
        found: list[Event] = []
        async with AsyncFleet(url) as fleet, aclosing(fleet.subscribe(name, **options)) as events:
            async for event in events:
                assert await event.ack()
                found.append(event)
                if len(found) == count:
                    return found
        raise AssertionError("it never ends by itself")

    return asyncio.run(go())


@pytest.fixture(params=[receive_plainly, receive_on_a_loop], ids=["plain", "awaited"])
def receive(request: pytest.FixtureRequest) -> Receive:
    """Give one of the ways to receive events."""
    way: Receive = request.param
    return way


def test_the_guide_tells_the_truth(fleet: Fleet, server: Server) -> None:
    text = GUIDE.read_text().replace("http://127.0.0.1:8000", server.url)
    test = doctest.DocTestParser().get_doctest(text, {}, "events.md", str(GUIDE), 0)
    told: list[str] = []
    result = doctest.DocTestRunner().run(test, out=told.append)
    assert result.attempted > 10
    assert result.failed == 0, "".join(told)


def test_changes_reach_a_subscriber(fleet: Fleet, server: Server, receive: Receive) -> None:
    fleet.put_subscription("dns")
    fleet.put_subscription("audit", topic="statusUpdates")
    cluster = fleet.clusters.create("payments", {})
    fleet.report(cluster, "dns", available=True)
    fleet.clusters.reconcile(cluster)
    assert fleet.clusters.reconcile_all(labels="no=such").requested == 0
    created, changed, requested = receive(server.url, 3)
    assert [each.reason for each in (created, changed, requested)] == ["Created", "AdapterChanged", "Requested"]
    assert (changed.adapter, created.adapter) == ("dns", "")
    assert (created.resource_id, created.kind, created.href) == (cluster.id, "Cluster", cluster.href)
    assert (created.subject, created.generation, created.attempt) == (f"Cluster/{cluster.id}", 1, 1)
    assert created.type == "io.hyperfleet.cluster.reconcile"
    moved = receive(server.url, 2, "audit", topic="statusUpdates", prefetch=10)
    assert [each.data["phase"] for each in moved] == ["Pending", "Provisioning"]
    assert fleet.subscription("dns").waiting == fleet.subscription("dns").in_flight == 0
    assert {each.name for each in fleet.subscriptions()} == {"dns", "audit"}


def test_what_is_not_acknowledged_comes_back(fleet: Fleet) -> None:
    fleet.put_subscription("dns")
    fleet.clusters.create("payments", {})
    with closing(fleet.subscribe("dns", deadline=1)) as events:
        first, second = islice(events, 2)
        assert (first.id, first.attempt, second.attempt) == (second.id, 1, 2)
        assert not first.ack(), "its receipt is no longer valid"
        assert second.nack("no such zone", dead_letter=True)
    (letter,) = fleet.dead_letters("dns")
    assert (letter.error, letter.event.id, letter.attempts) == ("no such zone", first.id, 2)
    assert "token" not in repr(second)
    assert fleet.replay_dead_letters("dns") == 1
    assert fleet.subscription("dns").waiting == 1
    with pytest.raises(Conflict):
        next(fleet.subscribe("dns", topic="statusUpdates"))
    fleet.delete_subscription("dns")
    with pytest.raises(NotFound):
        fleet.dead_letters("dns")


def test_a_handler_consumes_every_event(fleet: Fleet, server: Server) -> None:
    fleet.put_subscription("dns")
    clusters = [fleet.clusters.create(f"c{number}", {}) for number in range(10)]
    for cluster in clusters:
        fleet.clusters.reconcile(cluster)
    attempts: Counter[str] = Counter()
    running_now: set[str] = set()

    async def go() -> None:
        stop = asyncio.Event()

        async def handle(event: Event) -> None:
            assert event.resource_id not in running_now, "one event of a resource at a time"
            running_now.add(event.resource_id)
            attempts[event.resource_id] += 1
            await asyncio.sleep(0)
            running_now.remove(event.resource_id)
            if event.resource_id == clusters[0].id:
                raise Poison("no such zone")

        async with AsyncFleet(server.url) as own:
            consuming = asyncio.create_task(own.consume("dns", handle, concurrency=4, stop=stop))
            await asyncio.to_thread(await_state, lambda: is_empty(fleet, "dns"))
            stop.set()
            async with asyncio.timeout(PATIENCE):
                await consuming

    asyncio.run(go())
    assert set(attempts) == {cluster.id for cluster in clusters}
    letters = fleet.dead_letters("dns")
    assert {letter.error for letter in letters} == {"Poison: no such zone"}
    assert {letter.event.resource_id for letter in letters} == {clusters[0].id}


def is_empty(fleet: Fleet, name: str) -> bool:
    """Tell whether everything that was published is answered."""
    state, found = fleet.pubsub(), fleet.subscription(name)
    return state.position == state.head and not found.waiting and not found.in_flight


def test_a_plain_handler_consumes_one_after_the_other(fleet: Fleet, server: Server) -> None:
    fleet.put_subscription("dns")
    clusters = [fleet.clusters.create(f"c{number}", {}) for number in range(3)]
    stop, seen = threading.Event(), list[str]()

    def handle(event: Event) -> None:
        seen.append(event.resource_id)
        if len(seen) == 3:
            stop.set()
        if event.resource_id == clusters[1].id:
            raise Poison("no")

    with Fleet(server.url) as own:
        own.consume("dns", handle, stop=stop)
    assert seen == [cluster.id for cluster in clusters]
    assert [letter.event.resource_id for letter in fleet.dead_letters("dns")] == [clusters[1].id]
    await_state(lambda: is_empty(fleet, "dns"))


def test_a_consumer_survives_a_killed_server(tmp_path: Path) -> None:
    """Between the kill and the restart nobody answers; every cluster of before and after it is handled."""
    port = free_port()
    with running(
        tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", listen=f"127.0.0.1:{port}", sentinel_enabled="false"
    ) as server:
        handled: set[str] = set()

        async def go() -> set[str]:
            stop = asyncio.Event()

            async def handle(event: Event) -> None:
                handled.add(event.resource_id)

            async with AsyncFleet(server.url) as fleet:
                await fleet.put_subscription("dns")
                consuming = asyncio.create_task(fleet.consume("dns", handle, stop=stop, deadline=5))
                created = {(await fleet.clusters.create(f"a{number}", {})).id for number in range(20)}
                await asyncio.to_thread(restart, server)
                created |= {(await fleet.clusters.create(f"b{number}", {})).id for number in range(20)}
                await asyncio.to_thread(await_state, lambda: handled >= created)
                assert not consuming.done()
                stop.set()
                await consuming
                return created

        assert asyncio.run(go()) == handled


# ── tenants ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make tokens for two tenants and for an administrator, and the file that the server knows them by."""
    file = tmp_path_factory.mktemp("tokens") / "tokens.yaml"
    made = {"file": str(file)}
    for name, more in {"red": ("--tenant", "red"), "blue": ("--tenant", "blue"), "all": ("--role", "admin")}.items():
        roles = ("--role", "reporter", "--role", "editor", "--adapter", "*")
        done = run_command("token", "create", "--name", name, *roles, *more, "--file", str(file))
        assert done.returncode == 0, done.stderr
        made[name] = done.stdout.split()[0]
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, tokens: dict[str, str]) -> Iterator[Server]:
    """Run a server that tenants share."""
    directory = tmp_path_factory.mktemp("shared")
    settings = {"auth_tokens": tokens["file"], "sentinel_enabled": "false"}
    with running(directory, f"sqlite:{directory / 'fleet.db'}", **settings) as server:
        yield server


@pytest.mark.parametrize("topic", ["clusterEvents", "statusUpdates"])
def test_events_of_other_tenants_never_arrive(shared: Server, tokens: dict[str, str], topic: Any) -> None:
    red, blue, all_ = (Fleet(shared.url, token=tokens[each]) for each in ("red", "blue", "all"))
    with red, blue, all_:
        for fleet, name in ((red, "red"), (blue, "blue"), (all_, "all")):
            fleet.put_subscription(f"{name}-{topic.lower()}", topic=topic)
        own = {}
        for fleet, name in ((red, "red"), (blue, "blue")):
            cluster = fleet.clusters.create(f"{name}-{topic.lower()}", {})
            fleet.report(cluster, "dns", available=True)
            fleet.clusters.reconcile_all()
            own[name] = {each.id for each in fleet.clusters.list()}
        assert not own["red"] & own["blue"]
        await_published(all_)
        for fleet, name in ((red, "red"), (blue, "blue")):
            events = drain(fleet, f"{name}-{topic.lower()}", topic)
            assert {each.resource_id for each in events} <= own[name]
            assert {each.tenant for each in events} == {name}
        everything = drain(all_, f"all-{topic.lower()}", topic)
        assert {each.tenant for each in everything} == {"red", "blue"}
        other = f"red-{topic.lower()}"
        assert other not in {each.name for each in blue.subscriptions()}
        for refused in (blue.subscription, blue.dead_letters, blue.replay_dead_letters, blue.put_subscription):
            with pytest.raises(NotFound):
                refused(other) if refused != blue.put_subscription else blue.put_subscription(other, topic=topic)
        with pytest.raises(NotFound):
            next(blue.subscribe(other, topic=topic))
        with pytest.raises(Forbidden):
            red.delete_subscription(other)


def drain(fleet: Fleet, name: str, topic: Any) -> list[Event]:
    """Receive and acknowledge everything that waits."""
    found: list[Event] = []
    with closing(fleet.subscribe(name, topic=topic, prefetch=100)) as events:
        for event in islice(events, fleet.subscription(name).waiting):
            event.ack()
            found.append(event)
    assert found
    return found


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────


def test_listening_shows_events_and_leaves_no_subscription_behind(fleet: Fleet, server: Server) -> None:
    with subprocess.Popen(  # noqa: S603  # our own command
        [*command("pubsub", "listen", "--limit", "2"), "--server", server.url], stdout=subprocess.PIPE, text=True
    ) as listening:
        await_state(fleet.subscriptions)
        cluster = fleet.clusters.create("payments", {})
        done = run_command("reconcile", "-l", "!no", server=server.url)
        assert done.stdout.startswith("1 cluster requested at positions up to ")
        out, _ = listening.communicate(timeout=PATIENCE)
    assert listening.returncode == 0
    assert [line.split()[2:4] for line in out.splitlines()] == [
        [f"Cluster/{cluster.id}", "Created"],
        [f"Cluster/{cluster.id}", "Requested"],
    ]
    assert fleet.subscriptions() == ()


def test_one_who_may_not_delete_is_told_who_may(shared: Server, tokens: dict[str, str]) -> None:
    red = Fleet(shared.url, token=tokens["red"])
    with (
        red,
        subprocess.Popen(  # noqa: S603  # our own command
            [*command("pubsub", "listen", "--limit", "1"), "--server", shared.url, "--token", tokens["red"]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as listening,
    ):

        def left_over() -> list[str]:
            return [each.name for each in red.subscriptions() if each.name.startswith("listen-")]

        (name,) = await_state(left_over)
        red.clusters.create("heard", {})
        _, err = listening.communicate(timeout=PATIENCE)
        assert left_over() == [name]
    assert listening.returncode == 0
    assert f"An administrator deletes it with: hyperfleet pubsub unsubscribe {name}" in err
