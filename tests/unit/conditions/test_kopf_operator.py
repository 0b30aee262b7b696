"""The example operator: what it decides, and that its handlers give kopf the right patch. No cluster is needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import kopf
import pytest
from ruamel.yaml import YAML

from examples import kopf_operator
from hyperfleet.conditions import MergeError, get, lint, read_conditions

NOW = datetime(2026, 8, 21, 12, 0, tzinfo=UTC)
MANIFEST = Path(kopf_operator.__file__).with_suffix(".yaml")


def site(status: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": "shop", "namespace": "default", "generation": 2}, "spec": spec, "status": status or {}}


def deployment(name: str, status: str) -> dict[str, Any]:
    """A Deployment as the API server gives it: without a kind in lists, and with a field more than conditions have."""
    condition = {
        "type": "Available",
        "status": status,
        "reason": "MinimumReplicasUnavailable",
        "message": f"{name} does not have minimum availability.",
        "lastUpdateTime": "2026-08-21T11:00:00Z",
        "lastTransitionTime": "2026-08-21T11:00:00Z",
    }
    labels = {kopf_operator.SITE_LABEL: "shop"}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "status": {"conditions": [condition]}}


def conditions_of(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    conditions = read_conditions({"status": status}).all()
    assert lint(conditions, now=datetime.now(UTC), generation=2) == ()
    return {condition.type: (condition.status, condition.reason) for condition in conditions}


@pytest.mark.parametrize(
    ("object_", "deployments", "ready", "because"),
    [
        (site(), [deployment("web", "True")], "True", "all is well"),
        (site(), [deployment("web", "True"), deployment("db", "False")], "False", "one is not available"),
        (site(), [], "False", "there is nothing to be available"),
        (site(paused=True), [deployment("web", "True")], "False", "a paused site is not looked after"),
        (site(), [{"metadata": {"name": "new"}}], "Unknown", "it has not reported yet"),
    ],
)
def test_ready(object_: dict[str, Any], deployments: list[Any], ready: str, because: str) -> None:
    status = kopf_operator.next_status(object_, deployments, NOW)
    assert conditions_of(status)["Ready"][0] == ready, because


def test_the_message_names_the_deployment() -> None:
    status = kopf_operator.next_status(site(), [deployment("db", "False"), deployment("web", "True")], NOW)
    ready = get(read_conditions({"status": status}).all(), "Ready")
    assert ready
    assert ready.message == ("* DeploymentsAvailable:\n  * Deployment db: db does not have minimum availability.")


def test_nothing_changed_is_nothing_to_write() -> None:
    first = kopf_operator.next_status(site(), [deployment("web", "True")], NOW)
    later = NOW + timedelta(minutes=1)
    assert kopf_operator.next_status(site(first), [deployment("web", "True")], later) == {}
    broken = kopf_operator.next_status(site(first), [deployment("web", "False")], later)
    times = {each.type: each.last_transition_time for each in read_conditions({"status": broken}).all()}
    assert times == {"Ready": later, "DeploymentsAvailable": later, "Paused": NOW}


def test_conditions_of_others_are_kept_or_nothing_is_written() -> None:
    backup = {
        "type": "Backup",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = kopf_operator.next_status(site({"conditions": [backup]}), [], NOW)
    assert backup in status["conditions"]
    with pytest.raises(MergeError):
        kopf_operator.next_status(site({"conditions": [{**backup, "status": "Maybe"}]}), [], NOW)


def test_kopf_gets_the_patch() -> None:
    index_deployment: Any = kopf_operator.deployments_by_site
    keep_status: Any = kopf_operator.keep_status  # kopf's types ask for every argument that it could give
    indexed = index_deployment(body=body(deployment("web", "True")))
    assert list(indexed) == [("default", "shop")]
    index = {key: [value] for key, value in indexed.items()}
    patch, again = kopf.Patch(), kopf.Patch()
    keep_status(body=body(site()), patch=patch, deployments_by_site=index)
    assert conditions_of(patch["status"])["Ready"] == ("True", "InfoReported")
    keep_status(body=body(site(patch["status"])), patch=again, deployments_by_site=index)
    assert not again


def body(obj: Any) -> kopf.Body:
    return kopf.Body(obj)


def test_kopf_knows_the_handlers() -> None:
    registry = kopf.get_default_registry()
    names = {
        handler.id for registry_ in (registry._indexing, registry._spawning) for handler in registry_.get_all_handlers()
    }
    assert {"deployments_by_site", "keep_status"} <= names


def test_the_definition_fits_what_is_written() -> None:
    definition, example = YAML(typ="safe", pure=True).load_all(MANIFEST)
    (version,) = definition["spec"]["versions"]
    entry = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"]["items"]
    (written, *_) = kopf_operator.next_status(site(), [], NOW)["conditions"]
    assert set(entry["required"]) <= set(written) <= set(entry["properties"])
    assert example["apiVersion"] == f"{definition['spec']['group']}/{version['name']}"
