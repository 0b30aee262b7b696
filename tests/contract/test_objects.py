"""What every Kubernetes cluster does for us, a real one or one in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest

from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from hyperfleet.errors import KindUnknown, ObjectConflict, ObjectInvalid, ObjectNotFound
from hyperfleet.kubernetes.informer import Change, Informer
from hyperfleet.kubernetes.port import (
    KubernetesObject,
    ObjectClient,
    ObjectKind,
    ObjectRef,
    Selection,
    WatchEvent,
    match_labels,
)
from tests.kubernetes_objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    MANAGER,
    NAMESPACE,
    config_map,
    connect_to,
    definition,
    deployment,
    install,
    namespace,
    temporary_namespace,
    until,
    widget,
)

pytestmark = pytest.mark.anyio
CLUSTERS = ["dry-run", pytest.param("api-server", marks=pytest.mark.kubernetes)]


@pytest.fixture(params=CLUSTERS)
def place(request: pytest.FixtureRequest) -> str:
    """Give the name of an empty namespace, in each kind of cluster."""
    return str(request.getfixturevalue("real_place")) if request.param == "api-server" else "test"


@pytest.fixture
def real_place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the name of an empty namespace in a real cluster."""
    with temporary_namespace(request.getfixturevalue("kubernetes")) as name:
        yield name


@pytest.fixture
async def client(request: pytest.FixtureRequest, place: str, anyio_backend: str) -> AsyncIterator[ObjectClient]:
    """Give a client of each kind of cluster, in which the namespace exists."""
    if request.node.callspec.params["place"] == "dry-run":
        cluster = DryRunCluster(is_strict=True)
        await cluster.apply(namespace("test"), manager=MANAGER)
        yield cluster
        return
    real = connect_to(request.getfixturevalue("kubernetes"), page=3)  # small pages, so that lists have several
    yield real
    await real.close()


async def apply(client: ObjectClient, manifest: KubernetesObject, manager: str = MANAGER) -> KubernetesObject:
    return await client.apply(manifest, manager=manager)


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_kinds_are_discovered(client: ObjectClient) -> None:
    served = await client.discover(DEPLOYMENT)
    assert (served.plural, served.is_namespaced, served.has_status) == ("deployments", True, True)
    served = await client.discover(CONFIG_MAP)
    assert (served.plural, served.is_namespaced, served.has_status) == ("configmaps", True, False)
    assert not (await client.discover(NAMESPACE)).is_namespaced


@pytest.mark.parametrize("kind", [ObjectKind("nowhere.io/v1", "Thing"), ObjectKind("v1", "Thing")])
async def test_an_unknown_kind_is_an_error_of_its_own(client: ObjectClient, kind: ObjectKind) -> None:
    with pytest.raises(KindUnknown):
        await client.discover(kind)
    with pytest.raises(KindUnknown):
        await client.get(ObjectRef(kind, "default", "name"))
    with pytest.raises(KindUnknown):
        await client.list(Selection(kind))


async def test_a_kind_can_be_defined_while_we_run(client: ObjectClient, place: str) -> None:
    kind = ObjectKind(f"{uuid4().hex[:8]}.hyperfleet.io/v1", "Gadget")
    with pytest.raises(KindUnknown):
        await client.discover(kind)
    await install(client, definition(kind, scope="Cluster"))
    served = await client.discover(kind)
    assert (served.plural, served.is_namespaced, served.has_status) == ("gadgets", False, True)
    made = await apply(client, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}})
    assert await client.get(ObjectRef(kind, "", "a")) == made


# ── applying ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_applied_object_is_there(client: ObjectClient, place: str) -> None:
    made = await apply(client, config_map(place, "a", {"k": "v"}, labels={"l": "1"}))
    found = await client.get(ObjectRef(CONFIG_MAP, place, "a"))
    assert found == made
    assert (found["apiVersion"], found["kind"], found["data"]) == ("v1", "ConfigMap", {"k": "v"})
    metadata = found["metadata"]
    assert (metadata["name"], metadata["namespace"], metadata["labels"]) == ("a", place, {"l": "1"})
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert "managedFields" not in metadata


async def test_applying_the_same_again_changes_nothing(client: ObjectClient, place: str) -> None:
    manifest = config_map(place, "a", {"k": "v"})
    assert await apply(client, manifest) == await apply(client, manifest)


async def test_fields_that_are_no_longer_applied_are_removed(client: ObjectClient, place: str) -> None:
    first = await apply(client, config_map(place, "a", {"k": "v", "other": "w"}, labels={"l": "1"}))
    second = await apply(client, config_map(place, "a", {"k": "new"}))
    assert second["data"] == {"k": "new"}
    assert "labels" not in second["metadata"]
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]


