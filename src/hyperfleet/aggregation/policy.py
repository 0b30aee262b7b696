"""A policy: which adapters a resource needs, and which rules turn their reports into conditions and a phase.

This is the compiled, checked value that `aggregate` works with. `policy_document` is how people write it,
`policy_loader` converts it, `lint` warns of what is legal but likely wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct, field

from hyperfleet.aggregation.culprits import CulpritFinder, mentioned_adapters
from hyperfleet.aggregation.templates import Templates
from hyperfleet.expr import Program
from hyperfleet.messaging import PubSubBlock
from hyperfleet.model.condition import ConditionStatus
from hyperfleet.model.phase import PHASE_TRAITS
from hyperfleet.model.resource import Resource

StaleAction = Literal["degraded", "none"]
Polarity = Literal["Positive", "Negative"]
SummaryOver = Literal["requiredAdapters", "optionalAdapters", "allAdapters", "nodePools"]

# With Available=False, only the reason tells whether an adapter waits, works or has failed. Any other reason means
# that it has failed.
WAITING_REASONS: Final = frozenset({"PreconditionsNotMet", "NotStarted", "Waiting", "Pending"})
IN_PROGRESS_REASONS: Final = frozenset(
    {
        "JobRunning",
        "JobPending",
        "JobLaunched",
        "WorkloadInProgress",
        "PostconditionsNotMet",
        "Progressing",
        "Provisioning",
        "ResourcesCreated",
        "MinimumReplicasUnavailable",
    }
)


def change_reasons(defaults: frozenset[str], changes: Sequence[str]) -> frozenset[str]:
    """Add reasons to the defaults; `!Name` removes one."""
    removed = {change[1:] for change in changes if change and change.startswith("!")}
    return (defaults - removed) | {change for change in changes if change and not change.startswith("!")}


class ExprRule(Struct, frozen=True):
    """A condition that has the value of an expression."""

    source: str
    program: Program
    culprits: CulpritFinder


class SummaryRule(Struct, frozen=True):
    """A condition that merges others, as Cluster API merges conditions.

    Either one condition type over many adapters or node pools (`over`), or several types of one adapter
    (`adapter`) or of the resource itself (neither).
    """

    types: tuple[str, ...]
    over: SummaryOver | None = None
    adapter: str | None = None
    negative: frozenset[str] = frozenset()
    ignore_if_missing: frozenset[str] = frozenset()


class MirrorRule(Struct, frozen=True):
    """A condition that copies one adapter's condition."""

    adapter: str
    type: str


class FlappingLimit(Struct, frozen=True):
    """How often something may move before it is marked as flapping."""

    window: timedelta = timedelta(minutes=10)
    transitions: int = 5  # within the window that count as flapping; 0: no limit

    @property
    def calm_below(self) -> int:
        """Return how many moves in the window keep a mark: half of the limit, rounded up."""
        return (self.transitions + 1) // 2


class Rule(Struct, frozen=True):
    """How one condition of a resource is computed."""

    type: str
    by: ExprRule | SummaryRule | MirrorRule
    templates: Templates
    polarity: Polarity = "Positive"
    go_bad_after: timedelta = timedelta()
    go_good_after: timedelta = timedelta()
    flapping: FlappingLimit | None = None  # None: that of the policy

    @property
    def named_adapters(self) -> tuple[str, ...]:
        """Return the adapters that the rule names individually."""
        match self.by:
            case ExprRule(program=program):
                return tuple(mentioned_adapters(program.tree))
            case SummaryRule(adapter=str(adapter)) | MirrorRule(adapter=adapter):
                return (adapter,)
        return ()

    def is_good(self, status: ConditionStatus) -> bool:
        """Tell whether a status is the good one."""
        return status == ("True" if self.polarity == "Positive" else "False")


class PhaseRule(Struct, frozen=True):
    """The conditions that a policy requires for a phase; the guards in `phase` decide whether it holds."""

    description: str = ""
    required_conditions: tuple[tuple[str, ConditionStatus], ...] = ()


class Selector(Struct, frozen=True):
    """Which resources a policy applies to; empty fields do not restrict."""

    kind: str = "Cluster"
    tenants: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)

    def matches(self, resource: Resource) -> bool:
        """Tell whether the policy applies to a resource."""
        return (
            resource.kind == self.kind
            and (not self.tenants or resource.tenant in self.tenants)
            and (not self.labels or all(resource.labels.get(key) == value for key, value in self.labels.items()))
        )

    @property
    def rank(self) -> tuple[bool, int]:
        """Return how specific a selector is: tenants first, then the number of labels."""
        return bool(self.tenants), len(self.labels)


class Policy(Struct, frozen=True):
    """The rules for one kind of resource (and perhaps only some tenants or labels)."""

    name: str
    digest: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    phases: Mapping[str, PhaseRule] = field(default_factory=dict)
    selector: Selector = Selector()
    stale_after: timedelta | None = None
    stale_action: StaleAction = "none"
    missing_after: timedelta | None = None
    max_retries: int = 3  # how often the sentinel retries a Failed resource before it falls back to the resync age
    retry_interval: timedelta | None = None  # how far apart; None: as the sentinel's rule says
    reads_conditions: bool = True  # False: no rule reads conditions of adapters
    reads_data: bool = True  # False: no rule reads `data` of adapters
    reads_times: bool = True  # False: no rule reads `lastUpdated`, which every heartbeat moves
    reads_children: bool = True  # False: no rule reads node pools
    waiting_reasons: frozenset[str] = WAITING_REASONS
    in_progress_reasons: frozenset[str] = IN_PROGRESS_REASONS
    flapping: FlappingLimit = FlappingLimit()
    pubsub: PubSubBlock | None = None  # of its document; where events go is the same for all resources

    @property
    def named_adapters(self) -> tuple[str, ...]:
        """Return the adapters that rules name individually, each once."""
        names = [name for rule in self.rules for name in rule.named_adapters]
        return tuple(dict.fromkeys(names))

    def description_of(self, phase: str) -> str:
        """Return the description of a phase: the policy's own, or the default."""
        rule = self.phases.get(phase)
        return (rule.description if rule else "") or PHASE_TRAITS[phase].description


class PolicySet:
    """The policies of a fleet. The most specific one wins; among equals, the first."""

    __slots__ = ("_by_rank", "policies")

    def __init__(self, policies: Sequence[Policy]) -> None:
        """Sort the policies by how specific they are."""
        self.policies = tuple(policies)
        self._by_rank = sorted(policies, key=lambda policy: policy.selector.rank, reverse=True)

    @property
    def pubsub(self) -> PubSubBlock | None:
        """Return where events go, if one of them says so; they do not contradict each other."""
        return next((policy.pubsub for policy in self.policies if policy.pubsub is not None), None)

    def select(self, resource: Resource) -> Policy:
        """Return the policy for a resource; the default one requires nothing."""
        for policy in self._by_rank:
            if policy.selector.matches(resource):
                return policy
        return _without_rules(resource.kind)


@lru_cache(maxsize=64)  # there are few kinds, and this is called for each report
def _without_rules(kind: str) -> Policy:
    return Policy(
        f"(none for {kind})",
        "none",
        selector=Selector(kind=kind),
        reads_conditions=False,
        reads_data=False,
        reads_times=False,
        reads_children=False,
    )
