"""What a policy makes of every combination of adapter states.

Used by `lint`, which looks for combinations that a rule gets wrong, and by `diagram`, which draws what can follow
what. Adapters that no rule names by name are interchangeable, so they move in groups: that keeps the number of
combinations small without leaving out one that could matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.hypothetical import imagine_report
from hyperfleet.aggregation.policy import Policy, Rule
from hyperfleet.model.condition import ConditionStatus
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import ADAPTER_STATES, AdapterState, Phase

# 7 states of 5 groups of adapters, about two seconds of trying; with more groups the picture is a sample.
_MOST_COMBINATIONS: Final = 7**5
_TELLING_STATES: Final[tuple[AdapterState, ...]] = ("Unreported", "Completed", "Failed")

_GENERATION: Final = 2  # so that there is an older one to be outdated at
_NOW: Final = datetime(2025, 1, 1, tzinfo=UTC)

Combination = tuple[AdapterState, ...]
Group = tuple[str, ...]


class Result(Struct, frozen=True):
    """What the policy makes of one combination."""

    states: Mapping[str, AdapterState]
    phase: Phase
    conditions: Mapping[str, ConditionStatus]


class Enumeration(Struct, frozen=True):
    """Every combination of the groups' states, with what the policy makes of it."""

    groups: tuple[Group, ...]
    results: Mapping[Combination, Result]


def enumerate_states(policy: Policy) -> Enumeration:
    """Evaluate a policy on every combination of adapter states, without the passing of time."""
    timeless = replace(policy, stale_after=None, missing_after=None, rules=tuple(map(_undamped, policy.rules)))
    groups = _group_adapters(policy)
    results = {combination: _evaluate(timeless, groups, combination) for combination in _combinations(len(groups))}
    return Enumeration(groups, results)


def _group_adapters(policy: Policy) -> tuple[Group, ...]:
    named = [name for name in policy.named_adapters if name in policy.required or name in policy.optional]
    required = [name for name in policy.required if name not in named]
    optional = [name for name in policy.optional if name not in named]
    groups = [*((name,) for name in named), tuple(required[:1]), tuple(required[1:]), tuple(optional)]
    return tuple(group for group in groups if group)


def _combinations(groups: int) -> Iterator[Combination]:
    """Combine all states of all groups; while that is too much, fewer of them for the groups named last."""
    choices: list[tuple[AdapterState, ...]] = [ADAPTER_STATES] * groups
    for index in reversed(range(groups)):
        if prod(map(len, choices)) <= _MOST_COMBINATIONS:
            break
        choices[index] = _TELLING_STATES
    return product(*choices)


def _evaluate(policy: Policy, groups: tuple[Group, ...], combination: Combination) -> Result:
    states = {name: state for group, state in zip(groups, combination, strict=True) for name in group}
    imagined = {name: imagine_report(name, state, _GENERATION, policy, _NOW) for name, state in states.items()}
    reports = {name: stored for name, stored in imagined.items() if stored is not None}
    status = aggregate(_RESOURCE, reports, policy, None, _NOW)
    return Result(states, status.phase, {condition.type: condition.status for condition in status.conditions})


_RESOURCE: Final = Resource("cls-example", "Cluster", "example", _GENERATION, _NOW, _NOW)


def _undamped(rule: Rule) -> Rule:
    return replace(rule, go_bad_after=timedelta(), go_good_after=timedelta())
