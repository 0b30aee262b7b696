"""Decide whether a status is impossible, by trying every report that some conditions can distinguish.

`lint` uses this before it reports "never". Unlike `enumeration`, which knows seven states of an adapter, this tries
every mix of statuses, generation and kind of reason, but only for the adapters and fields that the conditions read. If
they read more, or there is too much to try, the result is "not known to be impossible".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod
from typing import Final

from msgspec.structs import replace

from hyperfleet.aggregation.adapters import AdapterView, entry_of
from hyperfleet.aggregation.linting.footprint import Footprint
from hyperfleet.aggregation.linting.sandbox import (
    GENERATION,
    NOW,
    RESOURCE,
    WORK,
    Group,
    TrialCost,
    evaluate,
    group_adapters,
    restrict,
    work_of,
)
from hyperfleet.aggregation.observation import observe
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH, Report, StoredReport
from hyperfleet.model.status import Status

_VERDICTS: Final[tuple[ConditionStatus, ...]] = (TRUE, FALSE)  # Unknown counts as not reported
_STATUSES: Final[tuple[ConditionStatus, ...]] = (*_VERDICTS, UNKNOWN)
_NAME: Final = "adapter"  # a placeholder: reports are assigned to any adapter
Variant = StoredReport | None


class Possibilities:
    """Answers questions about one policy within a fixed budget of work."""

    def __init__(self, policy: Policy) -> None:
        """Start with the full budget."""
        self._policy = policy
        self._work_left = WORK // 2  # the other half of the second is for `enumeration`

    def is_impossible(self, footprint: Footprint, test: Callable[[Status], bool]) -> bool:
        """Tell whether no status that this footprint can produce passes a test; False if that is not certain."""
        groups = group_adapters(self._policy, footprint)
        variants = _variants(self._policy, footprint.fields)
        work = work_of(footprint, groups)
        if not _is_conclusive(footprint) or _count(groups, len(variants), footprint) * work > self._work_left:
            return False
        policy, cost = restrict(self._policy, footprint, groups), TrialCost()
        for reports in _combine(groups, variants, footprint):
            self._work_left -= work
            if cost.work > self._work_left or test(evaluate(policy, reports, cost)):
                return False  # too expensive to try them all, or possible
        self._work_left -= cost.work
        return True


def _is_conclusive(footprint: Footprint) -> bool:
    """Tell whether trials can decide; `allAdapters` may contain any number of unlisted adapters."""
    return footprint.is_closed and "allAdapters" not in footprint.lists


def _count(groups: Sequence[Group], variants: int, footprint: Footprint) -> int:
    if footprint.counts:
        return prod(comb(len(group) + variants - 1, len(group)) for group in groups)
    return prod(sum(comb(variants, size) for size in range(1, len(group) + 1)) for group in groups)


def _combine(
    groups: Sequence[Group], variants: Sequence[Variant], footprint: Footprint
) -> Iterator[dict[str, Variant]]:
    choose = _multisets if footprint.counts else _sets
    for choice in product(*(choose(variants, len(group)) for group in groups)):
        yield {
            name: variant
            for group, chosen in zip(groups, choice, strict=True)
            for name, variant in zip(group, chosen, strict=True)
        }


def _multisets(variants: Sequence[Variant], size: int) -> Iterable[tuple[Variant, ...]]:
    return combinations_with_replacement(variants, size)


def _sets(variants: Sequence[Variant], size: int) -> Iterator[tuple[Variant, ...]]:
    """Choose which variants occur; their number does not matter, so the first one fills the rest."""
    for different in range(1, min(size, len(variants)) + 1):
        for chosen in combinations(variants, different):
            yield chosen + (chosen[0],) * (size - different)


def _variants(policy: Policy, fields: frozenset[str]) -> list[Variant]:
    """Return the reports of an adapter that conditions reading these fields can distinguish."""
    timeless = replace(policy, required=(_NAME,), stale_after=None)
    found: dict[tuple[object, ...], Variant] = {}
    for variant in (None, *_reports(policy)):
        (view,) = observe(RESOURCE, {_NAME: variant} if variant else {}, timeless, NOW).required
        found.setdefault(_project(view, fields), variant)
    return list(found.values())


def _project(view: AdapterView, fields: frozenset[str]) -> tuple[object, ...]:
    entry = entry_of(view, with_conditions=False)
    return tuple(entry[field] for field in sorted(fields))


def _reports(policy: Policy) -> Iterator[StoredReport]:
    """Make a report of every kind: with each status, at both generations, and with each kind of reason."""
    reasons = ["", "Other", *(min(known) for known in (policy.waiting_reasons, policy.in_progress_reasons) if known)]
    kinds = product(_VERDICTS, _STATUSES, _STATUSES, (GENERATION, GENERATION - 1), reasons)
    for available, applied, health, generation, reason in kinds:
        conditions = (Condition(AVAILABLE, available, reason), Condition(APPLIED, applied), Condition(HEALTH, health))
        yield StoredReport(Report(_NAME, generation, conditions, NOW), NOW, NOW)
