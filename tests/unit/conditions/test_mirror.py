"""Showing a condition of one object on another."""

from datetime import UTC, datetime

from hyperfleet.conditions import mirror, set_condition
from hyperfleet.model.condition import Condition

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
READY = Condition("Ready", "False", "Broken", "no quota", 7, WHEN)


def test_the_copy_keeps_the_time_and_drops_the_generation() -> None:
    assert mirror((READY,), "Ready") == Condition("Ready", "False", "Broken", "no quota", 0, WHEN)


def test_the_copy_may_have_another_type() -> None:
    assert mirror((READY,), "Ready", target="InfraReady").type == "InfraReady"


def test_the_fallback_counts_only_while_the_condition_is_missing() -> None:
    fallback = Condition("Whatever", "True", "Assumed", "so far", 7, WHEN)
    assert mirror((READY,), "Ready", fallback=fallback).reason == "Broken"
    assert mirror((), "Ready", target="T", fallback=fallback) == Condition("T", "True", "Assumed", "so far")


def test_without_a_fallback_the_source_type_is_named() -> None:
    assert mirror((), "Ready", target="InfraReady") == Condition(
        "InfraReady", "Unknown", "NotYetReported", "Condition Ready not yet reported"
    )


def test_a_mirrored_time_is_taken_over_when_the_status_flips() -> None:
    written = set_condition((Condition("Ready", "True", last_transition_time=NOW),), mirror((READY,), "Ready"), now=NOW)
    assert written[0].last_transition_time == WHEN
