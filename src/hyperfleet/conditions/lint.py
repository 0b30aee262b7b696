"""Condition lint: what Kubernetes would refuse, and what is legal but almost surely a mistake.

For status tools and tests. It reports everything it finds and raises nothing; merging does not call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hyperfleet.conditions.source import NO_REASON_REPORTED, NOT_YET_REPORTED
from hyperfleet.model.condition import (
    MAX_MESSAGE,
    MAX_REASON,
    MAX_TYPE,
    REASON_PATTERN,
    STATUSES,
    TYPE_PATTERN,
    Condition,
)

if TYPE_CHECKING:
    from datetime import datetime

MAX_CONDITIONS: Final = 32  # the limit of the Cluster's schema


class Flaw(Struct, frozen=True):
    """One thing wrong with one condition; `rule` is a stable name, `message` is for people."""

    type: str
    rule: str
    message: str


class Circumstances(Struct, frozen=True):
    """What a condition is checked against."""

    now: datetime
    generation: int


Rule = Callable[[Condition, Circumstances], bool]

# Each rule tells whether a condition is flawed.
_RULES: Final[tuple[tuple[str, str, Rule], ...]] = (
    ("TypeTooLong", f"type is longer than {MAX_TYPE} characters", lambda c, _: len(c.type) > MAX_TYPE),
    ("TypeInvalid", "type is not a qualified name", lambda c, _: TYPE_PATTERN.fullmatch(c.type) is None),
    ("StatusInvalid", "status is not one of True, False, Unknown", lambda c, _: c.status not in STATUSES),
    ("ReasonMissing", "reason is empty", lambda c, _: not c.reason),
    (
        "ReasonTooLong",
        f"reason is longer than {MAX_REASON} characters",
        lambda c, _: len(c.reason) > MAX_REASON,
    ),
    (
        "ReasonInvalid",
        "reason is not a CamelCase word",
        lambda c, _: c.reason != "" and REASON_PATTERN.fullmatch(c.reason) is None,
    ),
    (
        "ReasonLeaked",
        "reason is the placeholder for a missing reason",
        lambda c, _: c.reason in (NO_REASON_REPORTED, NOT_YET_REPORTED),
    ),
    (
        "MessageTooLong",
        f"message is longer than {MAX_MESSAGE} characters",
        lambda c, _: len(c.message) > MAX_MESSAGE,
    ),
    ("GenerationNegative", "observedGeneration is negative", lambda c, _: c.observed_generation < 0),
    (
        "GenerationAhead",
        "observedGeneration is ahead of the object",
        lambda c, at: c.observed_generation > at.generation,
    ),
    (
        "GenerationBehind",
        "observedGeneration is behind the object: the condition is stale",
        lambda c, at: 0 < c.observed_generation < at.generation,
    ),
    (
        "TransitionTimeMissing",
        "lastTransitionTime is missing",
        lambda c, _: c.last_transition_time is None,
    ),
    (
        "TransitionTimeInFuture",
        "lastTransitionTime is in the future",
        lambda c, at: c.last_transition_time is not None and c.last_transition_time > at.now,
    ),
)


def lint(conditions: tuple[Condition, ...], *, now: datetime, generation: int) -> tuple[Flaw, ...]:
    """List every flaw of a list of conditions, in the order of the list."""
    at = Circumstances(now, generation)
    flaws = [
        Flaw(condition.type, rule, message)
        for condition in conditions
        for rule, message, is_flawed in _RULES
        if is_flawed(condition, at)
    ]
    return (*flaws, *_lint_list(conditions))


def _lint_list(conditions: tuple[Condition, ...]) -> Iterator[Flaw]:
    for type_, count in Counter(condition.type for condition in conditions).items():
        if count > 1:
            yield Flaw(type_, "TypeDuplicate", f"type is given {count} times")
    if len(conditions) > MAX_CONDITIONS:
        yield Flaw("", "TooMany", f"{len(conditions)} conditions; the limit is {MAX_CONDITIONS}")
