"""Whether something can ever be: every report that adapters could send, as far as some conditions can tell them apart.

`lint` asks here before it says «never». Unlike `enumeration`, which knows seven states of an adapter, this tries every
mix of statuses, generation and kind of reason, but only of the adapters and fields that the conditions look at. Where
they look at more, or there is too much to try, there is no answer.
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

_VERDICTS: Final[tuple[ConditionStatus, ...]] = (TRUE, FALSE)  # who says Unknown has not reported
_STATUSES: Final[tuple[ConditionStatus, ...]] = (*_VERDICTS, UNKNOWN)
_NAME: Final = "adapter"  # any will do: a report is given to whoever takes part
Variant = StoredReport | None


class Possibilities:
    """Answers questions about one policy; all answers together take no more than a fixed amount of work."""

    def __init__(self, policy: Policy) -> None:
        """Ask about `policy`."""
        self._policy = policy
        self._work_left = WORK // 2  # the other half of the second is for `enumeration`

    def is_impossible(self, footprint: Footprint, test: Callable[[Status], bool]) -> bool:
        """Tell whether no status that conditions with this footprint can bring about passes a test; if sure."""
        groups = group_adapters(self._policy, footprint)
        variants = _variants(self._policy, footprint.fields)
        work = work_of(footprint, groups)
        if not _is_conclusive(footprint) or _count(groups, len(variants), footprint) * work > self._work_left:
            return False
        policy = restrict(self._policy, footprint, groups)
        for reports in _combine(groups, variants, footprint):
            self._work_left -= work
            if test(evaluate(policy, reports)):
                return False
        return True


def _is_conclusive(footprint: Footprint) -> bool:
    """Tell whether trying can settle it; among all adapters may be any number that the policy does not list."""
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
    """Choose which variants there are; how often each does not matter, so the first fills the places left."""
    for different in range(1, min(size, len(variants)) + 1):
        for chosen in combinations(variants, different):
            yield chosen + (chosen[0],) * (size - different)


def _variants(policy: Policy, fields: frozenset[str]) -> list[Variant]:
    """Return what an adapter can report, one for each way it looks to conditions that read these fields."""
    timeless = replace(policy, required=(_NAME,), stale_after=None)
    found: dict[tuple[object, ...], Variant] = {}
    for variant in (None, *_reports(policy)):
        (view,) = observe(RESOURCE, {_NAME: variant} if variant else {}, timeless, NOW).required
        found.setdefault(_look(view, fields), variant)
    return list(found.values())


def _look(view: AdapterView, fields: frozenset[str]) -> tuple[object, ...]:
    entry = entry_of(view, with_conditions=False)
    return tuple(entry[field] for field in sorted(fields))


def _reports(policy: Policy) -> Iterator[StoredReport]:
    """Make a report of every kind: with each status, at both generations, and with each kind of reason."""
    reasons = ["", "Other", *(min(known) for known in (policy.waiting_reasons, policy.in_progress_reasons) if known)]
    kinds = product(_VERDICTS, _STATUSES, _STATUSES, (GENERATION, GENERATION - 1), reasons)
    for available, applied, health, generation, reason in kinds:
        conditions = (Condition(AVAILABLE, available, reason), Condition(APPLIED, applied), Condition(HEALTH, health))
        yield StoredReport(Report(_NAME, generation, conditions, NOW), NOW, NOW)
