"""Whether adapters are asked to look at a resource, and why: the conditions of due rules are evaluated here.

The server finds the rules that are due (`schedule.due_rules`) and evaluates their `where`; a sentinel, in the server or
elsewhere, evaluates their `when` on the resource as the API answers it. `--dry-run` prints the decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from hyperfleet.cel import HELPERS, LISTS, CelEnvironment, CelType, Compiled
from hyperfleet.documents.durations import short_duration
from hyperfleet.sentinel.rules import State
from hyperfleet.sentinel.schedule import DueRule, LookedAt

# What `when` may use: the resource as `GET /v1/…` answers it, and why it is a candidate.
CONDITION_VARIABLES: Final[Mapping[str, CelType]] = {
    "resource": "any",
    "state": "string",
    "age": "duration",
    "attempts": "int",
    "now": "timestamp",
}


class Trigger(Struct, frozen=True):
    """A rule that is due for one resource, as a sentinel gets it from the server."""

    rule: str
    state: State
    age: timedelta  # of the state
    attempts: int  # looks before this one, since the resource was Ready or its generation changed
    when: str = ""  # the condition of the rule, in CEL


class Declined(NamedTuple):
    """A rule that is due, and whose condition is not true."""

    rule: str
    why: str


class Decision(NamedTuple):
    """What to do about a resource that is due."""

    rule: str | None  # the first rule whose condition is true; None: do nothing
    why: str  # for people
    declined: tuple[Declined, ...] = ()  # the rules before it


def triggers_of(looked_at: LookedAt, due: Iterable[DueRule], now: datetime) -> tuple[Trigger, ...]:
    """Return what a sentinel needs to decide about a resource."""
    attempts = looked_at.history.attempts
    return tuple([Trigger(each.rule.name, each.rule.state, now - each.since, attempts, each.rule.when) for each in due])


def decide(document: Mapping[str, Any], triggers: Iterable[Trigger], now: datetime) -> Decision:
    """Choose the first rule whose condition is true; one that cannot be evaluated is declined with the reason."""
    declined: list[Declined] = []
    for trigger in triggers:
        objection = _find_objection(document, trigger, now)
        if not objection:
            return Decision(trigger.rule, _describe(trigger), tuple(declined))
        declined.append(Declined(trigger.rule, objection))
    why = "; ".join(f"{rule}: {why}" for rule, why in declined) or "no rule is due"
    return Decision(None, why, tuple(declined))


@lru_cache(maxsize=256)  # a configuration has a few rules
def compile_condition(source: str) -> Compiled:
    """Compile the `when` of a rule."""
    return _environment().compile(source, "bool")


@lru_cache(maxsize=1)
def _environment() -> CelEnvironment:
    return CelEnvironment(CONDITION_VARIABLES, (*HELPERS, *LISTS))


def _find_objection(document: Mapping[str, Any], trigger: Trigger, now: datetime) -> str:
    """Say why the condition of a rule is not true; nothing if it is."""
    if not trigger.when:
        return ""
    program, faults = compile_condition(trigger.when)
    if program is None:
        return f"its condition does not compile: {faults[0].message}"
    values = {
        "resource": document,
        "state": trigger.state,
        "age": trigger.age,
        "attempts": trigger.attempts,
        "now": now,
    }
    outcome = program.evaluate(_environment().activate(values, now))
    if outcome.failure is not None:
        return f"its condition failed: {outcome.failure.message}"
    return "" if outcome.value else "its condition is false"


def _describe(trigger: Trigger) -> str:
    again = f", looked at {trigger.attempts} times" if trigger.attempts else ""
    return f"{trigger.state} for {short_duration(max(trigger.age, timedelta()))}{again}"
