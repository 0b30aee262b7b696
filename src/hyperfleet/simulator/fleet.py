"""What the people of the simulated fleet ask for: names, teams, regions, sizes, and how they change their minds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from hyperfleet.simulator.chance import Chance

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
_STAGES: Final = (("prod", 3, "gold"), ("staging", 2, "silver"), ("dev", 1, "bronze"))  # and how large, how dear
_VERSIONS: Final = ("4.18.9", "4.18.12", "4.19.1", "4.19.4", "4.20.0")
_MACHINES: Final = ("m6i.xlarge", "m6i.2xlarge", "c7g.2xlarge", "r6i.xlarge")
_POOLS: Final = ("workers", "spot")


class Wish(Struct, frozen=True):
    """A resource as somebody wants it."""

    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]


def wish_for_cluster(chance: Chance, number: int) -> Wish:
    """Make up the cluster of a number: neighbours differ, and no two have the same name."""
    service, team = _SERVICES[number % len(_SERVICES)]
    round_ = number // len(_SERVICES)
    region, short = _REGIONS[(number + round_) % len(_REGIONS)]
    stage, size, tier = _STAGES[(number // 2 + round_) % len(_STAGES)]
    suffix = f"-{round_ + 1}" if round_ else ""
    spec = {
        "cloud": "aws",
        "region": region,
        "release": chance.pick(_VERSIONS[:-1]),
        "controlPlane": {"replicas": 3 if size > 1 else 1},
        "network": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16"},
    }
    labels = {"team": team, "env": stage, "region": region, "tier": tier}
    return Wish(f"{service}-{stage}-{short}{suffix}", spec, labels)


def wish_for_pools(chance: Chance, cluster: Wish) -> tuple[Wish, ...]:
    """Make up the node pools of a cluster; a small one may have none."""
    count = chance.whole(0, 1) if cluster.labels["env"] == "dev" else chance.whole(1, 2)
    return tuple(_wish_for_pool(chance, name, cluster) for name in _POOLS[:count])


def _wish_for_pool(chance: Chance, name: str, cluster: Wish) -> Wish:
    spec = {"replicas": chance.whole(2, 9), "machineType": chance.pick(_MACHINES), "release": cluster.spec["release"]}
    return Wish(name, spec, {"team": cluster.labels["team"], "pool": name})


def change_wish(chance: Chance, wish: Wish) -> Wish:
    """Change somebody's mind: another release, and for a pool perhaps another size."""
    if "replicas" in wish.spec and chance.happens(0.6):
        replicas = int(wish.spec["replicas"])
        steps = (1, 2) if replicas <= 2 else (-1, 1, 2)
        return Wish(wish.name, {**wish.spec, "replicas": replicas + chance.pick(steps)}, wish.labels)
    others = [version for version in _VERSIONS if version != wish.spec["release"]]
    return Wish(wish.name, {**wish.spec, "release": chance.pick(others)}, wish.labels)
