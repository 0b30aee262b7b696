"""Tracing without a collector: nothing is loaded, nothing is done; and the names that routes have in traces."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hyperfleet.api.description.table import list_operations
from hyperfleet.api.exchanges import Routes
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.settings import parse_collector
from tests.api.fleet import Fleet

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


def test_every_operation_has_its_own_template(memory_client: Fleet) -> None:
    routes = Routes(memory_client.context)
    for operation in list_operations(memory_client.context):
        path = operation.path.replace("{", "x-").replace("}", "")
        assert routes.find(path) == operation.path


@pytest.mark.parametrize(
    ("path", "template"),
    [
        (f"{ALIASES[0]}/clusters/c1", f"{BASE}/clusters/{{clusterId}}"),
        (f"{BASE}/clusters/c1:explain", f"{BASE}/clusters/{{clusterId}}:explain"),
        (f"{BASE}/clusters/c1/", ""),
        (f"{BASE}/nothing", ""),
        (f"/compat{BASE}/clusters/c1/", f"/compat{BASE}/clusters/{{id}}"),
        ("/", ""),
    ],
)
def test_a_path_is_known_by_its_template(memory_client: Fleet, path: str, template: str) -> None:
    assert Routes(memory_client.context).find(path) == template


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
