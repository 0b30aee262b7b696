"""A client that speaks the dialect of the existing Go clients, for the tests of `/compat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from tests.api.fleet import ROOT, SPEC, Fleet
from tests.world import condition_body

COMPAT = f"{ROOT}/compat/api/hyperfleet/v1"
POLICY = """
requiredAdapters: [validation, dns]
---
appliesTo: {kind: NodePool}
requiredAdapters: [validation]
"""


class GoClient:
    """Sends what the Go clients send; paths are below the dialect's base path."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request and return the response."""
        return self.fleet.request(method, COMPAT + path, **more)

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        """Send a GET with query parameters."""
        return self.request("GET", path, params=parameters)

    def post(self, path: str, json: Any) -> httpx.Response:
        """Send a POST."""
        return self.request("POST", path, json=json)

    def create(self, name: str = "my-cluster", **more: Any) -> dict[str, Any]:
        """Create a cluster, which must succeed, and return it."""
        return self._made(self.post("/clusters", {"kind": "Cluster", "name": name, "spec": SPEC, **more}))

    def create_pool(self, cluster: Mapping[str, Any], name: str = "workers", **more: Any) -> dict[str, Any]:
        """Create a node pool."""
        body = {"kind": "NodePool", "name": name, "spec": SPEC, **more}
        return self._made(self.post(f"/clusters/{cluster['id']}/nodepools", body))

    def report(self, resource: Mapping[str, Any], adapter: str, available: str = "True", **more: Any) -> httpx.Response:
        """Report on a resource."""
        return self.request("PUT", f"{path_of(resource)}/statuses", json=report_body(adapter, available, **more))

    def read(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        """Read a resource, which must be there."""
        response = self.get(path_of(resource))
        assert response.status_code == 200, response.text
        return dict(response.json())

    def names(self, path: str = "/clusters", **parameters: Any) -> list[str]:
        """Return the names of a list."""
        response = self.get(path, **parameters)
        assert response.status_code == 200, response.text
        return [item["name"] for item in response.json()["items"]]

    def search(self, text: str, path: str = "/clusters") -> set[str]:
        """Return the names of what a search finds."""
        return set(self.names(path, search=text))

    def _made(self, response: httpx.Response) -> dict[str, Any]:
        assert response.status_code == 201, response.text
        return dict(response.json())


def report_body(
    adapter: str, available: str = "True", *, generation: int = 1, extra: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """Write a report; a condition is `Status[/Reason[/message]]`."""
    given = {"Available": available, "Applied": "True", "Health": "True", **(extra or {})}
    conditions = [condition_body(type_, text) for type_, text in given.items()]
    return {"adapter": adapter, "observed_generation": generation, "conditions": conditions, **more}


def path_of(resource: Mapping[str, Any]) -> str:
    """Return where a resource is, below the base path."""
    return str(resource["href"]).removeprefix("/api/hyperfleet/v1")


def conditions_of(resource: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conditions of a resource by type."""
    return {condition["type"]: condition for condition in resource["status"]["conditions"]}


def declined(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Return a problem document of the dialect, which it must be, with that status and code."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem = dict(response.json())
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, f"HYPERFLEET-{code}"), problem
    assert problem["type"].startswith("https://api.hyperfleet.io/errors/")
    assert problem["trace_id"] == response.headers["x-request-id"]
    assert problem["title"]
    assert problem["detail"]
    assert problem["timestamp"].endswith("Z")
    assert problem["instance"] == response.request.url.path[:1024]
    assert response.headers["vary"] == "Authorization"
    return problem


def fields_of(problem: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return which fields a problem names, and what they violate."""
    return {(error["field"], error.get("constraint", "")) for error in problem["errors"]}
