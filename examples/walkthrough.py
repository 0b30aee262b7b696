"""A tour of the status core: one cluster from creation over failure and repair to a roll-out, without a server.

`make run` plays it. It uses the same functions that a server calls in every write.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

from msgspec.structs import replace

from hyperfleet.aggregation.acceptance import decide
from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.body import read_report
from hyperfleet.aggregation.explaining.explanation import explain
from hyperfleet.aggregation.explaining.explanation_text import render
from hyperfleet.aggregation.loading.policy_loader import load_policies
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource

START = datetime(2025, 10, 17, 12, 0, tzinfo=UTC)


class Tour:
    """One cluster, its stored reports and its status."""

    def __init__(self) -> None:
        """Create the cluster under the policy that ships with HyperFleet."""
        text = files("hyperfleet").joinpath("policies/default.yaml").read_text(encoding="utf-8")
        self.policy = load_policies(text, "default.yaml").policies[0]
        self.cluster = Resource("cls-550e8400", "Cluster", "my-cluster", 1, START, START)
        self.reports: dict[str, StoredReport] = {}
        self.status = aggregate(self.cluster, self.reports, self.policy, None, START)
        self.show(START, "cluster created")

    def report(self, minute: float, adapter: str, available: str, reason: str, message: str = "") -> None:
        """Let an adapter report, store what is accepted, and compute the status in the same step."""
        now = START + timedelta(minutes=minute)
        read = read_report(_body(adapter, self.cluster.generation, available, reason, message))
        if read.report is None:
            raise SystemExit("\n".join(f"{error.pointer}: {error.message}" for error in read.errors))
        decision = decide(read.report, self.cluster, self.reports.get(adapter), now)
        if decision.stored is not None:
            self.reports[adapter] = decision.stored
        self.status = aggregate(self.cluster, self.reports, self.policy, self.status, now)
        self.show(now, f"{adapter}: Available={available} {reason}")

    def edit(self, minute: float) -> None:
        """Change the spec: a new generation begins."""
        now = START + timedelta(minutes=minute)
        self.cluster = replace(self.cluster, generation=self.cluster.generation + 1, generation_time=now)
        self.status = aggregate(self.cluster, self.reports, self.policy, self.status, now)
        self.show(now, f"spec changed, generation {self.cluster.generation}")

    def explain(self, minute: float, condition: str) -> None:
        """Ask why."""
        now = START + timedelta(minutes=minute)
        told = explain(self.cluster, self.reports, self.policy, self.status, now, only=condition)
        print("\n" + "".join(f"    {line}\n" for line in render(told, now).splitlines()))

    def show(self, now: datetime, what: str) -> None:
        """Print the status on one line."""
        conditions = {condition.type: condition.status for condition in self.status.conditions}
        print(
            f"{now:%H:%M}  {what:<44} {self.status.phase:<12} "
            f"Ready={conditions['Ready']:<7} Available={conditions['Available']}"
        )


def _body(adapter: str, generation: int, available: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "adapter": adapter,
        "observedGeneration": generation,
        "conditions": [
            {"type": "Available", "status": available, "reason": reason, "message": message},
            {"type": "Applied", "status": "True", "reason": "JobLaunched"},
            {"type": "Health", "status": "True", "reason": "NoErrors"},
        ],
    }


def main() -> None:
    """Play the tour."""
    tour = Tour()
    tour.report(0.1, "validation", "False", "JobRunning", "Validation Job is executing")
    tour.report(2, "validation", "False", "ValidationFailed", "Route53 zone not found for domain example.com")
    print("\nWhy is it not ready?")
    tour.explain(3, "Ready")
    tour.report(4, "validation", "True", "JobSucceeded", "All checks passed")
    for minute, adapter in enumerate(("dns", "infrastructure", "hypershift"), start=5):
        tour.report(minute, adapter, "True", "JobSucceeded", "Done")
    tour.edit(8)
    tour.report(9, "validation", "True", "JobSucceeded", "All checks passed")
    print("\nA roll-out does not take the cluster away from its users: Available stays True. Who is still to come?")
    tour.explain(9, "Available")


if __name__ == "__main__":
    main()
