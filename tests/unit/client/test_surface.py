"""The public API: both faces are equal, every field of the server is known, and importing is cheap."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from hyperfleet.api import difference_wire, explanation_wire, message_shapes, problems, shapes, simulation_wire, wire
from hyperfleet.client import AsyncFleet, AsyncReporter, AsyncResources, Fleet, Reporter, Resources, errors
from hyperfleet.client.answers import explanation, fleet, past, pubsub, report, resource, simulation
from hyperfleet.client.receiving import AsyncReceivedEvent, ReceivedEvent

# What the server encodes, and what the client reads it as.
PAIRS: list[tuple[type[Struct], type[Struct]]] = [
    (wire.ResourceAnswer, resource.Resource),
    (wire.MetadataAnswer, resource.Metadata),
    (wire.StatusAnswer, resource.Status),
    (wire.ConditionAnswer, resource.Condition),
    (wire.RawAnswer, resource.Undamped),
    (wire.FlappingAnswer, resource.FlappingMark),
    (wire.AdapterAnswer, resource.AdapterState),
    (wire.AdapterStatus, report.AdapterReport),
    (wire.ReportedCondition, resource.Condition),
    (wire.OutcomeAnswer, report.OutcomeEntry),
    (wire.Note, report.ReportNote),
    (wire.BatchResultBody, report.BatchEntry),
    (wire.BatchAnswer, report.BatchResult),
    (shapes.WaitAnswer, resource.WaitResult),
    (shapes.SummaryBody, fleet.Summary),
    (shapes.ReportCountsBody, fleet.ReportCounts),
    (shapes.LostReportBody, fleet.LostReport),
    (shapes.AdapterDetail, fleet.Adapter),
    (shapes.BlockedResourceBody, fleet.BlockedResource),
    (shapes.HistoryEntryBody, past.HistoryEntry),
    (shapes.HistoryCause, past.ChangeCause),
    (shapes.ResourceTransitionsBody, past.ResourceTransitions),
    (shapes.MovedSubjectBody, past.MovedSubject),
    (shapes.TrendPointBody, fleet.TrendPoint),
    (shapes.SharedCauses, fleet.Problems),
    (shapes.SharedCauseBody, fleet.SharedCause),
    (shapes.AffectedResourceBody, fleet.AffectedResource),
    (shapes.MostlyShared, fleet.MostlySharedLabel),
    (shapes.CauseGrowth, fleet.FailureGrowth),
    (shapes.PolicyInForce, fleet.Policy),
    (shapes.PolicyCheckBody, fleet.PolicyCheck),
    (shapes.PolicyVersionEntry, fleet.PolicyVersion),
    (shapes.PolicyVersionAnswer, fleet.PolicyVersion),
    (shapes.PolicyFault, errors.ErrorDetail),
    (shapes.Recomputing, fleet.RecomputationProgress),
    (shapes.ReadinessBody, fleet.Readiness),
    (shapes.Unreadiness, fleet.UnreadyReason),
    (problems.ProblemDocumentBody, errors.ProblemDocument),
    (problems.FaultBody, errors.ErrorDetail),
    (difference_wire.Differences, past.Diff),
    (difference_wire.SideAnswer, past.DiffSide),
    (difference_wire.DifferenceAnswer, past.Difference),
    (explanation_wire.ExplanationAnswer, explanation.Explanation),
    (explanation_wire.ExplainedConditionBody, explanation.ExplainedCondition),
    (explanation_wire.ExplainedAdapterBody, explanation.ExplainedAdapter),
    (explanation_wire.ExplainedFlappingBody, explanation.ExplainedFlapping),
    (explanation_wire.ExplainedMove, explanation.FlappingMove),
    (explanation_wire.TermAnswer, explanation.Term),
    (explanation_wire.RemediesAnswer, explanation.Remedies),
    (explanation_wire.RemedyReportBody, explanation.RemedyReport),
    (simulation_wire.SimulationAnswer, simulation.Simulation),
    (simulation_wire.SimulatedCountBody, simulation.SimulatedCount),
    (simulation_wire.SimulatedTransitionBody, simulation.SimulatedTransition),
    (simulation_wire.SimulatedChangeBody, simulation.SimulatedChange),
    (simulation_wire.ReplayAnswer, simulation.ReplayResult),
    (simulation_wire.ReplayedSubjectBody, simulation.ReplayedSubject),
    (simulation_wire.ReplayedAccount, simulation.ReplayedTotals),
    (simulation_wire.ReplayedLife, simulation.ReplayedResource),
    (simulation_wire.ReplayedStory, simulation.ReplayedTimeline),
    (simulation_wire.ReplayedStretch, simulation.ReplayedInterval),
    (simulation_wire.SimulationProgressBody, simulation.SimulationProgress),
    (message_shapes.ReconcileRequested, resource.ReconcileRequested),
    (message_shapes.PubSubAnswer, pubsub.PubSub),
    (message_shapes.SubscriptionAnswer, pubsub.Subscription),
    (message_shapes.DeadLetterAnswer, pubsub.DeadLetter),
    (message_shapes.PulledMessages, pubsub.PulledMessages),
    (message_shapes.PulledMessage, pubsub.PulledMessage),
    (message_shapes.AcknowledgedMessages, pubsub.AcknowledgedMessages),
    (message_shapes.ReplayedMessages, pubsub.ReplayedMessages),
]


@pytest.mark.parametrize(("sent", "read"), PAIRS, ids=lambda shape: shape.__name__)
def test_the_client_reads_every_field_the_server_sends(sent: type[Struct], read: type[Struct]) -> None:
    assert _names(sent) <= _names(read)


def _names(shape: type[Struct]) -> set[str]:
    return {each.encode_name for each in msgspec.structs.fields(shape)}


@pytest.mark.parametrize(
    ("plain", "awaited"),
    [
        (Fleet, AsyncFleet),
        (Resources, AsyncResources),
        (Reporter, AsyncReporter),
        (ReceivedEvent, AsyncReceivedEvent),
    ],
)
def test_both_faces_have_the_same_operations(plain: type[Any], awaited: type[Any]) -> None:
    def public(face: type[Any]) -> set[str]:
        return {name for name in dir(face) if not name.startswith("_")} - {"close", "aclose"}

    assert public(plain) == public(awaited)


def test_operations_have_docstrings() -> None:
    fleet = Fleet("http://127.0.0.1:1")
    assert list(inspect.signature(fleet.clusters.find).parameters) == ["self", "name", "parent"]
    undocumented = [name for name in dir(fleet.clusters) if not name.startswith("_") and not _doc(fleet.clusters, name)]
    assert undocumented == []
    assert [name for name in dir(fleet) if not name.startswith("_") and not _doc(fleet, name)] == []
    fleet.close()


def _doc(face: Any, name: str) -> str:
    return getattr(face, name).__doc__ or ""


def test_imports_are_lazy() -> None:
    program = """
import sys
import hyperfleet.client
early = set(sys.modules)
hyperfleet.client.Fleet("http://127.0.0.1:1")
heavy = ("starlette", "jsonschema", "ruamel.yaml", "rich", "pygments", "click", "granian", "hyperfleet.api")
print([name for name in (*heavy, "httpx", "asyncio", "ssl") if name in early])
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
