"""What would help? The smallest sets of adapter reports that would give a condition the status one wants.

Found by trying: each set is judged exactly as real reports are. Sets are tried from small to large and no set is
tried that contains one that already helps, so what is found is minimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.aggregate import judge
from hyperfleet.aggregation.culprits import mentioned_lists
from hyperfleet.aggregation.hypothetical import imagine_change
from hyperfleet.aggregation.policy import ExprRule, Rule, SummaryRule
from hyperfleet.aggregation.situation import Situation, read_situation
from hyperfleet.model.condition import TRUE, ConditionStatus
from hyperfleet.model.report import StoredReport
from hyperfleet.model.status import AdapterState

# A trial takes some tens of microseconds: a search ends within a few hundredths of a second.
_MOST_TRIALS: Final = 600
_MOST_REMEDIES: Final = 10

# What an adapter could report next: first what people hope for, then anything.
_HOPED_FOR: Final[tuple[AdapterState, ...]] = ("Completed",)
_ANYTHING: Final[tuple[AdapterState, ...]] = ("Completed", "Running", "Pending", "Failed", "Unhealthy")


class Change(Struct, frozen=True):
    """One adapter reporting one state for the current generation."""

    adapter: str
    state: AdapterState
    generation: int

    def __str__(self) -> str:
        """Say it as people would."""
        return f"{self.adapter} {_SPOKEN[self.state]} at generation {self.generation}"


_SPOKEN: Final[Mapping[AdapterState, str]] = {
    "Completed": "Available=True",
    "Running": "Available=False and in progress",
    "Pending": "Available=False and waiting",
    "Failed": "Available=False and failed",
    "Unhealthy": "Health=False",
}

Remedy = tuple[Change, ...]
Choices = Mapping[str, Sequence[Change]]


def find_remedies(
    situation: Situation,
    reports: Mapping[str, StoredReport],
    type_: str,
    wanted: ConditionStatus = TRUE,
) -> tuple[Remedy, ...]:
    """Return minimal sets of reports that give a condition the wanted status.

    One empty set: it already has it. None at all: no combination of adapter states brings it about (it depends on
    something else, such as `data`), or the search became too large.
    """
    trial = _Trial(situation, reports, type_, wanted)
    if trial.helps(()):
        return ((),)
    hoped_for = trial.choices(_HOPED_FOR)
    return _search(trial, hoped_for) or _shrink(trial, hoped_for) or _search(trial, trial.choices(_ANYTHING))


def _search(trial: _Trial, choices: Choices) -> tuple[Remedy, ...]:
    """Try small sets before large ones, and none that contains one that helps."""
    found: list[Remedy] = []
    for remedy in islice(_candidates(choices), _MOST_TRIALS):
        if not any(set(smaller) <= set(remedy) for smaller in found) and trial.helps(remedy):
            found.append(remedy)
            if len(found) == _MOST_REMEDIES:
                break
    return tuple(found)


def _candidates(choices: Choices) -> Iterator[Remedy]:
    for size in range(1, len(choices) + 1):
        for chosen in combinations(choices, size):
            yield from product(*(choices[name] for name in chosen))


def _shrink(trial: _Trial, choices: Choices) -> tuple[Remedy, ...]:
    """Try everybody at once, where there are too many to search; then leave out whoever is not needed."""
    remedy = tuple(changes[0] for changes in choices.values())
    if not remedy or not trial.helps(remedy):
        return ()
    for change in remedy:
        smaller = tuple(other for other in remedy if other is not change)
        if trial.helps(smaller):
            remedy = smaller
    return (remedy,)


class _Trial:
    """Judges one condition as it would be after some changes."""

    def __init__(
        self, situation: Situation, reports: Mapping[str, StoredReport], type_: str, wanted: ConditionStatus
    ) -> None:
        self._situation = situation
        self._reports = reports
        self._type = type_
        self._wanted = wanted
        self._rule = next((rule for rule in situation.policy.rules if rule.type == type_), None)

    def choices(self, states: Sequence[AdapterState]) -> Choices:
        """Return what each adapter that has a say could report that would change anything."""
        generation = self._situation.resource.generation
        choices = {}
        for name in self._voters():
            view = self._situation.view(name)
            possible = [Change(name, state, generation) for state in states if state != view.state or view.is_stale]
            if possible:
                choices[name] = possible
        return choices

    def _voters(self) -> Iterable[str]:
        """Return the adapters that the condition depends on."""
        situation, policy = self._situation, self._situation.policy
        if self._rule is None:
            return policy.required
        everybody = dict.fromkeys((*situation.by_name, *policy.optional, *policy.named_adapters))
        if isinstance(self._rule.by, ExprRule) and not mentioned_lists(self._rule.by.program.tree):
            return self._rule.named_adapters or everybody
        return everybody

    def helps(self, remedy: Remedy) -> bool:
        """Tell whether the condition would have the wanted status."""
        before = self._situation
        reports = dict(self._reports)
        for change in remedy:
            imagined = imagine_change(
                reports.get(change.adapter),
                change.adapter,
                change.state,
                change.generation,
                before.policy,
                before.now,
            )
            if imagined is not None:
                reports[change.adapter] = imagined
        policy = before.policy if self._rule is None else replace(before.policy, rules=self._needed_rules())
        after = read_situation(before.resource, reports, policy, before.previous, before.now, before.children)
        return any(verdict.type == self._type and verdict.status == self._wanted for verdict in judge(after))

    def _needed_rules(self) -> tuple[Rule, ...]:
        """Return the rules to judge: a summary may look at those before it, any other rule at none."""
        rule, rules = self._rule, self._situation.policy.rules
        if rule is None or not isinstance(rule.by, SummaryRule):
            return (rule,) if rule else ()
        return rules[: rules.index(rule) + 1]
