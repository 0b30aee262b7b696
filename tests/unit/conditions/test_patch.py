"""Carrying changes over to a list that others changed meanwhile: one row for each cell of the table."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import ConditionChange, apply_patch, diff
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import Condition

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OLD = Condition("A", "False", "Old", "old", 1, THEN)
NEW = Condition("A", "True", "New", "new", 1, NOW)
THEIRS = Condition("A", "Unknown", "Theirs", "theirs", 1, THEN)
OTHER = Condition("Z", "True", "Other", "", 1, THEN)

ADD, CHANGE, REMOVE = diff((), (NEW,)), diff((OLD,), (NEW,)), diff((OLD,), ())


def test_diff_lists_additions_and_changes_then_removals() -> None:
    added, kept, gone = Condition("Added", "True"), Condition("Kept", "True"), Condition("Gone", "True")
    assert diff((gone, kept, OLD), (added, NEW, kept)) == (
        ConditionChange("Added", None, added),
        ConditionChange("A", OLD, NEW),
        ConditionChange("Gone", gone, None),
    )


def test_nothing_to_apply_leaves_the_list_alone_unsorted() -> None:
    unsorted = (OTHER, OLD)
    assert apply_patch(unsorted, diff((OLD,), (OLD,)), now=NOW) is unsorted


@pytest.mark.parametrize(
    ("patch", "latest", "expected", "because"),
    [
        (ADD, (), (NEW,), "nobody has it yet"),
        (
            ADD,
            (replace(NEW, last_transition_time=THEN),),
            (replace(NEW, last_transition_time=THEN),),
            "the same is there already, with its time",
        ),
        (CHANGE, (OLD,), (NEW,), "nobody touched it"),
        (
            CHANGE,
            (replace(NEW, last_transition_time=THEN),),
            (replace(NEW, last_transition_time=THEN),),
            "somebody did the same",
        ),
        (REMOVE, (), (), "nothing there"),
        (REMOVE, (OTHER,), (OTHER,), "somebody removed it already"),
        (REMOVE, (OLD, OTHER), (OTHER,), "nobody touched it"),
        (REMOVE, (replace(OLD, last_transition_time=NOW),), (), "the time does not belong to the state"),
    ],
)
def test_changes_of_types_one_does_not_own(
    patch: tuple[ConditionChange, ...], latest: tuple[Condition, ...], expected: tuple[Condition, ...], because: str
) -> None:
    assert apply_patch(latest, patch, now=NOW) == expected, because


@pytest.mark.parametrize(
    ("patch", "latest", "found"),
    [
        (ADD, (THEIRS,), "it is Unknown (Theirs) now"),
        (CHANGE, (), "it is gone"),
        (CHANGE, (THEIRS,), "it is Unknown (Theirs) now"),
        (CHANGE, (replace(OLD, last_transition_time=NOW),), "it is False (Old) now"),
        (REMOVE, (THEIRS,), "it is Unknown (Theirs) now"),
    ],
)
def test_conflicts(patch: tuple[ConditionChange, ...], latest: tuple[Condition, ...], found: str) -> None:
    with pytest.raises(MergeError) as caught:
        apply_patch(latest, patch, now=NOW)
    assert str(caught.value) == f"condition A was changed by someone else meanwhile: {found}"


@pytest.mark.parametrize("options", [{"owned": ("A",)}, {"force": True}])
@pytest.mark.parametrize(
    ("patch", "latest", "expected"),
    [
        (ADD, (THEIRS,), (NEW,)),
        (CHANGE, (), (NEW,)),
        (CHANGE, (THEIRS,), (NEW,)),
        (REMOVE, (THEIRS,), ()),
        (REMOVE, (), ()),
    ],
)
def test_owned_or_forced_changes_are_simply_written(
    patch: tuple[ConditionChange, ...],
    latest: tuple[Condition, ...],
    expected: tuple[Condition, ...],
    options: dict[str, object],
) -> None:
    assert apply_patch(latest, patch, now=NOW, **options) == expected  # type: ignore[arg-type]  # owned or force


def test_owning_another_type_does_not_help() -> None:
    with pytest.raises(MergeError):
        apply_patch((THEIRS,), CHANGE, now=NOW, owned=("B",))


def test_writing_keeps_the_latest_time_while_the_status_is_the_same_and_fills_in_a_missing_one() -> None:
    other_reason = replace(OLD, reason="Newer", last_transition_time=NOW)
    assert apply_patch((OLD,), diff((OLD,), (other_reason,)), now=NOW) == (
        replace(other_reason, last_transition_time=THEN),
    )
    without_time = replace(NEW, last_transition_time=None)
    assert apply_patch((), diff((), (without_time,)), now=NOW) == (NEW,)


def test_the_result_is_sorted_and_keeps_the_generation_of_the_change() -> None:
    available = Condition("Available", "True", "New", "", 5, NOW)
    unsorted = (OTHER, OLD)
    assert apply_patch(unsorted, diff((), (available,)), now=NOW) == (available, OLD, OTHER)
    assert apply_patch(unsorted, diff((), (available,)), now=NOW, order=None) == (OTHER, OLD, available)
