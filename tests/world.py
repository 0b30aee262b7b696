"""A small world for tests: one resource, its reports, its policy and a clock, driven through the real functions.

It does what a store does around the core: keeps the inputs, calls `decide` and `aggregate` in each write, and wakes
at deadlines. It decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from hyperfleet.aggregation.acceptance import Decision, decide
from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.body import read_report
from hyperfleet.aggregation.deletion import is_removable
from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.situation import Child
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status

START = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)


class World:
    """One resource and everything the core needs to know of it."""

    def __init__(self, policy: Policy, *, start: datetime = START, resource: Resource | None = None) -> None:
        self.policy = policy
        self.now = start
        self.resource = resource or Resource("cls-123", "Cluster", "my-cluster", 1, start, start)
        self.reports: dict[str, StoredReport] = {}
        self.children: tuple[Child, ...] = ()
        self.status: Status = aggregate(self.resource, self.reports, policy, None, start)
        self.writes = 0

    def write(self) -> Status:
        """Compute and keep the status, as every write does."""
        self.writes += 1
        self.status = aggregate(self.resource, self.reports, self.policy, self.status, self.now, children=self.children)
        return self.status

    def report(self, report: Report) -> Decision:
        """Take in a report now."""
        decision = decide(report, self.resource, self.reports.get(report.adapter), self.now)
        if decision.stored is not None:
            self.reports[report.adapter] = decision.stored
        if decision.needs_aggregation:
            self.write()
        return decision

    def report_body(self, body: object) -> Decision:
        """Take in a body that must be good."""
        read = read_report(body)
        assert read.report is not None, read.errors
        return self.report(read.report)

    def edit(self) -> None:
        """Change the spec."""
        self.resource = replace(self.resource, generation=self.resource.generation + 1, generation_time=self.now)
        self.write()

    def delete(self) -> None:
        """Ask for the resource to go."""
        self.resource = replace(
            self.resource,
            generation=self.resource.generation + 1,
            generation_time=self.now,
            deletion_time=self.now,
        )
        self.write()

    def retire(self, adapter: str) -> None:
        """Forget an adapter, as `DELETE …/statuses/adapters/{name}` does."""
        del self.reports[adapter]
        self.write()

    def set_clock(self, instant: datetime) -> None:
        """Set the clock, also back, as a database that moved to another machine may."""
        self.now = instant

    def pass_time(self, duration: timedelta) -> None:
        """Let time pass; wake at each deadline on the way, as the timer does."""
        self.run_until(self.now + duration)

    def run_until(self, instant: datetime) -> None:
        """Let time pass until an instant."""
        while (deadline := self.status.next_deadline) is not None and deadline <= instant:
            assert deadline > self.now, "a deadline must lie in the future, or the timer would spin"
            self.now = deadline
            self.write()
        self.now = instant

    def heartbeat(self) -> None:
        """Let every adapter say again what it said last."""
        for stored in list(self.reports.values()):
            self.report(replace(stored.report, observed_time=None))

    def use_policy(self, policy: Policy) -> None:
        """Start to work with another policy."""
        self.policy = policy
        self.write()

    @property
    def is_removable(self) -> bool:
        return is_removable(self.resource, self.reports, self.policy, has_children=bool(self.children))


def body(
    adapter: str,
    available: str,
    *,
    generation: int = 1,
    applied: str = "True",
    health: str = "True",
    extra: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Write a report body; a condition is `Status[/Reason[/message]]`."""
    given = {"Available": available, "Applied": applied, "Health": health, **(extra or {})}
    return {
        "adapter": adapter,
        "observedGeneration": generation,
        "conditions": [condition_body(type_, text) for type_, text in given.items()],
        **more,
    }


def condition_body(type_: str, text: str) -> dict[str, str]:
    """Write a condition body from `Status[/Reason[/message]]`."""
    keys = ("status", "reason", "message")
    return {"type": type_, **dict(zip(keys, text.split("/", 2), strict=False))}


def make_report(adapter: str, available: str, **more: Any) -> Report:
    """Make a report as `body` writes it."""
    read = read_report(body(adapter, available, **more))
    assert read.report is not None, read.errors
    return read.report


def statuses(conditions: Iterable[Any]) -> dict[str, str]:
    """Return the status of each condition by type."""
    return {condition.type: condition.status for condition in conditions}
