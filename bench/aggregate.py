"""One report for one cluster: what each step of the write costs, with 4, 12 and 50 adapters and the guide's rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from bench.timing import time_each
from hyperfleet.aggregation.acceptance import decide
from hyperfleet.aggregation.aggregate import aggregate, judge
from hyperfleet.aggregation.hypothetical import imagine_report
from hyperfleet.aggregation.loading.policy_loader import load_policies
from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.situation import read_situation
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterState

START = datetime(2025, 1, 1, tzinfo=UTC)
NOW = START + timedelta(minutes=5)
GUIDE = Path(__file__).parent.parent / "examples/policies/guide.yaml"
SIZES = (4, 12, 50)
STATES: tuple[AdapterState, ...] = ("Completed", "Completed", "Running", "Failed")


def main() -> None:
    """Print the table: each step is the difference between the work up to it and the work up to the one before."""
    print("| adapters | decide | read | judge | settle | one report, µs | µs per adapter |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        _measure(size, "all completed", ("Completed",))
        _measure(size, "half trouble", STATES)


def _measure(size: int, name: str, states: tuple[AdapterState, ...]) -> None:
    policy, reports = _fleet(size, states)
    cluster = Resource("cls-1", "Cluster", "one", 1, START, START)
    stored = reports["dns"]
    report = replace(stored.report, observed_time=NOW)
    previous = aggregate(cluster, reports, policy, None, START)
    times = time_each(
        {
            "decide": lambda: decide(report, cluster, stored, NOW),
            "read": lambda: read_situation(cluster, reports, policy, previous, NOW),
            "judge": lambda: judge(read_situation(cluster, reports, policy, previous, NOW)),
            "settle": lambda: aggregate(cluster, reports, policy, previous, NOW),
        }
    )
    steps = {
        "decide": times["decide"],
        "read": times["read"],
        "judge": times["judge"] - times["read"],
        "settle": times["settle"] - times["judge"],
    }
    total = sum(steps.values())
    shares = " | ".join(f"{time:.1f} ({time / total:.0%})" for time in steps.values())
    print(f"| {size}, {name} | {shares} | {total:.1f} | {total / size:.2f} |")


def _fleet(size: int, states: tuple[AdapterState, ...]) -> tuple[Policy, dict[str, StoredReport]]:
    guide = load_policies(GUIDE.read_text()).policies[0]
    names = (*guide.required, *(f"adapter-{index}" for index in range(len(guide.required), size)))
    policy = replace(guide, required=names)
    reports = {}
    for index, name in enumerate(names):
        stored = imagine_report(name, states[index % len(states)], 1, policy, START)
        if stored is not None:
            reports[name] = stored
    return policy, reports


if __name__ == "__main__":
    main()
