"""Adapters for tests: a file, an event, recorded answers of the API, and a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from hyperfleet.adapter.api_calls import ApiAnswer, ApiRequest
from hyperfleet.adapter.api_recorded import RecordedApi, RecordedFile
from hyperfleet.adapter.config import AdapterConfig
from hyperfleet.adapter.loading import LoadOptions, load_adapter
from hyperfleet.adapter.object_step import WriteLimits
from hyperfleet.adapter.params import ParamPorts
from hyperfleet.adapter.reconcile import EventResult, ReconcilePorts, reconcile
from hyperfleet.adapter.text_reading import LocalTexts
from hyperfleet.kubernetes.port import ObjectClient

NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
HREF: Final = "/api/hyperfleet/v1/clusters/c1"
EVENT: Final = {"id": "c1", "kind": "Cluster", "href": HREF, "generation": 1}


def write_adapter(
    folder: Path, content: Mapping[str, Any] | str, env: Mapping[str, str] | None = None
) -> AdapterConfig:
    """Write an adapter file and load it; JSON is YAML."""
    file = folder / "adapter.yaml"
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    loaded = load_adapter(file, LoadOptions(env or {}))
    assert loaded.config is not None, [str(each) for each in loaded.problems]
    return loaded.config


def resource(**fields: Any) -> dict[str, Any]:
    """Return a cluster as the API answers."""
    return {"id": "c1", "kind": "Cluster", "href": HREF, "generation": 1, "spec": {}, "metadata": {}, **fields}


def answers(*entries: tuple[str, str, int, Any]) -> RecordedApi:
    """Record answers: method, pattern of the URL, status, body."""
    return RecordedApi(
        msgspec.convert(
            {
                "responses": [
                    {"match": {"method": method, "urlPattern": url}, "responses": [{"statusCode": code, "body": body}]}
                    for method, url, code, body in entries
                ]
            },
            RecordedFile,
        )
    )


def usual_api(cluster: Mapping[str, Any] | None = None, statuses: Any = None, report: int = 200) -> RecordedApi:
    """Record a cluster, what was reported before, and an answer to reports."""
    found = resource() if cluster is None else cluster
    return answers(
        ("GET", "/statuses$", 200, {"adapterStatuses": statuses or []}),
        ("GET", "/clusters/c1$", 200, found),
        ("*", "/statuses$", report, {}),
    )


async def run_event(
    config: AdapterConfig,
    api: RecordedApi,
    cluster: ObjectClient,
    event: Mapping[str, Any] = EVENT,
    env: Mapping[str, str] | None = None,
) -> EventResult:
    """Reconcile one event."""

    async def no_wait(seconds: float) -> None:
        return None

    ports = ReconcilePorts(
        params=ParamPorts(api, LocalTexts(), env or {}),
        clusters=lambda context: cluster,
        now=lambda: NOW,
        sleep=no_wait,
        limits=WriteLimits(recreation=1.0),
    )
    return await reconcile(config, event, ports)


def reports_of(api: RecordedApi) -> list[dict[str, Any]]:
    """Return the reports that were sent."""
    return [json.loads(request.body or "") for request, _ in _writes(api)]


def _writes(api: RecordedApi) -> list[tuple[ApiRequest, ApiAnswer]]:
    return [each for each in api.requests if each[0].method in ("POST", "PUT") and each[0].body]


def conditions_of(report: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return status and reason by type."""
    return {each["type"]: (each["status"], each["reason"]) for each in report["conditions"]}
