"""What Kubernetes would refuse, and what is almost surely a mistake."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import Flaw, lint
from hyperfleet.model.condition import Condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = Condition("Ready", "True", "AllGood", "fine", 3, NOW)


def rules(*conditions: Condition) -> list[str]:
    return [flaw.rule for flaw in lint(conditions, now=NOW, generation=3)]


def test_nothing_to_find() -> None:
    assert rules(GOOD, replace(GOOD, type="example.com/My-Check_1.0", observed_generation=0)) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"type": "!C"}, "TypeInvalid"),
        ({"type": "Example.com/Ready"}, "TypeInvalid"),
        ({"type": "a" * 317}, "TypeTooLong"),
        ({"status": "true"}, "StatusInvalid"),
        ({"reason": ""}, "ReasonMissing"),
        ({"reason": "Reason-1"}, "ReasonInvalid"),
        ({"reason": "AllGood!"}, "ReasonInvalid"),
        ({"reason": "Ends:"}, "ReasonInvalid"),
        ({"reason": "R" * 1025}, "ReasonTooLong"),
        ({"reason": "NoReasonReported"}, "ReasonLeaked"),
        ({"reason": "NotYetReported"}, "ReasonLeaked"),
        ({"message": "x" * 32769}, "MessageTooLong"),
        ({"observed_generation": -1}, "GenerationNegative"),
        ({"observed_generation": 4}, "GenerationAhead"),
        ({"observed_generation": 2}, "GenerationBehind"),
        ({"observed_generation": 1}, "GenerationBehind"),
        ({"last_transition_time": None}, "TransitionTimeMissing"),
        ({"last_transition_time": NOW + timedelta(seconds=1)}, "TransitionTimeInFuture"),
    ],
)
def test_each_rule_finds_its_flaw_and_only_that(change: dict[str, object], rule: str) -> None:
    flawed = replace(GOOD, **change)
    assert [(flaw.type, flaw.rule) for flaw in lint((flawed,), now=NOW, generation=3)] == [(flawed.type, rule)]


def test_the_message_tells_the_limit() -> None:
    too_long = replace(GOOD, type="a" * 317, reason="R" * 1025, message="x" * 32769)
    assert [flaw.message for flaw in lint((too_long,), now=NOW, generation=3)] == [
        "type is longer than 316 characters",
        "reason is longer than 1024 characters",
        "message is longer than 32768 characters",
    ]


@pytest.mark.parametrize(
    "change",
    [{"type": "a" * 316}, {"reason": "R" * 1024}, {"reason": "A"}, {"message": "x" * 32768}, {"reason": "A,b:C_"}],
)
def test_limits_are_allowed(change: dict[str, object]) -> None:
    assert rules(replace(GOOD, **change)) == []


def test_duplicates_and_too_many() -> None:
    assert lint((GOOD, GOOD), now=NOW, generation=3) == (Flaw("Ready", "TypeDuplicate", "type is given 2 times"),)
    many = tuple(replace(GOOD, type=f"T{number}") for number in range(33))
    assert lint(many, now=NOW, generation=3) == (Flaw("", "TooMany", "33 conditions; the limit is 32"),)
    assert lint(many[:32], now=NOW, generation=3) == ()