async def test_fields_of_another_manager_stay(client: ObjectClient, place: str) -> None:
    await apply(client, config_map(place, "a", {"mine": "1", "both": "2"}))
    await apply(client, config_map(place, "a", {"theirs": "3", "both": "2"}), "other")
    found = await apply(client, config_map(place, "a", {}))
    assert found["data"] == {"theirs": "3", "both": "2"}


async def test_a_field_of_another_manager_is_a_conflict(client: ObjectClient, place: str) -> None:
    before = await apply(client, config_map(place, "a", {"k": "v"}))
    with pytest.raises(ObjectConflict, match=r'"tests".*data\.k'):
        await apply(client, config_map(place, "a", {"k": "w"}), "other")
    assert await client.get(ObjectRef.of(before)) == before


async def test_force_takes_a_field_over(client: ObjectClient, place: str) -> None:
    await apply(client, config_map(place, "a", {"k": "v"}))
    found = await client.apply(config_map(place, "a", {"k": "w"}), manager="other", force=True)
    assert found["data"] == {"k": "w"}
    with pytest.raises(ObjectConflict):
        await apply(client, config_map(place, "a", {"k": "v"}))
    assert (await apply(client, config_map(place, "a", {})))["data"] == {"k": "w"}  # it is no longer ours to remove


async def test_drift_is_repaired_by_force(client: ObjectClient, place: str) -> None:
    manifest = deployment(place, "web")
    await apply(client, manifest)
    await client.apply(deployment(place, "web", "evil:1"), manager="somebody", force=True)
    found = await client.apply(manifest, manager=MANAGER, force=True)
    assert [each["image"] for each in found["spec"]["template"]["spec"]["containers"]] == ["web:1"]


async def test_a_manager_owns_its_items_of_a_keyed_list(client: ObjectClient, place: str) -> None:
    await apply(client, deployment(place, "web"))
    sidecar = deployment(place, "web")
    sidecar["spec"] = {"template": {"spec": {"containers": [{"name": "sidecar", "image": "proxy:1"}]}}}
    await apply(client, sidecar, "other")
    found = await apply(client, deployment(place, "web", "web:2"))
    containers = {each["name"]: each["image"] for each in found["spec"]["template"]["spec"]["containers"]}
    assert containers == {"web": "web:2", "sidecar": "proxy:1"}


async def test_the_generation_follows_the_spec(client: ObjectClient, place: str) -> None:
    assert (await apply(client, deployment(place, "web", replicas=1)))["metadata"]["generation"] == 1
    changed = deployment(place, "web", replicas=2)
    assert (await apply(client, changed))["metadata"]["generation"] == 2
    changed["metadata"]["labels"] = {"l": "1"}
    assert (await apply(client, changed))["metadata"]["generation"] == 2


async def test_the_status_is_applied_apart(client: ObjectClient, place: str) -> None:
    await install(client, definition())
    made = await apply(client, widget(place, "a", spec={"size": 1}, status={"phase": "ignored"}))
    assert "status" not in made
    status = widget(place, "a", spec={"size": 5}, status={"phase": "Ready"})
    found = await client.apply_status(status, manager=MANAGER)
    assert (found["spec"], found["status"]) == ({"size": 1}, {"phase": "Ready"})
    assert found["metadata"]["generation"] == 1
    assert (await apply(client, widget(place, "a", spec={"size": 2})))["status"] == {"phase": "Ready"}


async def test_the_status_of_nothing_cannot_be_applied(client: ObjectClient, place: str) -> None:
    await install(client, definition())
    with pytest.raises(ObjectNotFound):
        await client.apply_status(widget(place, "none", status={"phase": "Ready"}), manager=MANAGER)


async def test_with_a_uid_only_that_object_is_changed(client: ObjectClient, place: str) -> None:
    made = await apply(client, config_map(place, "a", {"k": "v"}))
    await apply(client, config_map(place, "a", {"k": "w"}, uid=made["metadata"]["uid"]))
    for name in ("a", "none"):
        with pytest.raises(ObjectConflict):
            await apply(client, config_map(place, name, {"k": "x"}, uid=str(uuid4())))
    assert (await client.get(ObjectRef.of(made)))["data"] == {"k": "w"}


