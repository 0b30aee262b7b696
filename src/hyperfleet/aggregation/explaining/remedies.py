"""Find remedies: the smallest sets of adapter reports that would give a condition the wanted status.

They are found by trial: each set is judged exactly as real reports are. Sets are tried from small to large, and no set
is tried that contains a remedy, so the results are minimal. Adapters with equal projections are interchangeable
(`projection`): of fifty that have not reported, one set of each size is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, islice, product
from typing import Final, TypeAlias

from msgspec import Struct

from hyperfleet.aggregation.explaining.dependencies import find_dependencies
from hyperfleet.aggregation.explaining.trials import Effect, Remedy, Trials
from hyperfleet.aggregation.situation import Situation
from hyperfleet.expr import STEPS, Budget, open_budget
from hyperfleet.model.condition import FALSE, TRUE, Condition, ConditionStatus
from hyperfleet.model.report import StoredReport
from hyperfleet.model.status import AdapterState

# For each of the two or three searches. A trial of an expression takes 20 to 70 microseconds for 4 to 50 adapters.
_MAX_DRAFTS: Final = 800
_MAX_STEPS: Final = 20 * STEPS  # for all trials of one explanation: trials of common rules cost next to nothing
_MAX_SETS: Final = 10
_MAX_MIXTURES: Final = 8  # of the statuses of further conditions: three conditions, each True or False

# What an adapter could report next: success first, then anything.
_SUCCESS: Final[tuple[AdapterState, ...]] = ("Completed",)
_ANYTHING: Final[tuple[AdapterState, ...]] = ("Completed", "Running", "Pending", "Failed", "Unhealthy")


class RemedySet(Struct, frozen=True):
    """The remedies found. One empty set: no change is needed."""

    wanted: ConditionStatus
    sets: tuple[Remedy, ...] = ()
    is_exhaustive: bool = True  # False: the search was cut short, there may be other sets
    is_minimal: bool = True  # False: a part of a set may suffice; there were too many parts to try them all


class InterchangeableAdapters(Struct, frozen=True):
    """Interchangeable adapters, and what each of them could report."""

    adapters: tuple[str, ...]
    effects: tuple[Effect, ...]


# A report by some adapter of a group. A draft of a remedy has how many of each group report, not which ones.
Pick: TypeAlias = tuple[int, Effect]
Draft: TypeAlias = tuple[Pick, ...]


def open_trial_budget() -> Budget:
    """Return what all trials of one explanation may cost."""
    return open_budget(steps=_MAX_STEPS)


def find_remedies(
    situation: Situation,
    reports: Mapping[str, StoredReport],
    type_: str,
    wanted: ConditionStatus = TRUE,
    budget: Budget | None = None,
) -> RemedySet:
    """Return minimal sets of reports that give a condition the wanted status, before any damping.

    A set names the states of adapters and the further conditions that the rule mentions; states other than Completed
    only where that does not help. No sets: no such reports help (the rule depends on something else, such as `data`),
    or not all could be tried: trials of an expensive rule use up the `budget` first.
    """
    account = open_trial_budget() if budget is None else budget
    trials = Trials(situation, reports, type_, wanted, find_dependencies(type_, situation), account)
    if trials.helps(()):
        return RemedySet(wanted, ((),))
    is_exhaustive = True
    for effects, is_all in _stages(trials.depends.conditions, wanted):
        found = _Search(trials, _group(trials, effects)).run()
        if found.sets:
            return found
        is_exhaustive = found.is_exhaustive and is_all
    return RemedySet(wanted, (), is_exhaustive)


def _stages(good: Mapping[str, ConditionStatus], wanted: ConditionStatus) -> Iterator[tuple[Sequence[Effect], bool]]:
    """Yield effects to try, the most desirable first, and whether these are all there are."""
    preferred = {type_: _opposite(status) if wanted == FALSE else status for type_, status in good.items()}
    choices = [[Condition(type_, status), Condition(type_, _opposite(status))] for type_, status in preferred.items()]
    mixtures = list(islice(product(*choices), _MAX_MIXTURES))
    yield _effects(_SUCCESS, mixtures[:1]), False
    if len(mixtures) > 1:
        yield _effects(_SUCCESS, mixtures), False
    yield _effects(_ANYTHING, mixtures), 2 ** len(choices) == len(mixtures)


def _effects(states: Iterable[AdapterState], mixtures: Iterable[tuple[Condition, ...]]) -> Sequence[Effect]:
    return list(product(states, mixtures))


def _opposite(status: ConditionStatus) -> ConditionStatus:
    return FALSE if status == TRUE else TRUE


def _group(trials: Trials, effects: Sequence[Effect]) -> Sequence[InterchangeableAdapters]:
    """Group interchangeable adapters; leave out effects that do not change their projection."""
    groups: dict[object, InterchangeableAdapters] = {}
    for name in trials.depends.adapters:
        key = trials.current_projection(name)
        if key in groups:
            groups[key] = InterchangeableAdapters((*groups[key].adapters, name), groups[key].effects)
            continue
        by_projection = {trials.projection_after(trials.change(name, effect)): effect for effect in reversed(effects)}
        by_projection.pop(key, None)
        groups[key] = InterchangeableAdapters(
            (name,), tuple(effect for effect in effects if effect in by_projection.values())
        )
    return [group for group in groups.values() if group.effects]


class _Search:
    """Tries drafts from small to large."""

    def __init__(self, trials: Trials, groups: Sequence[InterchangeableAdapters]) -> None:
        self._trials = trials
        self._groups = groups
        sizes = [len(group.adapters) for group in groups]
        self._room = [sum(sizes[place:]) for place in range(len(sizes) + 1)]  # adapters from a place on

    def run(self) -> RemedySet:
        found: list[Counter[Pick]] = []
        sets: list[Remedy] = []
        wanted = self._trials.wanted
        for number, draft in enumerate(self._drafts()):
            if number == _MAX_DRAFTS or self._trials.is_exhausted:
                return RemedySet(wanted, tuple(sets), False) if sets else self._shrink(len(draft))
            counted = Counter(draft)
            if not any(smaller <= counted for smaller in found) and self._trials.helps(*self._remedies(draft, 1)):
                found.append(counted)
                sets += self._remedies(draft, _MAX_SETS + 1 - len(sets))
                if len(sets) > _MAX_SETS:
                    return RemedySet(wanted, tuple(sets[:_MAX_SETS]), False)
        return RemedySet(wanted, tuple(sets))

    def _drafts(self) -> Iterator[Draft]:
        for size in range(1, self._room[0] + 1):
            yield from self._drafts_of(size, 0)

    def _drafts_of(self, size: int, start: int) -> Iterator[Draft]:
        """Yield the drafts of a size from the groups at `start` and after."""
        if size == 0:
            yield ()
        for place in range(start, len(self._groups)):
            group, room = self._groups[place], self._room[place + 1]
            for taken in range(min(size, len(group.adapters)), max(size - room, 1) - 1, -1):
                for effects in combinations_with_replacement(group.effects, taken):
                    for others in self._drafts_of(size - taken, place + 1):
                        yield (*((place, effect) for effect in effects), *others)

    def _remedies(self, draft: Draft, most: int) -> Iterator[Remedy]:
        """Yield the sets of a draft, at most `most`: every way to choose which adapter reports what."""
        chosen: dict[int, Counter[Effect]] = {}
        for place, effect in draft:
            chosen.setdefault(place, Counter())[effect] += 1
        ways = [
            list(islice(self._ways(self._groups[place].adapters, list(effects.items())), most))
            for place, effects in chosen.items()
        ]
        for parts in islice(product(*ways), most):
            yield tuple(change for part in parts for change in part)

    def _ways(self, adapters: Sequence[str], effects: Sequence[tuple[Effect, int]]) -> Iterator[Remedy]:
        if not effects:
            yield ()
            return
        (effect, count), *rest = effects
        for names in combinations(adapters, count):
            for others in self._ways([name for name in adapters if name not in names], rest):
                yield (*(self._trials.change(name, effect) for name in names), *others)

    def _shrink(self, untried: int) -> RemedySet:
        """Try all adapters at once, where there are too many to search; then leave out those that are not needed.

        The result is minimal only if every smaller set was tried; sets of the size `untried` were not.
        """
        remedy = tuple(self._trials.change(name, group.effects[0]) for group in self._groups for name in group.adapters)
        if not self._trials.helps(remedy):
            return RemedySet(self._trials.wanted, (), False)
        for change in remedy:
            smaller = tuple(other for other in remedy if other is not change)
            if self._trials.helps(smaller):
                remedy = smaller
        return RemedySet(self._trials.wanted, (remedy,), False, len(remedy) <= untried)
