"""One event, from params to the report: the dry-run cluster and recorded answers of the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from tests.adapters import EVENT, answers, conditions_of, reports_of, resource, run_event, usual_api, write_adapter

pytestmark = pytest.mark.anyio


def contract_file(**more: Any) -> dict[str, Any]:
    def when(path: str, otherwise: str) -> dict[str, str]:
        return {"expression": f"resources.web.status.conditions[?(@.type=='Available')].{path} ?? \"{otherwise}\""}

    return {
        "adapter": {"name": "web", "kinds": ["Cluster"]},
        "clients": {"hyperfleet_api": {"base_url": "http://api.invalid"}},
        "params": [{"name": "clusterId", "source": "event.id", "required": True}],
        "resources": [
            {
                "name": "ns",
                "manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{{ .clusterId }}"}},
                "discovery": {"by_name": "{{ .clusterId }}"},
            },
            {
                "name": "web",
                "manifest": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "web"},
                    "spec": {"replicas": 1},
                },
                "discovery": {"namespace": "{{ .clusterId }}", "by_name": "web"},
            },
        ],
        "post": {
            "parameters": [
                {
                    "name": "payload",
                    "build": {
                        "conditions": {
                            "applied": {"status": {"expression": "resources.ns.metadata.name != nil"}},
                            "available": {
                                "status": {"expression": "resources.web.status.readyReplicas > 0"},
                                "reason": when("reason", "DeploymentReady"),
                                "message": when("message", "Deployment is available"),
                            },
                            "health": {"status": {"expression": "(resources.web.status.failed ?? 0) < 1"}},
                        },
                    },
                }
            ],
            "postActions": [
                {
                    "type": "api_call",
                    "method": "POST",
                    "endpoint": "/clusters/{{ .clusterId }}/statuses",
                    "body": "{{ .payload }}",
                }
            ],
        },
        **more,
    }


async def test_a_created_deployment_is_in_progress(tmp_path: Path) -> None:
    config, api, cluster = write_adapter(tmp_path, contract_file()), usual_api(), DryRunCluster()
    result = await run_event(config, api, cluster)
    assert result.status == "success"
    (report,) = reports_of(api)
    assert conditions_of(report) == {
        "Applied": ("True", "ResourcesCreated"),
        "Available": ("False", "WorkloadInProgress"),
        "Health": ("True", "NoErrors"),
    }
    assert (report["adapter"], report["observed_generation"]) == ("web", 1)
    assert report["observed_time"] == "2026-03-01T12:00:00Z"
    assert report["metadata"] == {"generation": 1, "resourceNames": ["c1", "web"]}


async def test_deletion_is_finalized_when_everything_is_gone(tmp_path: Path) -> None:
    config, cluster = write_adapter(tmp_path, contract_file()), DryRunCluster()
    await run_event(config, usual_api(), cluster)
    api = usual_api(resource(generation=2, metadata={"deletionTimestamp": "2026-03-01T11:00:00Z"}))
    result = await run_event(config, api, cluster)
    assert [(each.name, each.operation) for each in result.run.objects.outcomes] == [
        ("ns", "delete"),
        ("web", "delete"),
    ]
    (report,) = reports_of(api)
    assert conditions_of(report)["Finalized"] == ("True", "CleanupConfirmed")


async def test_a_missing_param_is_reported(tmp_path: Path) -> None:
    params = [
        {"name": "clusterId", "source": "event.id", "required": True},
        {"name": "zone", "source": "event.zone", "required": True},
    ]
    config, api = write_adapter(tmp_path, contract_file(params=params)), usual_api()
    result = await run_event(config, api, DryRunCluster())
    assert result.status == "failed"
    (report,) = reports_of(api)
    assert set(conditions_of(report).values()) == {("False", "AdapterError")}


async def test_a_report_whose_url_has_no_value_goes_to_the_event(tmp_path: Path) -> None:
    params = [{"name": "clusterId", "source": "event.nothing", "required": True}]
    config, api = write_adapter(tmp_path, contract_file(params=params)), usual_api()
    result = await run_event(config, api, DryRunCluster(), EVENT)
    assert [each.name for each in result.actions] == ["postAction1", "builtInReport"]
    assert len(reports_of(api)) == 1


@pytest.mark.parametrize(
    ("code", "body", "verdict", "status"),
    [
        (200, {"outcome": "discarded"}, "accepted", "success"),
        (400, {}, "refused", "failed"),
        (401, {}, "unauthorized", "failed"),
        (403, {}, "forbidden", "failed"),
        (404, {}, "gone", "gone"),
        (404, {"code": "HYPERFLEET-NTF-000"}, "refused", "failed"),
        (409, {"code": "GenerationAhead"}, "ahead", "failed"),
        (409, {"code": "Conflict"}, "later", "failed"),
        (429, {}, "later", "failed"),
        (503, {}, "later", "failed"),
    ],
)
async def test_answers_to_a_report(tmp_path: Path, code: int, body: Any, verdict: str, status: str) -> None:
    config, cluster = write_adapter(tmp_path, contract_file()), DryRunCluster()
    api = answers(("POST", "/statuses$", code, body), ("GET", "/clusters/c1$", 200, resource()))
    result = await run_event(config, api, cluster)
    assert result.report is not None
    assert (result.report.verdict, result.status) == (verdict, status)
    assert "web" in result.run.objects.resources  # objects are kept whatever the API says
    assert result.redone == (3 if verdict == "ahead" else 0)


async def test_no_secret_is_in_a_report_or_a_result(tmp_path: Path) -> None:
    secret = "very/secret/token"  # noqa: S105 - of this test
    content = contract_file()
    content["params"].append({"name": "apiToken", "source": "env.API_TOKEN", "required": True})
    content["resources"][0]["manifest"]["metadata"]["name"] = "{{ .apiToken }}"  # refused, with its name in the message
    config, api = write_adapter(tmp_path, content, {"API_TOKEN": secret}), usual_api()
    result = await run_event(config, api, DryRunCluster(), env={"API_TOKEN": secret})
    assert result.status == "failed"
    assert "[redacted]" in str(reports_of(api))
    shown = (
        reports_of(api),
        result.run.failure,
        result.run.objects.outcomes,
        result.run.objects.failures,
        result.actions,
    )
    assert secret not in repr(shown)
