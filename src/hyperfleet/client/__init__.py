"""The Python client: typed answers, one implementation, two faces.

    with Fleet("http://127.0.0.1:8000") as fleet:
        cluster = fleet.clusters.create("payments", {"cloud": "aws"})
        fleet.report(cluster, "dns", available=True, reason="RecordsCreated")
        fleet.wait_for_adapter(cluster, "dns")

`AsyncFleet` has the same operations to be awaited. The command line, simulators and adapters use it; docs/client.md
tells the rest. It imports nothing of the server, and httpx only when a connection is made.
"""

from __future__ import annotations

from hyperfleet.client.answers.explanation import ExplainedAdapter, ExplainedCondition, Explanation, Remedies, Term
from hyperfleet.client.answers.fleet import (
    Adapter,
    Liveness,
    Policy,
    Problems,
    Readiness,
    SharedCause,
    Summary,
    TrendPoint,
)
from hyperfleet.client.answers.past import Diff, Difference, HistoryEntry, MovedSubject, ResourceTransitions
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
    Resource,
    Status,
    WatchEvent,
)
from hyperfleet.client.answers.simulation import Simulation, SimulationProgress
from hyperfleet.client.errors import (
    Ambiguous,
    ApiError,
    BadConnection,
    Conflict,
    ConnectionFailed,
    Fault,
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
from hyperfleet.client.query import Filters, Listing, Moves
from hyperfleet.client.reporting import BatchReport, Verdict, Words
from hyperfleet.client.resources import AsyncResources, Resources
from hyperfleet.client.surroundings import Surroundings

__all__ = [
    "Adapter",
    "AdapterProgress",
    "AdapterReport",
    "AdapterState",
    "Ambiguous",
    "ApiError",
    "Applied",
    "AsyncFleet",
    "AsyncReporter",
    "AsyncResources",
    "BadConnection",
    "BatchEntry",
    "BatchReport",
    "BatchResult",
    "Cluster",
    "Condition",
    "Conflict",
    "ConnectionFailed",
    "Diff",
    "Difference",
    "ExplainedAdapter",
    "ExplainedCondition",
    "Explanation",
    "FailedAdapter",
    "Fault",
    "Filters",
    "Fleet",
    "FleetError",
    "Forbidden",
    "Forgotten",
    "Gone",
    "HistoryEntry",
    "Invalid",
    "Listing",
    "Liveness",
    "Metadata",
    "MovedSubject",
    "Moves",
    "NodePool",
    "NotFound",
    "Outcome",
    "Page",
    "Policy",
    "PreconditionFailed",
    "ProblemDocument",
    "Problems",
    "RateLimited",
    "Readiness",
    "Remedies",
    "Reporter",
    "Reports",
    "Resource",
    "ResourceTransitions",
    "Resources",
    "SharedCause",
    "Simulation",
    "SimulationProgress",
    "Status",
    "Summary",
    "Surroundings",
    "Term",
    "TrendPoint",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "Verdict",
    "WaitFailed",
    "WaitTimeout",
    "WatchEvent",
    "Words",
]
