"""Every path of an event, and the report that ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hyperfleet.api.report_bodies import read_reports
from hyperfleet.backends.kubernetes.access import ClusterAccess
from hyperfleet.backends.kubernetes.api_server import ApiServerClient
from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from hyperfleet.kubernetes.port import ObjectClient
from hyperfleet.model.condition import REASON_PATTERN
from hyperfleet.services.redaction import Redactor
from tests.adapters import answers, conditions_of, reports_of, resource, run_event, write_adapter
from tests.conformance.adapter.tables import FOLDER, read_rows

pytestmark = pytest.mark.anyio
TOKEN = "very-secret-token"  # noqa: S105 - of this test
ENV = {"HYPERFLEET_API_BASE_URL": "http://api.invalid", "HYPERFLEET_API_TOKEN": TOKEN}


@pytest.mark.parametrize("row", read_rows("reports"))
async def test_a_report(row: dict[str, Any], tmp_path: Path) -> None:
    config = write_adapter(tmp_path, _read_file(row), ENV)
    api = answers(
        *[(method, url, code, body) for method, url, code, body in row.get("api", [])],
        ("GET", "/statuses$", 200, {"adapterStatuses": row.get("statuses", [])}),
        ("GET", "/clusters/c1$", 200, resource(**row.get("cluster", {}))),
    )
    result = await run_event(config, api, _cluster(row), env=ENV)
    reports = [each for each in reports_of(api) if "conditions" in each]
    assert result.status == row["status"], result.run.failure
    if row["conditions"] is None:
        assert reports == []
        return
    (report,) = reports
    _check_contract(report)
    assert conditions_of(report) == {name: tuple(each) for name, each in row["conditions"].items()}
    if "operations" in row:
        assert {each.name: each.operation for each in result.run.objects.outcomes} == row["operations"]
    for key in ("data", "metadata"):
        assert key not in row or report[key] == row[key]
    assert TOKEN not in json.dumps([request.body for request, _ in api.requests])


def _check_contract(report: dict[str, Any]) -> None:
    """Check what every report has, whatever happened: the API takes it without a note."""
    read = read_reports(report, 1, Redactor())
    assert (read.errors, [each.notes for each in read.sent]) == ((), [()])
    assert report["adapter"]
    assert isinstance(report["observed_generation"], int)
    assert report["observed_time"] == "2026-03-01T12:00:00Z"
    assert {"Applied", "Available", "Health"} <= {each["type"] for each in report["conditions"]}
    for each in report["conditions"]:
        assert each["status"] in ("True", "False", "Unknown")
        assert REASON_PATTERN.fullmatch(each["reason"])
        assert each["message"]


def _read_file(row: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe").load((FOLDER / f"reports-{row['file']}.yaml").read_text("utf-8"))
    for path, value in row.get("change", {}).items():
        *parents, last = path.split(".")
        target: Any = content
        for name in parents:
            target = target[int(name)] if isinstance(target, list) else target[name]
        target[int(last) if isinstance(target, list) else last] = value
    return content


def _cluster(row: dict[str, Any]) -> ObjectClient:
    if row.get("kubernetes") == "unreachable":
        return ApiServerClient(ClusterAccess(server="http://127.0.0.1:1"))
    cluster = DryRunCluster()
    cluster.preload(row.get("objects", []))
    return cluster
