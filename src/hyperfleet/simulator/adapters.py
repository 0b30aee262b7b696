"""The adapters of the simulated fleet: who needs whom, how long each works, what it says and how it fails.

Tables only. `temper` says how often something goes wrong, `running` makes reports of it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Word(Struct, frozen=True):
    """What an adapter says of something, as it would be said in the field."""

    reason: str
    message: str  # may name {cluster}, {region} and {zone}


class Adapter(Struct, frozen=True):
    """A program that makes one aspect of a cluster real."""

    name: str
    takes: float  # seconds of work, typically
    steps: tuple[str, ...]  # what it is at, in their order
    done: Word
    failures: tuple[Word, ...]
    illness: Word  # of its own health, not of the cluster's
    needs: tuple[str, ...] = ()
    details: tuple[str, ...] = ()  # conditions of its own, True when it is done


_KUBE_TIMEOUT: Final = Word("UnexpectedError", "Failed to connect to the Kubernetes API after 3 retries")

_FIRST: Final = (
    Adapter(
        "validation",
        45,
        ("Checking quotas", "Checking the DNS zone", "Checking permissions"),
        Word("AllChecksPassed", "All validation checks passed"),
        (
            Word("QuotaExceeded", "vCPU quota of {region} is exhausted: 96 of 96 in use"),
            Word("ZoneNotFound", "Route53 zone not found for domain {zone}"),
            Word("PermissionDenied", "The installer role may not call ec2:CreateVpc in {region}"),
        ),
        _KUBE_TIMEOUT,
    ),
    Adapter(
        "dns",
        90,
        ("Creating api.{cluster}.{zone}", "Creating *.apps.{cluster}.{zone}", "Waiting for records to spread"),
        Word("AllRecordsCreated", "All DNS records created and verified"),
        (
            Word("Route53Throttled", "Rate exceeded for zone {zone}"),
            Word("RecordConflict", "api.{cluster}.{zone} exists and belongs to another owner"),
        ),
        Word("ProviderUnreachable", "route53.amazonaws.com timed out after 30s"),
        needs=("validation",),
        details=("APIRecordCreated", "AppsWildcardCreated"),
    ),
    Adapter(
        "infrastructure",
        360,
        ("Creating the network", "Creating subnets in 3 zones", "Creating load balancers", "Creating the bucket"),
        Word("AllResourcesProvisioned", "14 of 14 cloud resources provisioned"),
        (
            Word("InsufficientCapacity", "No m6i.xlarge capacity in {region}a"),
            Word("VpcLimitExceeded", "The maximum number of VPCs in {region} has been reached"),
            Word("SubnetConflict", "10.0.128.0/20 overlaps with another subnet of the network"),
        ),
        Word("CredentialsExpired", "The token of the cloud account expired"),
        needs=("validation",),
    ),
    Adapter(
        "hypershift",
        540,
        ("Rendering the hosted control plane", "Starting etcd", "Starting the API server", "Waiting for operators"),
        Word("ControlPlaneAvailable", "The hosted control plane is available"),
        (
            Word("EtcdUnhealthy", "2 of 3 etcd members are not ready"),
            Word("ImagePullBackOff", "Back-off pulling the release image in namespace clusters-{cluster}"),
            Word("OperatorDegraded", "Cluster operator ingress is degraded: no load balancer"),
        ),
        Word("ManagementClusterUnreachable", "The management cluster of {region} does not answer"),
        needs=("dns", "infrastructure"),
    ),
    Adapter(
        "monitoring",
        60,
        ("Installing Prometheus", "Waiting for targets"),
        Word("Scraping", "37 of 37 targets are up"),
        (Word("VolumePending", "The volume of prometheus-0 is not bound"),),
        Word("HealthCheckFailures", "Remote write to the fleet's metrics store is refused"),
        needs=("hypershift",),
    ),
    Adapter(
        "logging",
        60,
        ("Installing the collector",),
        Word("Forwarding", "Logs are forwarded"),
        (Word("SinkRejects", "The log sink answers 429: too many streams"),),
        Word("HealthCheckFailures", "The buffer of 2 collectors is full"),
        needs=("hypershift",),
    ),
)

_LATER: Final = ("ingress", "certificates", "backup", "identity", "registry", "autoscaling")

# Of node pools: the machines, then the nodes on them.
POOL_ADAPTERS: Final = (
    Adapter(
        "machines",
        150,
        ("Creating machines", "Waiting for machines to boot"),
        Word("MachinesRunning", "All machines are running"),
        (Word("InsufficientCapacity", "No capacity for the machine type in {region}b"),),
        Word("ProviderUnreachable", "ec2.{region}.amazonaws.com timed out after 30s"),
    ),
    Adapter(
        "nodes",
        60,
        ("Approving certificates", "Waiting for nodes to be ready"),
        Word("NodesReady", "All nodes are ready"),
        (Word("NodeNotReady", "1 node has not reported for 5m: KubeletNotReady"),),
        _KUBE_TIMEOUT,
        needs=("machines",),
    ),
)


def list_adapters(count: int) -> tuple[Adapter, ...]:
    """Return the first `count` adapters of clusters; beyond those that have a story there are add-ons by number."""
    names = [*_LATER, *(f"addon-{number}" for number in range(1, count + 1))]
    return (*_FIRST, *map(_add_on, names))[:count]


def _add_on(name: str) -> Adapter:
    return Adapter(
        name,
        45,
        (f"Installing {name}",),
        Word("Installed", f"{name} is installed"),
        (Word("InstallFailed", f"The release of {name} could not be rendered"),),
        _KUBE_TIMEOUT,
        needs=("hypershift",),
    )
