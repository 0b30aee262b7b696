"""The YAML document of a policy. `policy_loader` turns it into a `Policy`.

The format is that of the status guide, with additions. The JSON Schema for editors is generated from these types:
editors show every `description` here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from hyperfleet.documents.durations import Duration
from hyperfleet.documents.schema import describe_schema
from hyperfleet.messaging import Provider, PubSubBlock, RetryPolicy, TopicNames
from hyperfleet.model.condition import MAX_REASON, MAX_TYPE, REASON_PATTERN, TYPE_PATTERN
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME

SCHEMA_ID: Final = "urn:hyperfleet:schema:policy"
MAX_TRANSITIONS: Final = 50  # so many moves are stored for each condition

AdapterName = Annotated[
    str,
    Meta(
        pattern=f"^{ADAPTER_PATTERN.pattern}$",
        max_length=MAX_ADAPTER_NAME,
        description="The name of an adapter",
        extra={"expected": "a name of letters, digits and -_. such as dns"},
    ),
]
ConditionType = Annotated[
    str,
    Meta(
        pattern=f"^{TYPE_PATTERN.pattern}$",
        max_length=MAX_TYPE,
        description="The type of a condition",
        extra={"expected": "a condition type such as DNSConfigured"},
    ),
]
Reason = Annotated[
    str,
    Meta(
        pattern=f"^{REASON_PATTERN.pattern}$",
        max_length=MAX_REASON,
        description="A reason in CamelCase",
        extra={"expected": "a reason such as AllRecordsCreated"},
    ),
]
ReasonEntry = Annotated[
    str,
    Meta(
        pattern=f"^!?{REASON_PATTERN.pattern}$",
        max_length=MAX_REASON + 1,
        description="A reason to add, or !Reason to remove one of the defaults",
        extra={"expected": "a reason such as Migrating, or !Progressing to remove a default"},
    ),
]


class _Document(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the document."""


class TemplateDocument(_Document, frozen=True, kw_only=True):
    """The reason and message for one outcome of a rule."""

    reason: Reason
    message: Annotated[str, Meta(description="May contain variables such as {{.FailedAdapterNames}}")] = ""


class TemplatesDocument(_Document, frozen=True, kw_only=True):
    """Reasons and messages by outcome."""

    true: TemplateDocument | None = None
    false: TemplateDocument | None = None
    in_progress: Annotated[
        TemplateDocument | None,
        Meta(description="For False while no responsible adapter has reported a result yet"),
    ] = None
    unknown: Annotated[
        TemplateDocument | None, Meta(description="For Unknown: a rule that cannot be evaluated or merged")
    ] = None


class EvaluateDocument(_Document, frozen=True, kw_only=True):
    """An expression that decides a condition."""

    expr: Annotated[str, Meta(description="An expr-lang expression whose result is true or false", min_length=1)]


class SummaryDocument(_Document, frozen=True, kw_only=True):
    """A condition merged from others: `type` over many adapters or node pools, or `types` of one adapter or of
    the resource itself."""

    over: Annotated[
        Literal["requiredAdapters", "optionalAdapters", "allAdapters", "nodePools"] | None,
        Meta(description="Merge one condition type of all of these"),
    ] = None
    type: Annotated[ConditionType | None, Meta(description="With over: the condition type to merge")] = None
    adapter: Annotated[AdapterName | None, Meta(description="Merge several condition types of this adapter")] = None
    types: Annotated[tuple[ConditionType, ...], Meta(description="Without over: the condition types to merge")] = ()
    negative: Annotated[tuple[ConditionType, ...], Meta(description="Types that are bad when True")] = ()
    ignore_if_missing: Annotated[tuple[ConditionType, ...], Meta(description="Types that need not be there")] = ()


class MirrorDocument(_Document, frozen=True, kw_only=True):
    """A condition copied from an adapter."""

    adapter: AdapterName
    type: ConditionType = "Available"


class FlappingDocument(_Document, frozen=True, kw_only=True):
    """How often something may move before it is marked as flapping. The mark is shown and changes nothing else."""

    window: Annotated[Duration | None, Meta(description="The time in which moves are counted; 10m by default")] = None
    transitions: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TRANSITIONS)] | None,
        Meta(description="How many moves in the window count as flapping, 0 for no limit; 5 by default"),
    ] = None


class ConditionDocument(_Document, frozen=True, kw_only=True):
    """A condition of the resource and the rule that decides it: evaluate, summary or mirror."""

    type: ConditionType
    evaluate: EvaluateDocument | None = None
    summary: SummaryDocument | None = None
    mirror: MirrorDocument | None = None
    templates: TemplatesDocument = TemplatesDocument()
    polarity: Annotated[
        Literal["positive", "negative", "Positive", "Negative"] | None,
        Meta(
            description="negative: the condition is bad when True. Without it, a condition that only degraded or "
            "failed require to be True is negative, and any other positive"
        ),
    ] = None
    go_bad_after: Annotated[
        Duration | None, Meta(description="How long a bad result must hold before it is published")
    ] = None
    go_good_after: Annotated[
        Duration | None, Meta(description="How long a good result must hold before it is published")
    ] = None
    flapping: Annotated[
        FlappingDocument | None,
        Meta(description="A limit of its own; what is left out is as for the whole policy"),
    ] = None


