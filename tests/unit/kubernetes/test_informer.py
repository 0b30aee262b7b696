"""Informers on a cluster in memory: sharing, handlers that fail, lists after a gap. Contract tests have the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from hyperfleet.errors import KindUnknown
from hyperfleet.kubernetes.informer import Change, SharedInformers
from hyperfleet.kubernetes.port import ObjectRef, Selection
from tests.kubernetes_objects import CONFIG_MAP, MANAGER, WIDGET, config_map, definition, until, widget

pytestmark = pytest.mark.anyio
ALL = Selection(CONFIG_MAP)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def cluster() -> DryRunCluster:
    return DryRunCluster()


@pytest.fixture
async def informers(cluster: DryRunCluster, anyio_backend: str) -> AsyncIterator[SharedInformers]:
    shared = SharedInformers(cluster)
    yield shared
    await shared.close()


async def test_one_informer_serves_all_who_follow_the_same(cluster: DryRunCluster, informers: SharedInformers) -> None:
    first: list[Change] = []
    second: list[Change] = []
    informer = informers.follow(ALL, first.append)
    await informer.wait_synced()
    await cluster.apply(config_map("test", "a"), manager=MANAGER)
    await until(lambda: len(first) == 1)
    assert informers.follow(ALL, second.append) is informer
    assert second == [Change(ObjectRef(CONFIG_MAP, "test", "a"), None, informer.items()[0])]
    assert informers.follow(Selection(CONFIG_MAP, "test")) is not informer
    assert len(informers.informers()) == 2
    await informers.release(ALL, first.append)
    await cluster.delete(ObjectRef(CONFIG_MAP, "test", "a"))
    await until(lambda: len(second) == 2)
    assert len(first) == 1


async def test_a_handler_that_fails_stops_nothing(
    cluster: DryRunCluster, informers: SharedInformers, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(change: Change) -> None:
        raise ValueError("a mistake")

    changes: list[Change] = []
    informers.follow(ALL, fail)
    informers.follow(ALL, changes.append)
    await cluster.apply(config_map("test", "a"), manager=MANAGER)
    await cluster.apply(config_map("test", "b"), manager=MANAGER)
    await until(lambda: len(changes) == 2)
    assert "a handler of changes of ConfigMap test/a failed" in caplog.text


async def test_after_a_gap_the_differences_are_reported(cluster: DryRunCluster, informers: SharedInformers) -> None:
    for name in "abc":
        await cluster.apply(config_map("test", name), manager=MANAGER)
    informer = informers.follow(ALL)
    await informer.wait_synced()
    changes: list[Change] = []
    informer.add_handler(changes.append)
    del changes[:]
    # All of this happens before the informer runs again.
    await cluster.delete(ObjectRef(CONFIG_MAP, "test", "a"))
    await cluster.apply(config_map("test", "b", {"k": "v"}), manager=MANAGER)
    await cluster.apply(config_map("test", "d"), manager=MANAGER)
    cluster.forget_changes()
    await until(lambda: len(changes) == 3)
    assert [(each.ref.name, each.before is None, each.after is None) for each in changes] == [
        ("a", False, True),
        ("b", False, False),
        ("d", True, False),
    ]
    assert informer.error is None


async def test_a_kind_that_does_not_exist_yet_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    cluster = DryRunCluster(is_strict=True)
    informers = SharedInformers(cluster)
    informer = informers.follow(Selection(WIDGET))
    await until(lambda: isinstance(informer.error, KindUnknown))
    await asyncio.sleep(0)
    assert not informer.is_synced
    await cluster.apply(definition(), manager=MANAGER)
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test"}}, manager=MANAGER)
    made = await cluster.apply(widget("test", "a", spec={}), manager=MANAGER)
    await until(lambda: informer.items() == [made])
    assert informer.error is None
    assert caplog.text.count("cannot be followed") == 1
    await informers.close()