async def test_with_a_version_only_that_one_is_changed(client: ObjectClient, place: str) -> None:
    made = await apply(client, config_map(place, "a", {"k": "v"}))
    version = made["metadata"]["resourceVersion"]
    await apply(client, config_map(place, "a", {"k": "w"}, resourceVersion=version))
    with pytest.raises(ObjectConflict):
        await apply(client, config_map(place, "a", {"k": "x"}, resourceVersion=version))


@pytest.mark.parametrize("name", ["", "a/b", "..", "%2e"])
async def test_names_that_lead_elsewhere_are_refused(client: ObjectClient, place: str, name: str) -> None:
    with pytest.raises(ObjectInvalid):
        await apply(client, config_map(place, name))
    with pytest.raises(ObjectInvalid):
        await client.delete(ObjectRef(CONFIG_MAP, place, name))


async def test_a_namespaced_object_needs_a_namespace(client: ObjectClient, place: str) -> None:
    with pytest.raises(ObjectInvalid, match=r"metadata\.namespace"):
        await apply(client, config_map("", "a"))
    with pytest.raises(ObjectNotFound, match="missing-namespace"):
        await apply(client, config_map("missing-namespace", "a"))


async def test_an_object_outside_of_namespaces_ignores_a_namespace(client: ObjectClient, place: str) -> None:
    found = await client.get(ObjectRef(NAMESPACE, "*", place))
    assert found["metadata"]["name"] == place
    assert "namespace" not in found["metadata"]


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_deleted_object_is_gone(client: ObjectClient, place: str) -> None:
    ref = ObjectRef.of(await apply(client, config_map(place, "a")))
    await client.delete(ref)
    with pytest.raises(ObjectNotFound):
        await client.get(ref)
    with pytest.raises(ObjectNotFound):
        await client.delete(ref)


async def test_only_the_object_with_the_uid_is_deleted(client: ObjectClient, place: str) -> None:
    made = await apply(client, config_map(place, "a"))
    with pytest.raises(ObjectConflict):
        await client.delete(ObjectRef.of(made), uid=str(uuid4()))
    assert await client.get(ObjectRef.of(made)) == made
    await client.delete(ObjectRef.of(made), uid=made["metadata"]["uid"])
    with pytest.raises(ObjectNotFound):
        await client.get(ObjectRef.of(made))


async def test_finalizers_hold_an_object(client: ObjectClient, place: str) -> None:
    held = config_map(place, "a", finalizers=["hyperfleet.io/test"])
    ref = ObjectRef.of(await apply(client, held))
    await apply(client, config_map(place, "a", finalizers=["hyperfleet.io/other"]), "other")
    for _ in range(2):
        await client.delete(ref)
        found = await client.get(ref)
        assert found["metadata"]["deletionTimestamp"]
    found = await apply(client, config_map(place, "a"))
    assert found["metadata"]["finalizers"] == ["hyperfleet.io/other"]
    await apply(client, config_map(place, "a"), "other")
    with pytest.raises(ObjectNotFound):
        await client.get(ref)


async def test_an_object_that_was_deleted_can_be_made_again(client: ObjectClient, place: str) -> None:
    first = await apply(client, config_map(place, "a", {"k": "v"}))
    await client.delete(ObjectRef.of(first))
    second = await apply(client, config_map(place, "a", {"k": "v"}))
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


# ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", "abcdefgh"),
        (match_labels({"parity": "even", "own": "yes"}), "aceg"),
        ("parity!=even", "bdfh"),
        ("first", "a"),
        ("!first,parity in (even)", "ceg"),
        ("parity notin (even, odd)", ""),
    ],
)
async def test_objects_are_listed_by_labels(client: ObjectClient, place: str, selector: str, names: str) -> None:
    for number, name in enumerate("abcdefgh"):
        labels = {"own": "yes", "parity": "odd" if number % 2 else "even", **({"first": ""} if number == 0 else {})}
        await apply(client, config_map(place, name, labels=labels))
    found = await client.list(Selection(CONFIG_MAP, place, selector))
    assert [each["metadata"]["name"] for each in found.items] == list(names)
    assert all(ObjectKind.of(each) == CONFIG_MAP for each in found.items)


async def test_objects_of_all_namespaces_are_listed(client: ObjectClient, place: str) -> None:
    label = f"l{uuid4().hex}"
    other = f"{place}-other"
    await apply(client, namespace(other))
    for each in (place, other):
        await apply(client, config_map(each, "a", labels={label: ""}))
    found = await client.list(Selection(CONFIG_MAP, None, label))
    assert sorted(each["metadata"]["namespace"] for each in found.items) == [place, other]
    assert found.version


