"""What a dry run does beyond the contract of clusters: objects from the start, a trace, kinds that nobody defined."""

from __future__ import annotations

import pytest

from hyperfleet.backends.kubernetes.dry_run import DryRunCluster, Operation
from hyperfleet.errors import ObjectConflict, ObjectNotFound, VersionExpired
from hyperfleet.kubernetes.port import ObjectKind, ObjectRef, Selection
from tests.kubernetes_objects import CONFIG_MAP, MANAGER, NAMESPACE, config_map, deployment, namespace, widget

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_preloaded_objects_exist_and_keep_their_fields() -> None:
    """As the discovery file of the Go programs: it says how an object looks after it was applied."""
    cluster = DryRunCluster()
    done = {**deployment("fleet", "web"), "status": {"availableReplicas": 1}}
    cluster.preload([done])
    ref = ObjectRef.of(done)
    before = await cluster.get(ref)
    assert (before["status"], before["metadata"]["namespace"]) == ({"availableReplicas": 1}, "fleet")
    after = await cluster.apply(deployment("fleet", "web", "web:2", replicas=3), manager=MANAGER)
    assert after["status"] == {"availableReplicas": 1}
    assert after["spec"]["replicas"] == 3
    assert after["spec"]["template"]["spec"]["containers"] == [{"name": "web", "image": "web:1"}]
    await cluster.delete(ref)
    with pytest.raises(ObjectNotFound):
        await cluster.get(ref)


async def test_every_operation_is_recorded() -> None:
    operations: list[Operation] = []
    cluster = DryRunCluster(record=operations.append)
    for value in ("1", "1", "2"):
        await cluster.apply(config_map("test", "a", {"k": value}), manager=MANAGER)
    ref = ObjectRef(CONFIG_MAP, "test", "a")
    await cluster.get(ref)
    await cluster.list(Selection(CONFIG_MAP))
    with pytest.raises(ObjectConflict):
        await cluster.apply(config_map("test", "a", {"k": "3"}), manager="other")
    await cluster.delete(ref)
    with pytest.raises(ObjectNotFound):
        await cluster.get(ref)
    assert [(each.verb, each.outcome) for each in operations] == [
        ("apply", "created"),
        ("apply", "unchanged"),
        ("apply", "updated"),
        ("get", "found"),
        ("list", "found"),
        ("apply", "ObjectConflict"),
        ("delete", "deleted"),
        ("get", "ObjectNotFound"),
    ]
    assert operations[2].result is not None
    assert operations[2].result["data"] == {"k": "2"}
    assert 'conflict with "tests": .data.k' in operations[5].error


async def test_kinds_and_namespaces_need_not_exist() -> None:
    cluster = DryRunCluster()
    made = await cluster.apply(widget("nowhere", "a", spec={"size": 1}), manager=MANAGER)
    assert await cluster.get(ObjectRef.of(made)) == made
    kind = ObjectKind("example.com/v1", "Policy")
    assert (await cluster.discover(kind)).plural == "policies"
    outside = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "all"}}
    await cluster.apply(outside, manager=MANAGER)
    assert (await cluster.get(ObjectRef(kind, "*", "all")))["metadata"]["name"] == "all"


async def test_what_belongs_to_a_deleted_object_is_deleted() -> None:
    cluster = DryRunCluster()
    await cluster.apply(namespace("test"), manager=MANAGER)
    owner = await cluster.apply(config_map("test", "owner"), manager=MANAGER)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = config_map("test", "owned", ownerReferences=[reference])
    held = config_map("test", "held", ownerReferences=[reference], finalizers=["hyperfleet.io/test"])
    for manifest in (owned, held, config_map("test", "other")):
        await cluster.apply(manifest, manager=MANAGER)
    await cluster.delete(ObjectRef.of(owner))
    found = (await cluster.list(Selection(CONFIG_MAP))).items
    names = [(each["metadata"]["name"], "deletionTimestamp" in each["metadata"]) for each in found]
    assert names == [("held", True), ("other", False)]
    await cluster.delete(ObjectRef(NAMESPACE, "", "test"))
    assert [each["metadata"]["name"] for each in (await cluster.list(Selection(CONFIG_MAP))).items] == ["held"]


async def test_orphans_stay() -> None:
    cluster = DryRunCluster()
    owner = await cluster.apply(config_map("test", "owner"), manager=MANAGER)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await cluster.apply(config_map("test", "owned", ownerReferences=[reference]), manager=MANAGER)
    await cluster.delete(ObjectRef.of(owner), propagation="Orphan")
    assert [each["metadata"]["name"] for each in (await cluster.list(Selection(CONFIG_MAP))).items] == ["owned"]


async def test_old_versions_expire() -> None:
    cluster = DryRunCluster()
    await cluster.apply(config_map("test", "a"), manager=MANAGER)
    cluster.forget_changes()
    async with cluster.watch(Selection(CONFIG_MAP), "0") as events:
        with pytest.raises(VersionExpired):
            await anext(events)


async def test_answers_are_copies() -> None:
    cluster = DryRunCluster()
    made = await cluster.apply(config_map("test", "a", {"k": "v"}), manager=MANAGER)
    made["data"]["k"] = "changed"
    assert (await cluster.get(ObjectRef.of(made)))["data"] == {"k": "v"}
