"""Availability gates: the conditions a user adds to `Available`, and a lint for gates that can never work."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.vocabulary import AVAILABLE, OWNED_TYPES, TOPOLOGY_RECONCILED
from hyperfleet.conditions.lint import MAX_CONDITIONS, Flaw
from hyperfleet.model.condition import MAX_TYPE, TYPE_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hyperfleet.conditions.cluster.scope import AvailabilityGate, ClusterScope

_MAX_GATES: Final = 32
_OURS: Final = OWNED_TYPES | {TOPOLOGY_RECONCILED}


def gates_in_force(scope: ClusterScope) -> tuple[AvailabilityGate, ...]:
    """Return the gates of the Cluster, or those of its class when it gives no list; never both."""
    if scope.cluster.availability_gates is not None:
        return scope.cluster.availability_gates
    return scope.class_gates or ()


def lint_gates(gates: tuple[AvailabilityGate, ...]) -> tuple[Flaw, ...]:
    """List every gate that can never be satisfied, or not together with the others."""
    types = [gate.condition_type for gate in gates]
    return (*_lint_each(types), *_lint_together(types))


def _lint_each(types: list[str]) -> Iterator[Flaw]:
    for type_, count in Counter(types).items():
        if type_ == AVAILABLE:
            yield Flaw(type_, "GateOnItself", "Available cannot depend on itself")
        if len(type_) > MAX_TYPE or not TYPE_PATTERN.fullmatch(type_):
            yield Flaw(type_, "GateNeverAppears", "no condition can have this type")
        if count > 1:
            yield Flaw(type_, "GateDuplicate", f"gate is given {count} times")


def _lint_together(types: list[str]) -> Iterator[Flaw]:
    if len(types) > _MAX_GATES:
        yield Flaw("", "TooManyGates", f"{len(types)} gates; the limit is {_MAX_GATES}")
    foreign = set(types) - _OURS
    room = MAX_CONDITIONS - len(_OURS)
    if len(foreign) > room:
        yield Flaw(
            "",
            "GatesNeverAppear",
            f"{len(foreign)} gates need conditions of others; there is room for {room}",
        )
