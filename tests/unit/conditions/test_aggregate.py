"""One condition of many objects becomes one."""

from datetime import UTC, datetime

import pytest

from hyperfleet.conditions import Aggregation, Source, Strategy, aggregate, choose_reason
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import Condition, ConditionStatus

READY = Aggregation(source_type="Ready")
SCALING = Aggregation(source_type="ScalingUp", negative=("ScalingUp",))


def machine(
    name: str, message: str, status: ConditionStatus = "False", *, kind: str = "Machine", control_plane: bool = False
) -> Source:
    condition = Condition("Ready", status, "Reason", message)
    return Source(kind=kind, name=name, is_control_plane_machine=control_plane, conditions=(condition,))


def message_of(*sources: Source) -> list[str]:
    return aggregate(sources, READY).message.split("\n")


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ("a", "* Machine a: m"),
        ("ba", "* Machines a, b: m"),
        ("cab", "* Machines a, b, c: m"),
        ("decab", "* Machines a, b, c, ... (2 more): m"),
    ],
)
def test_objects_that_say_the_same_share_a_line(names: str, line: str) -> None:
    assert message_of(*(machine(name, "m") for name in names)) == [line]


def test_status_and_default_reasons() -> None:
    issue, unknown, info = machine("a", "i"), machine("b", "u", "Unknown"), machine("c", "", "True")
    assert aggregate([issue, unknown, info], READY) == Condition(
        "Ready", "False", "IssuesReported", "* Machine a: i\n* Machine b: u"
    )
    assert aggregate([unknown, info], READY) == Condition("Ready", "Unknown", "UnknownReported", "* Machine b: u")
    assert aggregate([info], READY) == Condition("Ready", "True", "InfoReported")


def test_the_target_and_the_reasons_can_be_chosen() -> None:
    strategy = Strategy(reason_of=choose_reason("NotReady", "ReadyUnknown", "Ready"))
    aggregation = Aggregation(source_type="Ready", target="MachinesReady", strategy=strategy)
    assert aggregate([machine("a", "m")], aggregation) == Condition(
        "MachinesReady", "False", "NotReady", "* Machine a: m"
    )


def test_a_missing_condition_is_unknown_and_named() -> None:
    assert aggregate([Source(kind="Machine", name="a")], READY) == Condition(
        "Ready", "Unknown", "UnknownReported", "* Machine a: Condition Ready not yet reported"
    )


def test_infos_are_shown_only_when_all_is_well_and_only_those_that_say_something() -> None:
    talkative, silent = machine("a", "hello", "True"), machine("b", "", "True")
    assert message_of(talkative, silent) == ["* Machine a: hello"]
    assert message_of(talkative, silent, machine("c", "bad")) == ["* Machine c: bad"]


def test_three_messages_then_a_count_for_each_kind_and_priority() -> None:
    sources = [machine(f"m{number}", f"issue {number}") for number in range(1, 6)]
    sources += [machine("m6", "lost", "Unknown")]
    sources += [machine("s1", "set issue", kind="MachineSet")]
    assert message_of(*sources) == [
        "* Machine m1: issue 1",
        "* Machine m2: issue 2",
        "* Machine m3: issue 3",
        "And 2 Machines with other issues",
        "And 1 Machine with status unknown",
        "And 1 MachineSet with other issues",
    ]


def test_the_budget_is_shared_by_the_kinds() -> None:
    sources = [machine("s1", "s", kind="MachineSet"), machine("s2", "t", kind="MachineSet")]
    sources += [machine("m1", "a"), machine("m2", "b")]
    assert message_of(*sources) == [
        "* Machine m1: a",
        "* Machine m2: b",
        "* MachineSet s1: s",
        "And 1 MachineSet with other issues",
    ]


def test_a_count_of_infos() -> None:
    sources = [machine(f"m{number}", f"info {number}", "True") for number in range(1, 6)]
    assert message_of(*sources)[3:] == ["And 2 Machines with additional info"]


def test_a_count_counts_objects_not_messages() -> None:
    sources = [machine(f"{text}{number}", text) for text in "abcd" for number in range(2)]
    assert message_of(*sources)[3:] == ["And 2 Machines with other issues"]


def test_order_within_a_kind() -> None:
    sources = [
        machine("z1", "alone"),
        machine("y1", "shared"),
        machine("y2", "shared"),
        machine("a1", "lost", "Unknown"),
        machine("x1", "of the control plane", control_plane=True),
    ]
    assert message_of(*sources) == [
        "* Machine x1: of the control plane",
        "* Machines y1, y2: shared",
        "* Machine z1: alone",
        "And 1 Machine with status unknown",
    ]


def test_an_unknown_of_the_control_plane_goes_before_an_issue_of_a_worker() -> None:
    sources = [machine("a", "issue"), machine("b", "lost", "Unknown", control_plane=True)]
    assert message_of(*sources) == ["* Machine b: lost", "* Machine a: issue"]


def test_control_plane_machines_are_named_first() -> None:
    sources = [machine("a", "m"), machine("b", "m"), machine("z", "m", control_plane=True)]
    assert message_of(*sources) == ["* Machines z, a, b: m"]


def test_the_best_priority_of_a_text_counts_in_every_kind() -> None:
    sources = [machine("m1", "said twice"), machine("s1", "said twice", "Unknown", kind="MachineSet")]
    sources += [machine("s2", "another issue", kind="MachineSet"), machine("s3", "lost", "Unknown", kind="MachineSet")]
    assert message_of(*sources) == [
        "* Machine m1: said twice",
        "* MachineSet s1: said twice",
        "* MachineSet s2: another issue",
        "And 1 MachineSet with status unknown",
    ]


def test_equally_urgent_messages_go_by_the_names_in_order_of_arrival() -> None:
    def since(name: str, message: str, day: int) -> Source:
        moment = datetime(2026, 1, day, tzinfo=UTC)
        condition = Condition("Ready", "False", "Reason", message, last_transition_time=moment)
        return Source(kind="Machine", name=name, conditions=(condition,))

    sources = [since("a", "first", 9), since("z", "first", 8), since("b", "second", 1), since("c", "second", 2)]
    assert message_of(*sources) == ["* Machines b, c: second", "* Machines a, z: first"]


def test_lists_are_nested() -> None:
    assert message_of(machine("a", "* x\n* y")) == ["* Machine a:", "  * x", "  * y"]


def test_negative_polarity_of_source_and_target() -> None:
    def scaling(name: str, status: ConditionStatus, message: str = "") -> Source:
        return Source(kind="Machine", name=name, conditions=(Condition("ScalingUp", status, "R", message),))

    assert aggregate([scaling("a", "True", "up"), scaling("b", "False")], SCALING) == Condition(
        "ScalingUp", "True", "IssuesReported", "* Machine a: up"
    )
    assert aggregate([scaling("a", "False", "resting")], SCALING) == Condition(
        "ScalingUp", "False", "InfoReported", "* Machine a: resting"
    )
    assert aggregate([scaling("a", "Unknown")], SCALING).status == "Unknown"


def test_errors() -> None:
    with pytest.raises(MergeError, match=r"\AsourceObjs can't be empty\Z"):
        aggregate([], READY)
    wrong = Aggregation(source_type="Ready", negative=("Other",), strategy=Strategy())
    with pytest.raises(MergeError) as caught:
        aggregate([machine("a", "m")], wrong)
    assert str(caught.value) == 'negativePolarityConditionTypes can only be set to ["Ready"]'
