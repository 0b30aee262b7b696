"""The Python client: typed answers, one implementation, a synchronous and an asynchronous face.

    with Fleet("http://127.0.0.1:8000") as fleet:
        cluster = fleet.clusters.create("payments", {"cloud": "aws"})
        fleet.report(cluster, "dns", available=True, reason="RecordsCreated")
        fleet.wait_for_adapter(cluster, "dns")

`AsyncFleet` has the same operations as coroutines. The command line, the simulator and adapters use this package;
see docs/client.md. It imports nothing of the server, and httpx only when a connection is made.
"""

from __future__ import annotations

from hyperfleet.client.answers.explanation import ExplainedAdapter, ExplainedCondition, Explanation, Remedies, Term
from hyperfleet.client.answers.fleet import (
    Adapter,
    Liveness,
    Policy,
    PolicyCheck,
    PolicyVersion,
    Problems,
    Readiness,
    SharedCause,
    Summary,
    TrendPoint,
)
from hyperfleet.client.answers.past import Diff, Difference, HistoryEntry, MovedSubject, ResourceTransitions
from hyperfleet.client.answers.pubsub import DeadLetter, PubSub, Subscription
from hyperfleet.client.answers.report import (
    AdapterProgress,
    AdapterReport,
    BatchEntry,
    BatchResult,
    FailedAdapter,
    Outcome,
    Reports,
)
from hyperfleet.client.answers.resource import (
    AdapterState,
    Applied,
    Cluster,
    Condition,
    Metadata,
    NodePool,
    Page,
    ReconcileRequested,
    Resource,
    Status,
    WatchEvent,
)
from hyperfleet.client.answers.simulation import Simulation, SimulationProgress
from hyperfleet.client.answers.webhook import Webhook, WebhookCause, WebhookTest
from hyperfleet.client.errors import (
    Ambiguous,
    ApiError,
    BadConnection,
    Conflict,
    ConnectionFailed,
    ErrorDetail,
    FleetError,
    Forbidden,
    Forgotten,
    Gone,
    Invalid,
    NotFound,
    PreconditionFailed,
    ProblemDocument,
    RateLimited,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    WaitFailed,
    WaitTimeout,
)
from hyperfleet.client.fleet import AsyncFleet, AsyncReporter, Fleet, Reporter
from hyperfleet.client.query import Filters, ListOptions, Moves
from hyperfleet.client.receiving import AsyncReceivedEvent, ReceivedEvent, SubscribeOptions
from hyperfleet.client.reporting import BatchReport, ConditionResult, ReportFields
from hyperfleet.client.resources import AsyncResources, Resources
from hyperfleet.client.runtime import ClientRuntime
from hyperfleet.events.received import Event, Poison

__all__ = [
    "Adapter",
    "AdapterProgress",
    "AdapterReport",
    "AdapterState",
    "Ambiguous",
    "ApiError",
    "Applied",
    "AsyncFleet",
    "AsyncReceivedEvent",
    "AsyncReporter",
    "AsyncResources",
    "BadConnection",
    "BatchEntry",
    "BatchReport",
    "BatchResult",
    "ClientRuntime",
    "Cluster",
    "Condition",
    "ConditionResult",
    "Conflict",
    "ConnectionFailed",
    "DeadLetter",
    "Diff",
    "Difference",
    "ErrorDetail",
    "Event",
    "ExplainedAdapter",
    "ExplainedCondition",
    "Explanation",
    "FailedAdapter",
    "Filters",
    "Fleet",
    "FleetError",
    "Forbidden",
    "Forgotten",
    "Gone",
    "HistoryEntry",
    "Invalid",
    "ListOptions",
    "Liveness",
    "Metadata",
    "MovedSubject",
    "Moves",
    "NodePool",
    "NotFound",
    "Outcome",
    "Page",
    "Poison",
    "Policy",
    "PolicyCheck",
    "PolicyVersion",
    "PreconditionFailed",
    "ProblemDocument",
    "Problems",
    "PubSub",
    "RateLimited",
    "Readiness",
    "ReceivedEvent",
    "ReconcileRequested",
    "Remedies",
    "ReportFields",
    "Reporter",
    "Reports",
    "Resource",
    "ResourceTransitions",
    "Resources",
    "SharedCause",
    "Simulation",
    "SimulationProgress",
    "Status",
    "SubscribeOptions",
    "Subscription",
    "Summary",
    "Term",
    "TrendPoint",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "WaitFailed",
    "WaitTimeout",
    "WatchEvent",
    "Webhook",
    "WebhookCause",
    "WebhookTest",
]
