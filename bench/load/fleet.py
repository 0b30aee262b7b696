"""The fleet that the server is measured with: clusters with labels, and what their adapters say of them.

Everything follows from the number of a cluster, so that a load generator needs no list of ids. Reports have about
1 kB, as those of real adapters with three conditions and some data.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

ADAPTERS: Final = ("validation", "dns", "infrastructure", "hypershift")  # those that the built-in policy requires
REGIONS: Final = 10
TEAM: Final = 100  # clusters of one team: as many as a list has, however large the fleet is

COUNTER: Final = "@" * 8  # in the template of a report: where each one of a moving fleet has another number


def cluster_id(number: int) -> str:
    """Return the id of a cluster, as long as those that the server makes; `fleet.lua` does the same."""
    return f"cls-{number:020}"


def labels_of(number: int) -> dict[str, str]:
    """Return the labels of a cluster."""
    environment = ("prod", "stage", "dev")[number % 3]
    return {"env": environment, "region": f"region-{number % REGIONS}", "team": f"team-{number // TEAM}"}


def spec_of(number: int) -> dict[str, Any]:
    """Return the spec of a cluster."""
    return {
        "provider": "aws",
        "region": f"region-{number % REGIONS}",
        "version": "4.17.3",
        "network": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16", "type": "OVNKubernetes"},
        "controlPlane": {"replicas": 3, "availability": "HighlyAvailable"},
        "dns": {"baseDomain": f"c{number}.fleet.example.com"},
    }


def report_of(adapter: str, *, is_available: bool = True, counter: str = "0" * len(COUNTER)) -> dict[str, Any]:
    """Return what an adapter reports; of the same cluster it says the same unless the counter differs."""
    available = "True" if is_available else "False"
    return {
        "adapter": adapter,
        "observedGeneration": 1,
        "conditions": [
            _condition("Available", available, "is in use and answers" if is_available else "does not answer"),
            _condition("Applied", "True", "was applied to the management cluster without a conflict"),
            _condition("Health", "True", "has passed all of its checks in the last interval"),
        ],
        "data": {
            "counter": counter,
            "objects": [f"{adapter}/{part}" for part in ("namespace", "service-account", "deployment", "job")],
            "resources": {
                "cpu": "250m",
                "memory": "512Mi",
                "restarts": 0,
                "image": f"registry.example.com/{adapter}:v7",
            },
            "note": "What an adapter found out and others may want to know, such as addresses and identifiers. " * 2,
        },
        "metadata": {"job_name": f"{adapter}-job", "duration": "12s"},  # what /compat keeps of metadata
    }


def report_templates(*, is_compat: bool = False) -> str:
    """Return the bodies for a load generator: a line for each adapter with its name, a good body and a bad one."""
    lines = []
    for adapter in ADAPTERS:
        bodies = [report_of(adapter, is_available=good, counter=COUNTER) for good in (True, False)]
        bodies = [_in_snake_case(body) for body in bodies] if is_compat else bodies
        lines.append("\t".join([adapter, *(msgspec.json.encode(body).decode() for body in bodies)]))
    return "\n".join(lines) + "\n"


def _in_snake_case(body: dict[str, Any]) -> dict[str, Any]:
    return {{"observedGeneration": "observed_generation"}.get(key, key): value for key, value in body.items()}


def _condition(type_: str, status: str, what: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": f"{type_}{status}", "message": f"The component {what}"}
