"""Looking conditions up and comparing them."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import (
    get,
    get_last_transition_time,
    get_message,
    get_reason,
    get_status,
    has,
    has_same_state,
    is_false,
    is_true,
    is_unknown,
)
from hyperfleet.model.condition import Condition

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
READY = Condition("Ready", "True", "AllGood", "fine", 3, WHEN)
LIST = (READY, Condition("Ready", "False"), Condition("Bad", "False"), Condition("Odd", "Unknown"))


def test_the_first_of_a_type_is_found() -> None:
    assert get(LIST, "Ready") is READY
    assert get(LIST, "Missing") is None
    assert has(LIST, "Odd")
    assert not has(LIST, "Missing")


@pytest.mark.parametrize(
    ("type_", "status", "true", "false", "unknown"),
    [
        ("Ready", "True", True, False, False),
        ("Bad", "False", False, True, False),
        ("Odd", "Unknown", False, False, True),
        ("Missing", "Unknown", False, False, True),
    ],
)
def test_a_missing_condition_is_unknown(type_: str, status: str, true: bool, false: bool, unknown: bool) -> None:
    assert get_status(LIST, type_) == status
    assert (is_true(LIST, type_), is_false(LIST, type_), is_unknown(LIST, type_)) == (true, false, unknown)


def test_details_of_a_missing_condition_are_empty() -> None:
    assert (get_reason(LIST, "Ready"), get_message(LIST, "Ready")) == ("AllGood", "fine")
    assert get_last_transition_time(LIST, "Ready") == WHEN
    assert (get_reason(LIST, "Missing"), get_message(LIST, "Missing")) == ("", "")
    assert get_last_transition_time(LIST, "Missing") is None


@pytest.mark.parametrize(
    "change", [{"type": "X"}, {"status": "False"}, {"reason": "X"}, {"message": "X"}, {"observed_generation": 4}]
)
def test_every_field_but_the_time_belongs_to_the_state(change: dict[str, object]) -> None:
    assert not has_same_state(READY, replace(READY, **change))


def test_the_time_does_not_belong_to_the_state() -> None:
    assert has_same_state(READY, replace(READY, last_transition_time=None))


def test_the_generation_can_be_ignored() -> None:
    other = replace(READY, observed_generation=9)
    assert has_same_state(READY, other, ignore_generation=True)
    assert not has_same_state(READY, replace(other, reason="X"), ignore_generation=True)
