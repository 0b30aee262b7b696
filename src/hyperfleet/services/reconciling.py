"""A person asks that adapters look at a resource again: an event in the log, and nothing else changes."""

from __future__ import annotations

from msgspec import Struct

from hyperfleet.services.callers import Caller
from hyperfleet.services.commands import Wants
from hyperfleet.services.results import Refusal, Target, Written, not_found
from hyperfleet.services.workspace import Workspace


class RequestReconcile(Struct, frozen=True):
    """Ask the adapters of a resource to look at it again."""

    target: Target
    caller: Caller

    @property
    def wants(self) -> Wants:
        """Load the resource."""
        return Wants(ids=(self.target.id,))

    def apply(self, workspace: Workspace) -> Written | Refusal:
        """Add the event."""
        record = workspace.find(self.target, self.caller)
        return not_found(self.target) if record is None else Written(workspace.request_reconcile(record))
