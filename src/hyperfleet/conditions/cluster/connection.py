"""`RemoteConnectionProbe`: can the cluster be reached?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.vocabulary import REMOTE_CONNECTION_PROBE
from hyperfleet.conditions.lookup import get
from hyperfleet.conditions.writer import write_moment
from hyperfleet.model.condition import FALSE, TRUE, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterView

# A connection that was never established has this many tries before it counts as failed.
_PATIENCE: Final = 5


def remote_connection_probe(view: ClusterView) -> Condition:
    """Decide `RemoteConnectionProbe`."""
    probe = view.scope.probe
    if probe.last_success is None:
        return _never_connected(view)
    if view.now - probe.last_success > probe.grace:
        return _failed(f"Remote connection probe failed, probe last succeeded at {write_moment(probe.last_success)}")
    return Condition(REMOTE_CONNECTION_PROBE, TRUE, "ProbeSucceeded")


def _never_connected(view: ClusterView) -> Condition:
    """Keep the previous condition, also across a restart of the controller, until the time is up."""
    if view.scope.probe.consecutive_failures >= _PATIENCE:
        return _failed("Remote connection probe failed")
    previous = get(view.conditions, REMOTE_CONNECTION_PROBE)
    return previous or _failed("Remote connection not established yet")


def _failed(message: str) -> Condition:
    return Condition(REMOTE_CONNECTION_PROBE, FALSE, "ProbeFailed", message)
