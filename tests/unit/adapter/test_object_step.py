"""What single rules of step 3 do where a cluster is not needed, or must fail in a certain way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperfleet.adapter.config import Discovery, NestedDiscovery
from hyperfleet.adapter.discovery import ByLabels, find_nested, render_lookup
from hyperfleet.adapter.manifests import generation_of, mark_manifest, owner_labels
from hyperfleet.adapter.subject import Subject, find_subject
from hyperfleet.adapter.templates import TextTemplate, parse_text, parse_tree
from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from hyperfleet.errors import ObjectConflict, ObjectNotFound
from hyperfleet.kubernetes.port import KubernetesObject, ObjectKind, ObjectRef
from tests.adapters import NOW, conditions_of, reports_of, resource, run_event, usual_api, write_adapter
from tests.kubernetes_objects import CONFIG_MAP, MANAGER, config_map
from tests.unit.adapter.test_reconcile import contract_file

pytestmark = pytest.mark.anyio
KIND = ObjectKind("v1", "ConfigMap")


class BusyCluster(DryRunCluster):
    """A cluster in which other writers are faster, some times."""

    def __init__(self, conflicts: int) -> None:
        super().__init__()
        self.left = conflicts

    async def apply(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        if self.left:
            self.left -= 1
            raise ObjectConflict("the object has been modified", status=409)
        return await super().apply(manifest, manager=manager, force=force)


async def test_conflicts_are_retried(tmp_path: Path) -> None:
    result = await run_event(write_adapter(tmp_path, contract_file()), usual_api(), BusyCluster(4))
    assert result.status == "success"
    assert [each.operation for each in result.run.objects.outcomes] == ["create", "create"]


async def test_conflicts_are_not_retried_for_ever(tmp_path: Path) -> None:
    api = usual_api()
    await run_event(write_adapter(tmp_path, contract_file()), api, BusyCluster(100))
    assert set(conditions_of(reports_of(api)[-1]).values()) == {("False", "ResourceCreationFailed")}


@pytest.mark.parametrize(("policy", "stays"), [("Background", False), ("Foreground", False), ("Orphan", True)])
async def test_the_propagation_policy_counts(tmp_path: Path, policy: str, stays: bool) -> None:
    cluster = DryRunCluster()
    owner = await cluster.apply(config_map("a", "owner"), manager=MANAGER)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await cluster.apply(config_map("a", "child", ownerReferences=[reference]), manager=MANAGER)
    gate = {"propagationPolicy": policy, "when": {"expression": "true"}}
    item = {
        "name": "web",
        "manifest": config_map("a", "owner"),
        "discovery": {"namespace": "a", "by_name": "owner"},
        "lifecycle": {"delete": gate},
    }
    content = contract_file()
    namespace_item = content["resources"][0]
    await run_event(write_adapter(tmp_path, {**content, "resources": [namespace_item, item]}), usual_api(), cluster)
    try:
        await cluster.get(ObjectRef(CONFIG_MAP, "a", "child"))
        found = True
    except ObjectNotFound:
        found = False
    assert found == stays


# ── discoveries ──────────────────────────────────────────────────────────────────────────────────────────────────


def template(text: str) -> TextTemplate:
    parsed = parse_text(text).template
    assert parsed is not None
    return parsed


def by_labels(labels: dict[str, str], namespace: str | None = None) -> Discovery:
    tree = parse_tree(labels).tree
    return Discovery(labels=tree, namespace=template(namespace) if namespace else None)


@pytest.mark.parametrize(
    ("discovery", "fault", "because"),
    [
        (Discovery(name=template("{{ .empty }}")), "empty", "an empty name would list instead of get"),
        (by_labels({"a": "{{ .empty }}"}), "empty", "an empty value would select objects of others"),
        (by_labels({"{{ .empty }}": "b"}), "empty", "so would an empty key"),
        (Discovery(name=template("{{ .nothing }}")), "nothing", "a variable without a value"),
    ],
)
def test_a_discovery_without_a_target(discovery: Discovery, fault: str, because: str) -> None:
    lookup, found = render_lookup(discovery, KIND, {"empty": ""}, NOW)
    assert lookup is None, because
    assert fault in found


def test_a_star_is_every_namespace() -> None:
    lookup = render_lookup(by_labels({"a": "b"}, "*"), KIND, {}, NOW).lookup
    assert isinstance(lookup, ByLabels)
    assert (lookup.selection.namespace, lookup.selection.labels) == (None, "a=b")


PARENT: dict[str, Any] = {
    "spec": {
        "workload": {
            "manifests": [
                config_map("a", "one", labels={"app": "x"}, annotations={"hyperfleet.io/generation": "1"}),
                config_map("a", "two", labels={"app": "x"}, annotations={"hyperfleet.io/generation": "2"}),
                config_map("b", "one", labels={"app": "x"}, annotations={"hyperfleet.io/generation": "9"}),
            ]
        }
    },
    "status": {
        "resourceStatus": {
            "manifests": [
                {"resourceMeta": {"name": "two"}, "conditions": ["not mine: it has no namespace"]},
                {
                    "resourceMeta": {"name": "two", "namespace": "a"},
                    "conditions": [1],
                    "statusFeedback": {"values": []},
                },
            ]
        }
    },
}


@pytest.mark.parametrize(
    ("discovery", "name", "because"),
    [
        (by_labels({"app": "x"}, "a"), "two", "the highest generation of the namespace"),
        (Discovery(name=template("one"), namespace=template("a")), "one", "by name"),
        (Discovery(name=template("three")), None, "a miss is silent"),
    ],
)
def test_an_object_inside_another(discovery: Discovery, name: str | None, because: str) -> None:
    found, fault = find_nested(NestedDiscovery("inner", discovery), PARENT, {}, NOW)
    assert (found and found["metadata"]["name"], fault) == (name, ""), because


def test_an_object_inside_another_has_the_feedback_on_it() -> None:
    found, _ = find_nested(NestedDiscovery("inner", by_labels({"app": "x"}, "a")), PARENT, {}, NOW)
    assert found is not None
    assert (found["conditions"], found["statusFeedback"]) == ([1], {"values": []})


async def test_nested_objects_are_resources(tmp_path: Path) -> None:
    content = contract_file()
    content["resources"][1]["nested_discoveries"] = [
        {"name": "inner", "discovery": {"namespace": "a", "by_name": "two"}}
    ]
    content["resources"][1]["manifest"]["spec"] = PARENT["spec"]
    result = await run_event(write_adapter(tmp_path, content), usual_api(), DryRunCluster())
    assert result.run.objects.resources["inner"]["metadata"]["name"] == "two"


# ── manifests and subjects ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("annotation", "generation", "because"),
    [(None, 7, "a missing annotation is injected"), ("3", 3, "what the file says counts")],
)
def test_the_generation_annotation(annotation: str | None, generation: int, because: str) -> None:
    more = {"annotations": {"hyperfleet.io/generation": annotation}} if annotation else {}
    marked = mark_manifest(config_map("a", "b", **more), "dns", Subject(id="c1", kind="Cluster", generation=7), None)
    assert generation_of(marked) == generation, because


def test_labels_that_kubernetes_would_refuse_are_left_out() -> None:
    subject = Subject(id="c" * 64, kind="NodePool", owner_id="c1", owner_kind="Cluster")
    assert owner_labels("dns", subject) == {"hyperfleet.io/managed-by": "dns", "hyperfleet.io/cluster-id": "c1"}


@pytest.mark.parametrize(
    ("answer", "is_deleting", "because"),
    [
        (resource(), False, "no deletion time"),
        (resource(metadata={"deletionTimestamp": "2026-03-01T11:00:00Z"}), True, "as our API writes it"),
        (resource(deleted_time="2026-03-01T11:00:00Z"), True, "as the Go API writes it"),
        (resource(deleted_time=None), False, "null is none"),
    ],
)
def test_a_resource_that_a_param_read(answer: dict[str, Any], is_deleting: bool, because: str) -> None:
    subject = find_subject({"id": "c1", "kind": "Cluster", "generation": 9}, {"other": {"id": "x"}, "c": answer})
    assert (subject.is_read, subject.generation, subject.is_deleting) == (True, 1, is_deleting), because
