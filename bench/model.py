"""What it costs to make and compare a value: frozen msgspec struct against its alternatives, in one run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from bench.timing import time_each
from hyperfleet.model.condition import Condition

NOW = datetime(2025, 1, 1, tzinfo=UTC)
FIELDS = ("Available", "True", "JobSucceeded", "done", 3, NOW)


@dataclass(frozen=True, slots=True)
class _FrozenDataclass:
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    last_transition_time: datetime


@dataclass(slots=True)
class _MutableDataclass:
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    last_transition_time: datetime


class _NamedTuple(NamedTuple):
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    last_transition_time: datetime


def main() -> None:
    """Print the table."""
    kinds = {
        "msgspec struct, frozen": Condition,
        "dataclass, slots, frozen": _FrozenDataclass,
        "dataclass, slots, mutable": _MutableDataclass,
        "named tuple": _NamedTuple,
    }
    make = time_each({name: (lambda kind=kind: kind(*FIELDS)) for name, kind in kinds.items()})  # type: ignore[misc]
    pairs = {name: (kind(*FIELDS), kind(*FIELDS)) for name, kind in kinds.items()}
    same = time_each({name: (lambda pair=pair: pair[0] == pair[1]) for name, pair in pairs.items()})  # type: ignore[misc]
    print("| a condition as | make µs | compare µs |\n|---|---|---|")
    for name in kinds:
        print(f"| {name} | {make[name]:.3f} | {same[name]:.3f} |")


if __name__ == "__main__":
    main()
