"""Working examples, for the OpenAPI document, the pages and the tests that send them."""

from __future__ import annotations

from typing import Any, Final

from hyperfleet.model.kind import CLUSTER, Kind

CLUSTER_SPEC: Final = {"cloud": "aws", "region": "us-east-1", "domain": "example.com"}
NODE_POOL_SPEC: Final = {"replicas": 3, "instanceType": "m5.xlarge"}
LABELS: Final = {"environment": "production", "team": "platform"}

REPORT: Final[dict[str, Any]] = {
    "adapter": "dns",
    "observedGeneration": 1,
    "observedTime": "2025-10-17T12:00:05Z",
    "conditions": [
        {"type": "Available", "status": "False", "reason": "JobRunning", "message": "Job is executing"},
        {"type": "Applied", "status": "True", "reason": "JobLaunched", "message": "Job created successfully"},
        {"type": "Health", "status": "True", "reason": "NoErrors", "message": "Adapter is healthy"},
    ],
    "data": {"recordsCreated": ["api.my-cluster.example.com"]},
    "metadata": {"jobName": "dns-my-cluster-gen1"},
}
POLICY: Final[dict[str, Any]] = {
    "requiredAdapters": ["validation", "dns"],
    "clusterConditions": [
        {"type": "AllDone", "evaluate": {"expr": 'all(requiredAdapters, .state == "Completed")'}},
    ],
    "phases": {"ready": {"requiredConditions": [{"type": "AllDone", "status": "True"}]}},
}


def spec_of(kind: Kind) -> dict[str, Any]:
    """Return an example spec of a kind."""
    return CLUSTER_SPEC if kind.name == CLUSTER.name else NODE_POOL_SPEC


def creation_of(kind: Kind) -> dict[str, Any]:
    """Return the body of a request that creates a resource."""
    name = "my-cluster" if kind.name == CLUSTER.name else "workers"
    return {"name": name, "spec": spec_of(kind), "labels": LABELS}
