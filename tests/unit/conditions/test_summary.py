"""Many conditions of one object become one."""

from datetime import UTC, datetime

import pytest

from hyperfleet.conditions import Priority, Source, Strategy, SummaryOptions, by_polarity, choose_reason, summarize
from hyperfleet.conditions.merge import merge
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import Condition

AB = SummaryOptions(target="Ready", types=("A", "B"))


def at(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


def source(*conditions: Condition) -> Source:
    return Source(kind="Cluster", name="c", conditions=conditions)


@pytest.mark.parametrize(
    ("conditions", "expected", "because"),
    [
        (
            [Condition("A", "True"), Condition("B", "True")],
            Condition("Ready", "True", "InfoReported"),
            "all is well",
        ),
        (
            [Condition("A", "True", "Good", "a says"), Condition("B", "True")],
            Condition("Ready", "True", "InfoReported", "* A: a says"),
            "an info with a message is shown when all is well",
        ),
        (
            [Condition("A", "True", "Good", "a says"), Condition("B", "False", "Bad")],
            Condition("Ready", "False", "IssuesReported", "* B: Bad"),
            "an info is not shown beside an issue, and the reason stands in for a message",
        ),
        (
            [Condition("A", "True", "Good", "a says"), Condition("B", "Unknown", "Lost", "b?")],
            Condition("Ready", "Unknown", "UnknownReported", "* B: b?"),
            "nor beside an unknown",
        ),
        (
            [Condition("B", "False", "Bad", "b"), Condition("A", "Unknown", "Lost", "a?")],
            Condition("Ready", "False", "IssuesReported", "* A: a?\n* B: b"),
            "issues and unknowns in the order of the types",
        ),
        (
            [Condition("A", "False", "Bad", "* x\n* y")],
            Condition("Ready", "False", "IssuesReported", "* A:\n  * x\n  * y\n* B: Condition not yet reported"),
            "a missing one is unknown, and lists are nested",
        ),
        (
            [Condition("A", "True"), Condition("A", "False", "Bad", "dup"), Condition("B", "True")],
            Condition("Ready", "False", "IssuesReported", "* A: dup"),
            "duplicates are all merged",
        ),
        (
            [Condition("A", "True"), Condition("B", "True"), Condition("C", "False", "Bad")],
            Condition("Ready", "True", "InfoReported"),
            "types that are not listed do not count",
        ),
    ],
)
def test_summary(conditions: list[Condition], expected: Condition, because: str) -> None:
    assert summarize(source(*conditions), AB) == expected, because


def test_types_that_may_be_missing() -> None:
    summary = SummaryOptions(target="Ready", types=("A", "B"), ignore_if_missing=("B",))
    assert summarize(source(Condition("A", "True")), summary).status == "True"
    assert summarize(source(Condition("A", "True"), Condition("B", "False")), summary).status == "False"


def test_negative_polarity() -> None:
    summary = SummaryOptions(target="Ready", types=("A", "Deleting"), negative=("Deleting",))
    well = source(Condition("A", "True"), Condition("Deleting", "False", "No", "not shown? shown"))
    assert summarize(well, summary) == Condition("Ready", "True", "InfoReported", "* Deleting: not shown? shown")
    unwell = source(Condition("A", "True"), Condition("Deleting", "True", "Yes", "going"))
    assert summarize(unwell, summary) == Condition("Ready", "False", "IssuesReported", "* Deleting: going")


def test_a_strategy_of_ones_own_decides_polarity_reasons_and_entries() -> None:
    strategy = Strategy(
        priority_of=lambda condition: Priority.INFO if condition.reason == "Harmless" else by_polarity()(condition),
        reason_of=choose_reason("NotReady", "ReadyUnknown", "Ready"),
        edit_entries=lambda entries: [entry.upper() for entry in entries],
    )
    summary = SummaryOptions(target="Ready", types=("A", "B"), negative=("B",), strategy=strategy)
    conditions = source(Condition("A", "False", "Harmless", "shown"), Condition("B", "True"))
    assert summarize(conditions, summary) == Condition("Ready", "True", "Ready", "* A: SHOWN")


def test_overrides_replace_what_the_object_says() -> None:
    override = Condition("A", "False", "Overridden", "for the summary only")
    summary = SummaryOptions(target="Ready", types=("A",), overrides=(override,))
    assert summarize(source(Condition("A", "True")), summary) == Condition(
        "Ready", "False", "IssuesReported", "* A: for the summary only"
    )


@pytest.mark.parametrize(
    ("summary", "error"),
    [
        (SummaryOptions(target="Ready", types=()), "option ForConditionTypes not provided or empty"),
        (
            SummaryOptions(target="Ready", types=("A", "Ready")),
            "option ForConditionTypes cannot include Ready (target condition type)",
        ),
        (
            SummaryOptions(target="Ready", types=("A",), overrides=(Condition("A", "True"), Condition("A", "False"))),
            "override condition A specified multiple times",
        ),
        (
            SummaryOptions(target="Ready", types=("A",), overrides=(Condition("X", "True"),)),
            "override condition X must exist in source object",
        ),
        (
            SummaryOptions(target="Ready", types=("X",), ignore_if_missing=("X",)),
            "summary can't be performed when the list of conditions to be summarized is empty",
        ),
    ],
)
def test_errors(summary: SummaryOptions, error: str) -> None:
    with pytest.raises(MergeError) as caught:
        summarize(source(Condition("A", "True")), summary)
    assert str(caught.value) == error


def test_nothing_to_merge() -> None:
    with pytest.raises(MergeError, match="can't merge an empty list of conditions"):
        merge([], ("A",), Strategy())


def test_of_one_type_the_longest_unchanged_comes_first_and_no_time_before_that() -> None:
    conditions = source(
        Condition("A", "False", "R", "new", last_transition_time=at(2)),
        Condition("A", "False", "R", "old", last_transition_time=at(1)),
        Condition("A", "False", "R", "never"),
    )
    summary = SummaryOptions(target="Ready", types=("A",))
    assert summarize(conditions, summary).message == "* A: never\n* A: old\n* A: new"


def test_a_type_listed_twice_takes_its_last_place_and_is_missed_once() -> None:
    summary = SummaryOptions(target="Ready", types=("A", "B", "A"))
    assert summarize(source(Condition("B", "False", "Bad")), summary).message == (
        "* B: Bad\n* A: Condition not yet reported"
    )


def test_a_negative_target_is_true_when_there_is_an_issue() -> None:
    strategy = Strategy(target_is_negative=True)
    summary = SummaryOptions(target="Trouble", types=("A", "B"), strategy=strategy)
    issue = source(Condition("A", "False", "Bad"), Condition("B", "True", "Good", "fine"))
    assert summarize(issue, summary) == Condition("Trouble", "True", "IssuesReported", "* A: Bad\n* B: fine")
    well = source(Condition("A", "True", "Good", "fine"), Condition("B", "True"))
    assert summarize(well, summary) == Condition("Trouble", "False", "InfoReported")
    unknown = source(Condition("A", "Unknown", "Lost"), Condition("B", "True"))
    assert summarize(unknown, summary).status == "Unknown"


@pytest.mark.parametrize(
    ("status", "positive", "negative"),
    [
        ("True", Priority.INFO, Priority.ISSUE),
        ("False", Priority.ISSUE, Priority.INFO),
        ("Unknown", Priority.UNKNOWN, Priority.UNKNOWN),
        ("", Priority.UNKNOWN, Priority.UNKNOWN),
        ("true", Priority.UNKNOWN, Priority.UNKNOWN),
    ],
)
def test_priorities(status: str, positive: Priority, negative: Priority) -> None:
    condition = Condition("A", status)  # type: ignore[arg-type]  # what comes over a wire may be anything
    assert by_polarity()(condition) is positive
    assert by_polarity(["A"])(condition) is negative
    assert Priority.ISSUE < Priority.UNKNOWN < Priority.INFO
