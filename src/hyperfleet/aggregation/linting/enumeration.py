"""Evaluate a policy on every combination of adapter states, or on a sample if there are too many.

Used by `lint`, which looks for combinations that a rule gets wrong, and by `diagram`. Only rules that a phase requires
count. Adapters that no such rule names are interchangeable, so only their number in each state matters. A sample has
uniform combinations and those with few deviating adapters: it proves what is possible, never what is impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations_with_replacement, islice, product
from math import comb, prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.hypothetical import imagine_report
from hyperfleet.aggregation.linting.footprint import Footprint, add_guards, footprint_of
from hyperfleet.aggregation.linting.sandbox import (
    GENERATION,
    NOW,
    WORK,
    Group,
    TrialCost,
    evaluate,
    evaluate_later,
    group_adapters,
    restrict,
    work_of,
)
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import ConditionStatus
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import StoredReport
from hyperfleet.model.status import ADAPTER_STATES, AdapterState, Status

# The states of each group, sorted: interchangeable adapters have no order.
Combination = tuple[tuple[AdapterState, ...], ...]

TIMES_OUT: Final = "times out"
GOES_STALE: Final = "goes stale"
_MAX_CHANGES: Final = 3  # deviating adapters in a sample


class Result(Struct, frozen=True):
    """The outcome of one combination, and the phases that follow by time alone, by cause."""

    states: Mapping[str, AdapterState]
    phase: Phase
    conditions: Mapping[str, ConditionStatus]
    later: Mapping[str, Phase]


class Enumeration(Struct, frozen=True):
    """The combinations that were tried, each with its outcome."""

    groups: tuple[Group, ...]
    results: Mapping[Combination, Result]
    total: int  # how many combinations there are
    is_closed: bool  # the rules depend on adapter states only

    @property
    def is_complete(self) -> bool:
        """Tell whether every combination was tried."""
        return self.is_closed and len(self.results) == self.total


def enumerate_states(policy: Policy) -> Enumeration:
    """Evaluate a policy on combinations of adapter states, for about half a second."""
    wanted = [condition for rule in policy.phases.values() for condition in rule.required_conditions]
    footprint = add_guards(footprint_of(policy, wanted))
    groups = group_adapters(policy, footprint)
    trier = _Trier(policy, footprint, groups)
    total = prod(comb(len(group) + len(ADAPTER_STATES) - 1, len(group)) for group in groups)
    most = WORK // work_of(footprint, groups)
    combinations_ = _all(groups) if total <= most else islice(_sample(groups), most)
    results = {}
    for combination in combinations_:
        if trier.cost.work > WORK:
            break  # expensive rules: what was tried is a sample
        results[combination] = trier.try_out(combination)
    return Enumeration(groups, results, total, footprint.is_closed)


def _all(groups: tuple[Group, ...]) -> Iterator[Combination]:
    return product(*(combinations_with_replacement(ADAPTER_STATES, len(group)) for group in groups))


def _sample(groups: tuple[Group, ...]) -> Iterator[Combination]:
    """Yield combinations, each once, the most informative first: uniform, one deviating, counts, two, three."""
    ordered = chain(
        _changed(groups, 0),
        _changed(groups, 1),
        _counts(groups),
        *(_changed(groups, changes) for changes in range(2, _MAX_CHANGES + 1)),
    )
    seen: set[Combination] = set()
    for combination in ordered:
        if combination not in seen:
            seen.add(combination)
            yield combination


def _changed(groups: tuple[Group, ...], changes: int) -> Iterator[Combination]:
    """Yield combinations in which some adapters deviate from a common state."""
    for places in combinations_with_replacement(range(len(groups)), changes):
        if all(places.count(place) <= len(groups[place]) for place in places):
            for base, *states in product(ADAPTER_STATES, repeat=changes + 1):
                yield _deviate(groups, base, tuple(zip(places, states, strict=True)))


def _counts(groups: tuple[Group, ...]) -> Iterator[Combination]:
    """Yield combinations in which any number of interchangeable adapters deviate."""
    for place, group in enumerate(groups):
        for base, other in product(ADAPTER_STATES, repeat=2):
            for count in range(2, len(group)):
                yield _deviate(groups, base, ((place, other),) * count)


def _deviate(
    groups: tuple[Group, ...], base: AdapterState, changes: tuple[tuple[int, AdapterState], ...]
) -> Combination:
    """Put all adapters into one state except those given by the index of their group."""
    by_place: dict[int, tuple[AdapterState, ...]] = {}
    for place, state in changes:
        by_place[place] = (*by_place.get(place, ()), state)
    different = [by_place.get(place, ()) for place in range(len(groups))]
    return tuple(
        sort_states(states + (base,) * (len(group) - len(states)))
        for group, states in zip(groups, different, strict=True)
    )


def sort_states(states: tuple[AdapterState, ...]) -> tuple[AdapterState, ...]:
    """Sort the states of a group as in a combination."""
    return tuple(sorted(states, key=ADAPTER_STATES.index))


class _Trier:
    """Evaluates combinations on one policy."""

    def __init__(self, policy: Policy, footprint: Footprint, groups: tuple[Group, ...]) -> None:
        self.cost = TrialCost()
        self._groups = groups
        self._policy = restrict(policy, footprint, groups)
        # Each timeout on its own, without other effects of time.
        self._waits = [
            (cause, wait, replace(self._policy, **{setting: wait}))
            for cause, setting, wait in (
                (TIMES_OUT, "missing_after", policy.missing_after),
                (GOES_STALE, "stale_after", policy.stale_after),
            )
            if wait is not None
        ]
        self._waited: set[tuple[Phase, frozenset[AdapterState]]] = set()
        names = [name for group in groups for name in group]
        self._imagined = {
            (name, state): imagine_report(name, state, GENERATION, policy, NOW)
            for name, state in product(names, ADAPTER_STATES)
        }

    def try_out(self, combination: Combination) -> Result:
        """Evaluate the policy on one combination, and on silence after it."""
        states = {
            name: state
            for group, chosen in zip(self._groups, combination, strict=True)
            for name, state in zip(group, chosen, strict=True)
        }
        reports = {name: self._imagined[name, state] for name, state in states.items()}
        status = evaluate(self._policy, reports, self.cost)
        conditions = {condition.type: condition.status for condition in status.conditions}
        return Result(states, status.phase, conditions, self._wait(states, reports, status))

    def _wait(
        self, states: Mapping[str, AdapterState], reports: Mapping[str, StoredReport | None], before: Status
    ) -> dict[str, Phase]:
        """Return the phases that silence leads to; once for each phase and mix of required states, which is enough."""
        mix = before.phase, frozenset(states[name] for name in self._policy.required)
        if mix in self._waited:
            return {}
        self._waited.add(mix)
        return {
            cause: evaluate_later(policy, reports, before, wait, self.cost).phase for cause, wait, policy in self._waits
        }
