"""Everything one aggregation looks at, read once: resource, adapters, policy, previous status, time.

`aggregate` hands it to each of its steps; `explain` and `lint` take the same steps on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from hyperfleet.aggregation.adapters import Adapters, AdapterView
from hyperfleet.aggregation.environment import RuleClock, values_for
from hyperfleet.aggregation.missing import missing_instants, remember
from hyperfleet.aggregation.observation import observe
from hyperfleet.aggregation.policy import Policy
from hyperfleet.expr import Budget, open_budget
from hyperfleet.model.condition import Condition
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Memory, Status


class Child(Struct, frozen=True):
    """A child resource as a `summary` rule of its parent sees it."""

    kind: str
    name: str
    conditions: tuple[Condition, ...]


class Situation(Struct, frozen=True):
    """The inputs of one aggregation, as read at `now`."""

    resource: Resource
    policy: Policy
    previous: Status | None
    now: datetime
    children: tuple[Child, ...]
    adapters: Adapters
    memory: Memory
    missing_at: Mapping[str, datetime]
    clock: RuleClock
    values: Mapping[str, object]
    budget: Budget  # all rules pay from it, so that the work for one status is bounded, however many rules there are

    @property
    def by_name(self) -> Mapping[str, AdapterView]:
        """Return every adapter by name, in policy order."""
        return self.adapters.by_name

    @property
    def missing(self) -> tuple[AdapterView, ...]:
        """Return the required adapters that have been silent for too long."""
        return tuple(self.by_name[name] for name, instant in self.missing_at.items() if instant <= self.now)


def read_situation(
    resource: Resource,
    reports: Mapping[str, StoredReport],
    policy: Policy,
    previous: Status | None,
    now: datetime,
    children: Iterable[Child] = (),
    budget: Budget | None = None,
) -> Situation:
    """Read the inputs; no write may be earlier than the one before it. Without a `budget`, there is a full one."""
    now = max(now, previous.memory.written_time) if previous else now
    adapters = observe(resource, reports, policy, now)
    memory = remember(adapters, policy, previous, now)
    clock = RuleClock(adapters.by_name, now)
    missing_at = missing_instants(resource, adapters, policy, memory)
    values = values_for(adapters, resource.generation, clock, with_conditions=policy.reads_conditions)
    return Situation(
        resource,
        policy,
        previous,
        now,
        tuple(children),
        adapters,
        memory,
        missing_at,
        clock,
        values,
        open_budget() if budget is None else budget,
    )
