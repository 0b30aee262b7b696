"""Availability gates that can never work are found before they hurt."""

import pytest

from hyperfleet.conditions import Flaw
from hyperfleet.conditions.cluster import AvailabilityGate, ClusterScope, gates_in_force, lint_gates


def gates(*types: str) -> tuple[AvailabilityGate, ...]:
    return tuple(AvailabilityGate(condition_type=type_) for type_ in types)


def test_no_gates_at_all() -> None:
    assert gates_in_force(ClusterScope()) == ()


@pytest.mark.parametrize(
    ("types", "flaw"),
    [
        (["Available"], Flaw("Available", "GateOnItself", "Available cannot depend on itself")),
        (["not a type"], Flaw("not a type", "GateNeverAppears", "no condition can have this type")),
        (["a" * 317], Flaw("a" * 317, "GateNeverAppears", "no condition can have this type")),
        (["A", "A"], Flaw("A", "GateDuplicate", "gate is given 2 times")),
    ],
)
def test_each_flaw(types: list[str], flaw: Flaw) -> None:
    assert lint_gates(gates(*types)) == (flaw,)


def test_there_is_room_for_fifteen_conditions_of_others() -> None:
    names = [f"Mine{number}" for number in range(16)]
    assert lint_gates(gates(*names[:14], "Deleting", "TopologyReconciled", "a" * 316)) == ()
    assert lint_gates(gates(*names)) == (
        Flaw("", "GatesNeverAppear", "16 gates need conditions of others; there is room for 15"),
    )


def test_too_many_gates() -> None:
    names = [f"Mine{number}" for number in range(33)]
    assert lint_gates(gates(*names)) == (
        Flaw("", "TooManyGates", "33 gates; the limit is 32"),
        Flaw("", "GatesNeverAppear", "33 gates need conditions of others; there is room for 15"),
    )
    assert [flaw.rule for flaw in lint_gates(gates(*names[:32]))] == ["GatesNeverAppear"]
