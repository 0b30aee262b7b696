"""The adapters of the simulated fleet: their dependencies, how long they work, what they report, how they fail.

Tables only. `fault_profiles` says how often something goes wrong; `adapter_run` turns it into reports.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class StatusText(Struct, frozen=True):
    """The reason and the message of a condition."""

    reason: str
    message: str  # may name {cluster}, {region} and {zone}


class SimulatedAdapter(Struct, frozen=True):
    """An adapter: it provisions one aspect of a cluster."""

    name: str
    takes: float  # seconds of work, typically
    steps: tuple[str, ...]  # messages of a run, in order
    done: StatusText
    failures: tuple[StatusText, ...]
    unhealthy: StatusText  # of the adapter itself, not of the cluster
    needs: tuple[str, ...] = ()
    details: tuple[str, ...] = ()  # types of additional conditions, True when it is done


_KUBE_TIMEOUT: Final = StatusText("UnexpectedError", "Failed to connect to the Kubernetes API after 3 retries")

_FIRST: Final = (
    SimulatedAdapter(
        "validation",
        45,
        ("Checking quotas", "Checking the DNS zone", "Checking permissions"),
        StatusText("AllChecksPassed", "All validation checks passed"),
        (
            StatusText("QuotaExceeded", "vCPU quota of {region} is exhausted: 96 of 96 in use"),
            StatusText("ZoneNotFound", "Route53 zone not found for domain {zone}"),
            StatusText("PermissionDenied", "The installer role may not call ec2:CreateVpc in {region}"),
        ),
        _KUBE_TIMEOUT,
    ),
    SimulatedAdapter(
        "dns",
        90,
        ("Creating api.{cluster}.{zone}", "Creating *.apps.{cluster}.{zone}", "Waiting for records to spread"),
        StatusText("AllRecordsCreated", "All DNS records created and verified"),
        (
            StatusText("Route53Throttled", "Rate exceeded for zone {zone}"),
            StatusText("RecordConflict", "api.{cluster}.{zone} exists and belongs to another owner"),
        ),
        StatusText("ProviderUnreachable", "route53.amazonaws.com timed out after 30s"),
        needs=("validation",),
        details=("APIRecordCreated", "AppsWildcardCreated"),
    ),
    SimulatedAdapter(
        "infrastructure",
        360,
        ("Creating the network", "Creating subnets in 3 zones", "Creating load balancers", "Creating the bucket"),
        StatusText("AllResourcesProvisioned", "14 of 14 cloud resources provisioned"),
        (
            StatusText("InsufficientCapacity", "No m6i.xlarge capacity in {region}a"),
            StatusText("VpcLimitExceeded", "The maximum number of VPCs in {region} has been reached"),
            StatusText("SubnetConflict", "10.0.128.0/20 overlaps with another subnet of the network"),
        ),
        StatusText("CredentialsExpired", "The token of the cloud account expired"),
        needs=("validation",),
    ),
    SimulatedAdapter(
        "hypershift",
        540,
        ("Rendering the hosted control plane", "Starting etcd", "Starting the API server", "Waiting for operators"),
        StatusText("ControlPlaneAvailable", "The hosted control plane is available"),
        (
            StatusText("EtcdUnhealthy", "2 of 3 etcd members are not ready"),
            StatusText("ImagePullBackOff", "Back-off pulling the release image in namespace clusters-{cluster}"),
            StatusText("OperatorDegraded", "Cluster operator ingress is degraded: no load balancer"),
        ),
        StatusText("ManagementClusterUnreachable", "The management cluster of {region} does not answer"),
        needs=("dns", "infrastructure"),
    ),
    SimulatedAdapter(
        "monitoring",
        60,
        ("Installing Prometheus", "Waiting for targets"),
        StatusText("Scraping", "37 of 37 targets are up"),
        (StatusText("VolumePending", "The volume of prometheus-0 is not bound"),),
        StatusText("HealthCheckFailures", "Remote write to the fleet's metrics store is refused"),
        needs=("hypershift",),
    ),
    SimulatedAdapter(
        "logging",
        60,
        ("Installing the collector",),
        StatusText("Forwarding", "Logs are forwarded"),
        (StatusText("SinkRejects", "The log sink answers 429: too many streams"),),
        StatusText("HealthCheckFailures", "The buffer of 2 collectors is full"),
        needs=("hypershift",),
    ),
)

_LATER: Final = ("ingress", "certificates", "backup", "identity", "registry", "autoscaling")

# Adapters of node pools: the machines, then the nodes on them.
POOL_ADAPTERS: Final = (
    SimulatedAdapter(
        "machines",
        150,
        ("Creating machines", "Waiting for machines to boot"),
        StatusText("MachinesRunning", "All machines are running"),
        (StatusText("InsufficientCapacity", "No capacity for the machine type in {region}b"),),
        StatusText("ProviderUnreachable", "ec2.{region}.amazonaws.com timed out after 30s"),
    ),
    SimulatedAdapter(
        "nodes",
        60,
        ("Approving certificates", "Waiting for nodes to be ready"),
        StatusText("NodesReady", "All nodes are ready"),
        (StatusText("NodeNotReady", "1 node has not reported for 5m: KubeletNotReady"),),
        _KUBE_TIMEOUT,
        needs=("machines",),
    ),
)


def list_adapters(count: int) -> tuple[SimulatedAdapter, ...]:
    """Return the first `count` adapters of clusters: the known ones, then generic add-ons."""
    names = [*_LATER, *(f"addon-{number}" for number in range(1, count + 1))]
    return (*_FIRST, *map(_add_on, names))[:count]


def _add_on(name: str) -> SimulatedAdapter:
    return SimulatedAdapter(
        name,
        45,
        (f"Installing {name}",),
        StatusText("Installed", f"{name} is installed"),
        (StatusText("InstallFailed", f"The release of {name} could not be rendered"),),
        _KUBE_TIMEOUT,
        needs=("hypershift",),
    )
