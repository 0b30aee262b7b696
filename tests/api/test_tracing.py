"""Tracing without a collector: nothing is loaded, nothing is done; and the names that routes have in traces."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hyperfleet.api.exchanges import list_templates
from hyperfleet.api.request_metrics import UNMATCHED
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.settings import parse_collector
from tests.api.fleet import ROOT, Fleet

_PROGRAM = """
import sys
from hyperfleet.bootstrap import System
from hyperfleet.settings import Settings
from hyperfleet import serving

System(Settings(database="memory:", access_log=True))
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_without_a_collector_opentelemetry_is_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)  # noqa: S603  # our own
    assert done.stdout == "[]\n"


def route_to(fleet: Fleet, path: str) -> str:
    """Return the route of a path, as logs, traces, metrics and audit call it; nothing is done there."""
    fleet.measures.requests.values.clear()
    fleet.request("LINK", ROOT + path)
    (labels,) = fleet.measures.requests.values
    return labels[0]


def test_every_operation_has_its_own_template(memory_client: Fleet) -> None:
    for template in list_templates(memory_client.context):
        assert route_to(memory_client, template.replace("{", "x-").replace("}", "").lower()) == template


@pytest.mark.parametrize(
    ("path", "template"),
    [
        (f"{ALIASES[0]}/clusters/c1", f"{BASE}/clusters/{{clusterId}}"),
        (f"{BASE}/clusters/c1:explain", f"{BASE}/clusters/{{clusterId}}:explain"),
        (f"{BASE}/clusters/c1/", UNMATCHED),
        (f"{BASE}/nothing", UNMATCHED),
        (f"/compat{BASE}/clusters/c1/", f"/compat{BASE}/clusters/{{id}}"),
        ("/", UNMATCHED),
    ],
)
def test_a_path_is_known_by_its_template(memory_client: Fleet, path: str, template: str) -> None:
    assert route_to(memory_client, path) == template


def test_without_traces_the_dialect_names_the_request(memory_client: Fleet) -> None:
    answer = memory_client.get(f"http://fleet/compat{BASE}/clusters/nobody", headers={"X-Request-Id": "mine"})
    assert answer.json()["trace_id"] == "mine"


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://collector.example.com/", "https://collector.example.com/v1/traces"),
        ("https://collector.example.com/custom/traces", "https://collector.example.com/custom/traces"),
    ],
)
def test_a_collector_needs_no_path(url: str, meant: str) -> None:
    assert parse_collector(url) == meant