async def test_a_selector_that_is_none_is_refused(client: ObjectClient, place: str) -> None:
    with pytest.raises(ObjectInvalid):
        await client.list(Selection(CONFIG_MAP, place, "a in ("))


# ── watching ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def collect(client: ObjectClient, selection: Selection, version: str, number: int) -> list[WatchEvent]:
    """Return the first changes since a version."""
    found: list[WatchEvent] = []
    async with asyncio.timeout(60), client.watch(selection, version) as events:
        async for event in events:
            if event.type != "bookmark":
                found.append(event)
            if len(found) == number:
                break
    return found


async def test_every_change_since_a_version_is_sent(client: ObjectClient, place: str) -> None:
    selection = Selection(CONFIG_MAP, place)
    version = (await client.list(selection)).version
    made = await apply(client, config_map(place, "a", {"k": "1"}))
    changed = await apply(client, config_map(place, "a", {"k": "2"}))
    await apply(client, config_map(place, "a", {"k": "2"}))
    await client.delete(ObjectRef.of(made))
    events = await collect(client, selection, version, 3)
    assert [each.type for each in events] == ["added", "modified", "deleted"]
    assert [each.object for each in events[:2]] == [made, changed]
    assert ObjectRef.of(events[2].object) == ObjectRef.of(made)
    assert events[0].version == made["metadata"]["resourceVersion"]
    resumed = await collect(client, selection, events[0].version, 2)
    assert [each.type for each in resumed] == ["modified", "deleted"]


async def test_changes_are_sent_when_they_happen(client: ObjectClient, place: str) -> None:
    selection = Selection(CONFIG_MAP, place)
    async with asyncio.timeout(60), client.watch(selection, (await client.list(selection)).version) as events:
        for name in "abc":
            made = await apply(client, config_map(place, name))
            event = await anext(events)
            assert (event.type, event.object) == ("added", made)


async def test_a_watch_sees_what_enters_and_leaves_its_selection(client: ObjectClient, place: str) -> None:
    selection = Selection(CONFIG_MAP, place, "l=1")
    version = (await client.list(selection)).version
    for labels in ({}, {"l": "1"}, {"l": "1", "m": "1"}, {"l": "2"}):
        await apply(client, config_map(place, "a", labels=labels))
    await apply(client, config_map(place, "other", labels={"l": "2"}))
    await apply(client, config_map(place, "last", labels={"l": "1"}))
    events = await collect(client, selection, version, 4)
    assert [each.type for each in events] == ["added", "modified", "deleted", "added"]


async def test_a_watch_ends_in_time(client: ObjectClient, place: str) -> None:
    selection = Selection(CONFIG_MAP, place)
    version = (await client.list(selection)).version
    await apply(client, config_map(place, "a"))
    async with asyncio.timeout(60), client.watch(selection, version, seconds=1) as events:
        assert [event.type async for event in events if event.type != "bookmark"] == ["added"]


async def test_a_watch_can_be_resumed_from_a_bookmark(client: ObjectClient, place: str) -> None:
    selection = Selection(CONFIG_MAP, place)
    version = (await client.list(selection)).version
    # An API server sends a bookmark each minute, and some seconds before the end, but only if something changed during
    # the watch; the dry run sends one at the end.
    seconds = 1 if isinstance(client, DryRunCluster) else 6
    other = Selection(CONFIG_MAP, place, "l=2")
    async with asyncio.timeout(60), client.watch(other, version, seconds=seconds) as events:
        await apply(client, config_map(place, "unrelated", labels={"l": "1"}))
        bookmark = await anext(events)
    assert bookmark.type == "bookmark"
    assert int(bookmark.version) > int(version)
    made = await apply(client, config_map(place, "a"))
    assert (await collect(client, selection, bookmark.version, 1))[0].object == made


# ── informers ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_informer_has_a_copy_and_reports_changes(client: ObjectClient, place: str) -> None:
    await apply(client, config_map(place, "a", {"k": "1"}))
    informer = Informer(client, Selection(CONFIG_MAP, place))
    changes: list[Change] = []
    informer.add_handler(changes.append)
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    ref = ObjectRef(CONFIG_MAP, place, "a")
    assert informer.get(ref) == await client.get(ref)
    second = await apply(client, config_map(place, "a", {"k": "2"}))
    await until(lambda: informer.get(ref) == second)
    await client.delete(ref)
    await until(lambda: not informer.items())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(each.ref, each.before is None, each.after is None) for each in changes] == [
        (ref, True, False),
        (ref, False, False),
        (ref, False, True),
    ]