class RequiredConditionDocument(_Document, frozen=True, kw_only=True):
    """A condition that a phase needs."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]


class PhaseDocument(_Document, frozen=True, kw_only=True):
    """When the policy wants a phase, and how to describe it."""

    description: str = ""
    required_conditions: tuple[RequiredConditionDocument, ...] = ()


class PhasesDocument(_Document, frozen=True, kw_only=True):
    """The phases; their priority is fixed and not configured here."""

    deleting: PhaseDocument | None = None
    degraded: PhaseDocument | None = None
    failed: PhaseDocument | None = None
    ready: PhaseDocument | None = None
    provisioning: PhaseDocument | None = None
    pending: PhaseDocument | None = None


class PoliciesDocument(_Document, frozen=True, kw_only=True):
    """Time limits, and the reasons that tell waiting and working from failing."""

    stale_threshold: Annotated[Duration | None, Meta(description="An adapter not heard of for this long is stale")] = (
        None
    )
    stale_action: Annotated[
        Literal["degraded", "none"], Meta(description="What a stale required adapter does to the phase")
    ] = "none"
    max_retries: Annotated[
        int, Meta(ge=0, le=1_000, description="How often the sentinel retries a Failed resource, one interval apart")
    ] = 3
    retry_interval: Annotated[
        Duration | None, Meta(description="How far apart these retries are; then it is looked at like any other")
    ] = None
    waiting_reasons: Annotated[
        tuple[ReasonEntry, ...], Meta(description="Reasons of Available=False that mean: waits for others")
    ] = ()
    in_progress_reasons: Annotated[
        tuple[ReasonEntry, ...], Meta(description="Reasons of Available=False that mean: at work")
    ] = ()


class DefaultBehaviorDocument(_Document, frozen=True, kw_only=True):
    """What happens while a required adapter has not reported."""

    missing_adapter: Annotated[Literal["pending"], Meta(description="The phase until the timeout")] = "pending"
    timeout: Annotated[
        Duration | None, Meta(description="After this long without progress a silent adapter is a failure")
    ] = None


class RetryPolicyDocument(_Document, frozen=True, kw_only=True):
    """What happens to a message that a consumer did not handle."""

    max_retries: Annotated[int, Meta(ge=0, le=100, description="Redeliveries before it becomes a dead letter")] = 3
    retry_interval: Annotated[Duration, Meta(description="The time before each redelivery")] = timedelta(seconds=30)


class PubSubDocument(_Document, frozen=True, kw_only=True):
    """Where events go, read when the server starts. Addresses and credentials are settings (`pubsub.url`, …)."""

    provider: Annotated[
        Provider | None, Meta(description="The broker; if not set, the one whose address is in the settings")
    ] = None
    topics: TopicNames = TopicNames()
    retry_policy: RetryPolicyDocument = RetryPolicyDocument()

    @property
    def block(self) -> PubSubBlock:
        """Return what it says to those who publish."""
        retry = RetryPolicy(self.retry_policy.max_retries, self.retry_policy.retry_interval)
        return PubSubBlock(self.provider, self.topics, retry)


class AppliesToDocument(_Document, frozen=True, kw_only=True):
    """Which resources this policy is for; the policy that restricts most wins."""

    kind: Annotated[str, Meta(description="Cluster, NodePool or a kind from the configuration")] = "Cluster"
    tenants: Annotated[tuple[str, ...], Meta(description="Only resources of these tenants")] = ()
    labels: Annotated[dict[str, str], Meta(description="Only resources with all of these labels")] = field(
        default_factory=dict
    )


class PolicyDocument(_Document, frozen=True, kw_only=True):
    """A HyperFleet aggregation policy."""

    name: Annotated[str, Meta(description="Shown where several policies are in use")] = ""
    applies_to: AppliesToDocument = AppliesToDocument()
    required_adapters: Annotated[
        tuple[AdapterName, ...], Meta(description="Adapters that must complete before a resource is ready")
    ] = ()
    optional_adapters: Annotated[
        tuple[AdapterName, ...],
        Meta(description="Adapters whose failures do not keep a resource from being ready"),
    ] = ()
    pubsub: PubSubDocument | None = None
    cluster_conditions: Annotated[
        tuple[ConditionDocument, ...],
        Meta(description="The conditions of a resource besides Available and Ready"),
    ] = ()
    phases: PhasesDocument = PhasesDocument()
    policies: PoliciesDocument = PoliciesDocument()
    default_behavior: DefaultBehaviorDocument = DefaultBehaviorDocument()
    flapping: FlappingDocument = FlappingDocument()


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy document; `hyperfleet rules schema` prints it."""
    return describe_schema(PolicyDocument, id_=SCHEMA_ID, title="HyperFleet aggregation policy")
