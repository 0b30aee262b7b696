"""Replays the decision tables of the Cluster conditions, row by row.

The rows are data: cluster-conditions.yaml runs the whole computation of a status, cluster-available.yaml decides
`Available` from the sub-conditions given. In both, a condition is written as `Type=Status Reason: message`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace
from ruamel.yaml import YAML

from hyperfleet.conditions import get
from hyperfleet.conditions.cluster import (
    ClusterScope,
    ClusterStatus,
    ClusterView,
    Replicas,
    Topology,
    available,
    compute_status,
    read_provider,
    topology_reconciled,
)
from hyperfleet.model.condition import Condition

Row = dict[str, Any]

NOW = datetime(2026, 8, 21, 12, 0, tzinfo=UTC)
NOTATION = re.compile(r"(?P<type>[^ =]+)=(?P<status>\w+)(?: (?P<reason>\w+))?(?:: (?P<message>.+))?", re.DOTALL)

REFERENCED = {
    "infrastructure_ref": {"kind": "DockerCluster", "name": "c1"},
    "control_plane_ref": {"kind": "KubeadmControlPlane", "name": "c1"},
}
HEALTHY = (
    "Deleting=False NotDeleting",
    "RemoteConnectionProbe=True ProbeSucceeded",
    "InfrastructureReady=True Ready",
    "ControlPlaneAvailable=True Available",
    "WorkersAvailable=True Available",
)


def load(name: str) -> list[Any]:
    rows: list[Row] = YAML(typ="safe", pure=True).load(Path(__file__).with_name(name))
    return [pytest.param(row, id=f"{row['section']} {row['row']}") for row in rows]


def parse(text: str) -> Condition:
    """Read the notation `Type=Status Reason: message`."""
    match = NOTATION.fullmatch(text)
    assert match, f"not a condition: {text!r}"
    return convert({key: value or "" for key, value in match.groupdict().items()}, Condition)


def parse_all(value: Any) -> Any:
    """Turn the notation into conditions wherever a `conditions` key is, and provider objects into providers."""
    if isinstance(value, list):
        return [parse_all(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "object" in value:
        return read_provider(value["object"], value.get("contract", "v1beta2"))
    return {
        key: tuple(parse(text) for text in item) if key == "conditions" else parse_all(item)
        for key, item in value.items()
    }


def build_scope(given: Row) -> ClusterScope:
    values = {"descendants": {}, **parse_all(given)}
    values["cluster"] = {**REFERENCED, **values.get("cluster", {})}
    return convert(values, ClusterScope)


def said(condition: Condition | None) -> Condition | None:
    """Leave only what a decision table speaks of."""
    return condition and Condition(condition.type, condition.status, condition.reason, condition.message)


def expect_conditions(texts: list[str], conditions: tuple[Condition, ...]) -> None:
    for text in texts:
        wanted = parse(text)
        assert said(get(conditions, wanted.type)) == wanted


@pytest.mark.parametrize("row", load("cluster-conditions.yaml"))
def test_status(row: Row) -> None:
    assert row["because"]
    previous = convert(parse_all(row.get("previous", {})), ClusterStatus)
    scope = build_scope(row.get("given", {}))
    if "topology" in row:
        condition = topology_reconciled(scope.cluster, convert(row["topology"], Topology))
        previous = replace(previous, conditions=(*previous.conditions, condition))
    status = compute_status(scope, previous, NOW)
    expected = row["expect"]
    expect_conditions(expected.get("conditions", []), status.conditions)
    if "phase" in expected:
        assert status.phase == expected["phase"]
    for counters in ("control_plane", "workers"):
        if counters in expected:
            assert getattr(status, counters) == convert(expected[counters], Replicas)


@pytest.mark.parametrize("row", load("cluster-available.yaml"))
def test_available(row: Row) -> None:
    assert row["because"]
    given = dict(row.get("given", {}))
    conditions = {c.type: c for c in map(parse, HEALTHY)}
    conditions |= {c.type: c for c in map(parse, given.pop("conditions", []))}
    for type_ in given.pop("missing", []):
        del conditions[type_]
    view = ClusterView(build_scope(given), tuple(conditions.values()), NOW)
    assert said(available(view)) == parse(row["expect"])
