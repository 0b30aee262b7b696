"""The resources that people of the simulated fleet create: names, teams, regions, sizes, and later edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from hyperfleet.simulator.randomness import RandomStream

ZONE: Final = "fleet.example.com"

# Service and the team that owns it.
_SERVICES: Final = (
    ("payments", "money"),
    ("ledger", "money"),
    ("invoices", "money"),
    ("checkout", "shop"),
    ("catalog", "shop"),
    ("search", "shop"),
    ("basket", "shop"),
    ("sessions", "identity"),
    ("accounts", "identity"),
    ("mail", "reach"),
    ("push", "reach"),
    ("campaigns", "reach"),
    ("telemetry", "data"),
    ("features", "data"),
    ("archive", "data"),
    ("reports", "data"),
    ("builds", "platform"),
    ("sandbox", "platform"),
)
_REGIONS: Final = (("us-east-1", "use1"), ("us-west-2", "usw2"), ("eu-west-1", "euw1"), ("ap-south-1", "aps1"))
_STAGES: Final = (("prod", 3, "gold"), ("staging", 2, "silver"), ("dev", 1, "bronze"))  # stage, size, tier
_VERSIONS: Final = ("4.18.9", "4.18.12", "4.19.1", "4.19.4", "4.20.0")
_MACHINES: Final = ("m6i.xlarge", "m6i.2xlarge", "c7g.2xlarge", "r6i.xlarge")
_POOLS: Final = ("workers", "spot")


class DesiredResource(Struct, frozen=True):
    """The name, spec and labels of a resource to create."""

    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]


def desired_cluster(random: RandomStream, number: int) -> DesiredResource:
    """Return the cluster with this number; consecutive ones differ, and names are unique."""
    service, team = _SERVICES[number % len(_SERVICES)]
    round_ = number // len(_SERVICES)
    region, short = _REGIONS[(number + round_) % len(_REGIONS)]
    stage, size, tier = _STAGES[(number // 2 + round_) % len(_STAGES)]
    suffix = f"-{round_ + 1}" if round_ else ""
    spec = {
        "cloud": "aws",
        "region": region,
        "release": random.pick(_VERSIONS[:-1]),
        "controlPlane": {"replicas": 3 if size > 1 else 1},
        "network": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16"},
    }
    labels = {"team": team, "env": stage, "region": region, "tier": tier}
    return DesiredResource(f"{service}-{stage}-{short}{suffix}", spec, labels)


def desired_pools(random: RandomStream, cluster: DesiredResource) -> tuple[DesiredResource, ...]:
    """Return the node pools of a cluster; a dev cluster may have none."""
    count = random.integer(0, 1) if cluster.labels["env"] == "dev" else random.integer(1, 2)
    return tuple(_desired_pool(random, name, cluster) for name in _POOLS[:count])


def _desired_pool(random: RandomStream, name: str, cluster: DesiredResource) -> DesiredResource:
    spec = {"replicas": random.integer(2, 9), "machineType": random.pick(_MACHINES), "release": cluster.spec["release"]}
    return DesiredResource(name, spec, {"team": cluster.labels["team"], "pool": name})


def edit_desired(random: RandomStream, desired: DesiredResource) -> DesiredResource:
    """Return an edited resource: another release, or for a pool perhaps another size."""
    if "replicas" in desired.spec and random.happens(0.6):
        replicas = int(desired.spec["replicas"])
        steps = (1, 2) if replicas <= 2 else (-1, 1, 2)
        return DesiredResource(
            desired.name, {**desired.spec, "replicas": replicas + random.pick(steps)}, desired.labels
        )
    others = [version for version in _VERSIONS if version != desired.spec["release"]]
    return DesiredResource(desired.name, {**desired.spec, "release": random.pick(others)}, desired.labels)
