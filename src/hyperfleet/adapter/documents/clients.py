"""`adapter` and `clients`: who the adapter is, and what it connects to."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from hyperfleet.adapter.documents.parts import Part
from hyperfleet.documents.durations import Duration

AdapterName = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        max_length=63,
        description="The name in reports",
        extra={"expected": "a name of small letters, digits and - such as dns-zone"},
    ),
]


KindName = Annotated[
    str,
    Meta(pattern="^[A-Z][A-Za-z0-9]*$", max_length=63, extra={"expected": "a kind such as Cluster or NodePool"}),
]
VariableName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        max_length=200,
        extra={"expected": "the name of a variable of the environment such as REGION"},
    ),
]


class AdapterPart(Part, frozen=True, kw_only=True):
    """The adapter itself. `kinds` and what follows it are ours."""

    name: AdapterName
    version: Annotated[str, Meta(description="The version of this file")] = ""
    kinds: Annotated[tuple[KindName, ...], Meta(description="The kinds of resources it works on; none: all")] = ()
    env: Annotated[
        tuple[VariableName, ...],
        Meta(description="Variables of the environment that templates and expressions may read"),
    ] = ()
    unknown_at_first: Annotated[
        bool, Meta(description="While preconditions are not met, the first report says Unknown instead of False")
    ] = False
    concurrency: Annotated[int, Meta(ge=1, le=256, description="Resources that are worked on at once")] = 8
    recheck: Annotated[Duration, Meta(description="Look again at what it made, should a watch miss a change")] = (
        timedelta(minutes=5)
    )


class LogSection(Part, frozen=True, kw_only=True):
    """The Go adapter's log; no effect here."""

    level: str = ""
    format: str = ""
    output: str = ""


class ApiAuthPart(Part, frozen=True, kw_only=True):
    """The token of the API."""

    token_path: Annotated[str, Meta(description="An absolute path")] = ""
    token_cache_ttl: Annotated[Duration, Meta(description="0s: the file is read for every request")] = timedelta()


class ApiPart(Part, frozen=True, kw_only=True):
    """The HyperFleet API."""

    base_url: Annotated[str, Meta(description="Or HYPERFLEET_API_BASE_URL")] = ""
    version: Annotated[str, Meta(description="Of the API; v1 is the only one")] = "v1"
    timeout: Annotated[Duration, Meta(description="How long one attempt may take")] = timedelta(seconds=10)
    retry_attempts: Annotated[int, Meta(ge=0, le=100, description="Attempts in all; 0: 3")] = 3
    retry_backoff: Literal["exponential", "linear", "constant"] = "exponential"
    base_delay: Duration = timedelta(seconds=1)
    max_delay: Duration = timedelta(seconds=30)
    default_headers: dict[str, str] = field(default_factory=dict)
    auth: ApiAuthPart | None = None


class BrokerPart(Part, frozen=True, kw_only=True):
    """The broker that events come from."""

    subscription_id: Annotated[str, Meta(description="Unique for each adapter; by default its name")] = ""
    topic: str = ""


class KubernetesPart(Part, frozen=True, kw_only=True):
    """The Kubernetes cluster that objects are applied to."""

    kube_config_path: Annotated[str, Meta(description="None: inside the cluster")] = ""
    context: Annotated[str, Meta(description="Of the kubeconfig; ours in addition")] = ""
    qps: Annotated[float, Meta(ge=0)] = 100.0
    burst: Annotated[int, Meta(ge=0)] = 200
    api_version: str = ""


class ClientsPart(Part, frozen=True, kw_only=True):
    """Connections."""

    hyperfleet_api: ApiPart = ApiPart()
    broker: BrokerPart = BrokerPart()
    kubernetes: KubernetesPart = KubernetesPart()
    maestro: Annotated[Any, Meta(description="Not supported")] = None
