"""What an adapter does with objects, in a real cluster and in the dry run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.adapter.config import AdapterConfig
from hyperfleet.adapter.reconcile import EventResult
from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from hyperfleet.errors import ObjectNotFound
from hyperfleet.kubernetes.port import KubernetesObject, ObjectClient, ObjectRef
from tests.adapters import conditions_of, reports_of, resource, run_event, usual_api, write_adapter
from tests.kubernetes_objects import CONFIG_MAP, MANAGER, config_map, connect_to, namespace, temporary_namespace

pytestmark = pytest.mark.anyio
CLUSTERS = ["dry-run", pytest.param("api-server", marks=pytest.mark.kubernetes)]
DELETING = {"metadata": {"deletionTimestamp": "2026-03-01T11:00:00Z"}}


@pytest.fixture(params=CLUSTERS)
def place(request: pytest.FixtureRequest) -> str:
    """Give the name of an empty namespace, in each kind of cluster."""
    return str(request.getfixturevalue("real_place")) if request.param == "api-server" else "test"


@pytest.fixture
def real_place(request: pytest.FixtureRequest) -> Iterator[str]:
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
    real = connect_to(request.getfixturevalue("kubernetes"))
    yield real
    await real.close()


@pytest.fixture
def make(tmp_path: Path, place: str) -> Callable[..., AdapterConfig]:
    """Give a function that writes an adapter with ConfigMaps in the namespace."""

    def write(*items: dict[str, Any], name: str = "maps", track: Any = (), params: Any = ()) -> AdapterConfig:
        status = {"expression": "resources.first.metadata.name != nil"}
        return write_adapter(
            tmp_path,
            {
                "adapter": {"name": name},
                "clients": {"hyperfleet_api": {"base_url": "http://api.invalid"}},
                "params": [
                    {"name": "clusterId", "source": "event.id", "required": True},
                    {"name": "cluster", "source": {"api_call": {"method": "GET", "url": "/clusters/c1"}}},
                    {"name": "isDeleting", "source": {"expression": "cluster.metadata.?deletionTimestamp.hasValue()"}},
                    *params,
                ],
                "resources": items,
                "track": {"discovery": list(track)},
                "post": {
                    "parameters": [
                        {
                            "name": "payload",
                            "build": {
                                "conditions": {each: {"status": status} for each in ("applied", "available", "health")}
                            },
                        }
                    ],
                    "postActions": [{"method": "POST", "endpoint": "/clusters/c1/statuses", "body": "{{ .payload }}"}],
                },
            },
        )

    return write


def item(place: str, name: str, *, labels: Any = None, **more: Any) -> dict[str, Any]:
    """Return a ConfigMap of an adapter."""
    found: dict[str, Any] = {"by_selectors": {"label_selector": labels}} if labels else {"by_name": name}
    metadata = {"labels": labels} if labels else {}
    return {
        "name": name,
        "manifest": config_map(place, name, {"generation": "{{ .cluster.generation }}"}, **metadata),
        "discovery": {"namespace": place, **found},
        **more,
    }


def delete_when(expression: str) -> dict[str, Any]:
    return {"lifecycle": {"delete": {"when": {"expression": expression}}}}


async def run(
    config: AdapterConfig, client: ObjectClient, **cluster: Any
) -> tuple[EventResult, dict[str, tuple[str, str]]]:
    """Run one event; return its result and the conditions of its report."""
    api = usual_api(resource(**cluster))
    result = await run_event(config, api, client)
    return result, conditions_of(reports_of(api)[-1])


async def find(client: ObjectClient, place: str, name: str) -> KubernetesObject | None:
    try:
        return await client.get(ObjectRef(CONFIG_MAP, place, name))
    except ObjectNotFound:
        return None


def operations(result: EventResult) -> dict[str, str]:
    return {each.name: each.operation for each in result.run.objects.outcomes}


# ── applying ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_object_has_its_owner_and_its_generation(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    result, conditions = await run(make(item(place, "first")), client)
    assert (result.status, operations(result)) == ("success", {"first": "create"})
    assert conditions["Applied"] == ("True", "ResourcesCreated")
    found = await find(client, place, "first")
    assert found is not None
    assert found["metadata"]["labels"] == {"hyperfleet.io/managed-by": "maps", "hyperfleet.io/cluster-id": "c1"}
    assert found["metadata"]["annotations"] == {"hyperfleet.io/generation": "1"}


async def test_a_second_event_changes_nothing_and_a_new_generation_does(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    config = make(item(place, "first"))
    await run(config, client)
    before = await find(client, place, "first")
    result, conditions = await run(config, client)
    assert operations(result) == {"first": "unchanged"}
    assert conditions["Applied"] == ("True", "ResourcesExist")
    assert await find(client, place, "first") == before
    result, _ = await run(config, client, generation=2)
    assert [(each.operation, each.reason) for each in result.run.objects.outcomes] == [
        ("update", "generation changed 1->2")
    ]
    found = await find(client, place, "first")
    assert found is not None
    assert (found["data"], found["metadata"]["annotations"]) == ({"generation": "2"}, {"hyperfleet.io/generation": "2"})


async def test_drift_is_repaired_and_what_was_deleted_by_hand_comes_back(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    config = make(item(place, "first"))
    await run(config, client)
    await client.apply(config_map(place, "first", {"generation": "hacked", "more": "x"}), manager="person", force=True)
    result, _ = await run(config, client)
    assert operations(result) == {"first": "update"}
    found = await find(client, place, "first")
    assert found is not None
    assert found["data"] == {"generation": "1", "more": "x"}  # fields of others stay
    await client.delete(ObjectRef(CONFIG_MAP, place, "first"))
    result, _ = await run(config, client)
    assert operations(result) == {"first": "create"}
    assert await find(client, place, "first")


async def test_an_older_generation_never_overwrites_a_newer_one(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    config = make(item(place, "first"))
    await run(config, client, generation=3)
    result, _ = await run(config, client, generation=2)
    assert operations(result) == {"first": "keep"}
    found = await find(client, place, "first")
    assert found is not None
    assert found["data"] == {"generation": "3"}


async def test_two_adapters_with_one_object_do_not_take_it_from_each_other(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    one = make(item(place, "first"))
    two = make(item(place, "first"), name="others")
    await run(one, client)
    await run(two, client)
    before = await find(client, place, "first")
    assert operations((await run(one, client))[0]) == {"first": "unchanged"}
    assert operations((await run(two, client))[0]) == {"first": "unchanged"}
    assert await find(client, place, "first") == before


async def test_recreation(client: ObjectClient, place: str, make: Callable[..., AdapterConfig]) -> None:
    config = make(item(place, "first", recreate_on_change=True))
    await run(config, client)
    before = await find(client, place, "first")
    assert operations((await run(config, client))[0]) == {"first": "unchanged"}
    assert operations((await run(config, client, generation=2))[0]) == {"first": "recreate"}
    after = await find(client, place, "first")
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] != after["metadata"]["uid"]


async def test_a_finalizer_holds_a_recreation_only_for_a_while(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    config = make(item(place, "first", recreate_on_change=True))
    await run(config, client)
    held = config_map(place, "first", finalizers=["tests.hyperfleet.io/hold"])
    await client.apply(held, manager="person")
    result, conditions = await run(config, client, generation=2)
    assert operations(result) == {"first": "fail"}
    assert conditions["Health"] == conditions["Available"] == ("False", "ResourceFailure")
    await client.apply(config_map(place, "first"), manager="person")  # removes the finalizer
    result, conditions = await run(config, client, generation=2)
    assert operations(result) == {"first": "create"}


async def test_a_create_gate_waits_for_what_is_applied_before(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    gate = {"lifecycle": {"create": {"when": {"expression": "resources.?second.hasValue()"}}}}
    config = make(item(place, "first", **gate), item(place, "second"))
    result, _ = await run(config, client)
    assert operations(result) == {"first": "skip", "second": "create"}
    assert result.run.skip_reason == "first: lifecycle.create.when condition evaluated to false"
    assert operations((await run(config, client))[0]) == {"first": "create", "second": "unchanged"}


@pytest.mark.parametrize("gate", ["create", "delete"])
async def test_a_gate_that_fails_neither_creates_nor_deletes(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig], gate: str
) -> None:
    broken = {"lifecycle": {gate: {"when": {"expression": "cluster.spec.nothing.at.all"}}}}
    result, conditions = await run(make(item(place, "first", **broken)), client)
    assert operations(result) == {"first": "fail"}
    assert conditions["Health"] == conditions["Available"] == ("False", "AdapterError")
    assert await find(client, place, "first") is None


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_object_that_the_api_refuses(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    config = make(item(place, "not/a/name") | {"name": "first"}, item(place, "second"))
    result, conditions = await run(config, client)
    assert set(conditions.values()) == {("False", "ResourceCreationFailed")}
    assert result.status == "failed"
    assert await find(client, place, "second") is None  # applying stops at the first failure


async def test_a_namespace_that_does_not_exist(client: ObjectClient, make: Callable[..., AdapterConfig]) -> None:
    _, conditions = await run(make(item("no-such-place", "first")), client)
    assert set(conditions.values()) == {("False", "ResourceCreationFailed")}


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_objects_go_in_reverse_and_then_it_is_finalized(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    config = make(item(place, "first"), item(place, "second"))
    await run(config, client)
    result, conditions = await run(config, client, generation=2, **DELETING)
    assert operations(result) == {"first": "delete", "second": "delete"}
    assert conditions["Finalized"] == ("True", "CleanupConfirmed")
    result, conditions = await run(config, client, generation=2, **DELETING)
    assert operations(result) == {"first": "absent", "second": "absent"}  # removed before, or by hand
    assert conditions["Finalized"][0] == "True"


async def test_the_order_of_the_go_adapter_needs_one_pass(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    child = item(place, "first", **delete_when("isDeleting"))
    parent = item(place, "second", **delete_when("isDeleting && !resources.?first.hasValue()"))
    config = make(child, parent)
    await run(config, client)
    result, conditions = await run(config, client, generation=2, **DELETING)
    assert operations(result) == {"first": "delete", "second": "delete"}
    assert conditions["Finalized"][0] == "True"


async def test_a_finalizer_keeps_an_object_and_its_parent_is_held(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    child = item(place, "first", **delete_when("isDeleting"))
    parent = item(place, "second", **delete_when("isDeleting && !resources.?first.hasValue()"))
    config = make(child, parent)
    await run(config, client)
    await client.apply(config_map(place, "first", finalizers=["tests.hyperfleet.io/hold"]), manager="person")
    before = await find(client, place, "second")
    result, conditions = await run(config, client, generation=2, **DELETING)
    assert operations(result) == {"first": "deleting", "second": "hold"}
    assert conditions["Finalized"] == ("False", "ObjectsRemain")
    assert await find(client, place, "second") == before  # not applied again, though the generation is new
    await client.delete(ObjectRef(CONFIG_MAP, place, "second"))
    result, _ = await run(config, client, generation=2, **DELETING)
    assert await find(client, place, "second") is None  # nor created again
    await client.apply(config_map(place, "first"), manager="person")  # removes the finalizer
    result, conditions = await run(config, client, generation=2, **DELETING)
    assert conditions["Finalized"][0] == "True"


async def test_all_matches_of_a_selector_are_deleted_in_one_pass(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    labels = {"app": "job"}
    for number in range(1, 4):
        annotations = {"hyperfleet.io/generation": str(number)}
        await client.apply(
            config_map(place, f"job-{number}", labels=labels, annotations=annotations), manager="hyperfleet-maps"
        )
    other = await client.apply(config_map(place, "other", labels={"app": "other"}), manager=MANAGER)
    config = make(item(place, "first", labels=labels))
    result, conditions = await run(config, client, generation=4)
    assert result.run.objects.resources["first"]["metadata"]["name"] == "first"  # the highest generation
    result, conditions = await run(config, client, generation=4, **DELETING)
    assert len(result.run.objects.outcomes[0].refs) == 4
    assert conditions["Finalized"][0] == "True"
    assert [await find(client, place, f"job-{number}") for number in range(1, 4)] == [None] * 3
    assert await find(client, place, "other") == other


async def test_tracked_objects_are_found_and_never_touched(
    client: ObjectClient, place: str, make: Callable[..., AdapterConfig]
) -> None:
    before = await client.apply(config_map(place, "theirs", {"a": "b"}), manager=MANAGER)
    tracked = {"name": "theirs", "apiVersion": "v1", "kind": "ConfigMap", "namespace": place, "by_name": "theirs"}
    unknown = {
        "name": "later",
        "apiVersion": "nothing.example/v1",
        "kind": "Nothing",
        "namespace": place,
        "by_name": "x",
    }
    config = make(item(place, "first"), track=[tracked, unknown])
    result, _ = await run(config, client)
    assert sorted(result.run.objects.resources) == ["first", "theirs"]
    assert result.run.objects.external == {}  # it is in a namespace of ours
    result, _ = await run(config, client, generation=2, **DELETING)
    assert await find(client, place, "theirs") == before
    assert list(result.run.objects.external) == ["theirs"]  # nothing of ours is left there
