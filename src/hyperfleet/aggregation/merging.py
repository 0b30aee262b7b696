"""`summary` and `mirror` rules: conditions merged or copied as Cluster API does it.

The merging itself is `hyperfleet.conditions`; here adapters, node pools and the resource become its sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.policy import MirrorRule, SummaryOver, SummaryRule
from hyperfleet.aggregation.publication import Published
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.verdict import Verdict
from hyperfleet.conditions import Aggregation, Source, SummaryOptions, aggregate, mirror, summarize
from hyperfleet.conditions.source import NO_REASON_REPORTED
from hyperfleet.model.condition import FALSE, TRUE, Condition, find
from hyperfleet.model.kind import NODE_POOL

_TARGET: Final = "Summary"  # a name for the merge; the rule's own type replaces it
NOTHING_TO_SUMMARIZE: Final = "NothingToSummarize"


def judge_summary(rule: SummaryRule, situation: Situation, earlier: Sequence[Published]) -> Verdict:
    """Merge the conditions that the rule names; having none to merge is not an error."""
    if rule.over is None:
        view = situation.adapters.view(rule.adapter) if rule.adapter else None
        merged = summarize(_source_of(view) if view else _own_source(situation, earlier), _summary(rule))
        culprits = [view] if view else _culprits_of(rule, earlier, situation)
        return _verdict(merged, situation, culprits)
    sources = _sources(rule.over, situation)
    if not sources:
        empty = Condition(_TARGET, TRUE, NOTHING_TO_SUMMARIZE, f"There are no {_WORDS[rule.over]}")
        return _verdict(empty, situation, (), names_adapters=rule.over != "nodePools")
    aggregation = Aggregation(source_type=rule.types[0], target=_TARGET, negative=tuple(rule.negative))
    merged = aggregate(sources, aggregation)
    return _verdict(merged, situation, _blamed(rule, situation), names_adapters=rule.over != "nodePools")


def judge_mirror(rule: MirrorRule, situation: Situation) -> Verdict:
    """Copy one adapter's condition; a missing one is Unknown."""
    view = situation.adapters.view(rule.adapter)
    verdict = _verdict(mirror(_conditions_of(view), rule.type, target=_TARGET), situation, (view,))
    # An adapter may omit the reason; Kubernetes requires one.
    verdict.reason = verdict.reason or NO_REASON_REPORTED
    return verdict


_WORDS: Final = {
    "requiredAdapters": "required adapters",
    "optionalAdapters": "optional adapters that reported",
    "allAdapters": "adapters",
    "nodePools": "node pools",
}


def _summary(rule: SummaryRule) -> SummaryOptions:
    return SummaryOptions(
        target=_TARGET,
        types=rule.types,
        negative=tuple(rule.negative),
        ignore_if_missing=tuple(rule.ignore_if_missing),
    )


def _views(over: SummaryOver, situation: Situation) -> Sequence[AdapterView]:
    adapters = situation.adapters
    lists = {"requiredAdapters": adapters.required, "optionalAdapters": adapters.optional}
    return lists.get(over, adapters.all)


def _sources(over: SummaryOver, situation: Situation) -> list[Source]:
    if over == "nodePools":
        return [
            Source(kind=child.kind, name=child.name, conditions=child.conditions)
            for child in situation.children
            if child.kind == NODE_POOL.name
        ]
    return [_source_of(view) for view in _views(over, situation)]


def _source_of(view: AdapterView) -> Source:
    return Source(kind="Adapter", name=view.adapter, conditions=_conditions_of(view))


def _own_source(situation: Situation, earlier: Sequence[Published]) -> Source:
    """Return the resource's own conditions so far, as this aggregation publishes them."""
    conditions = tuple(published.condition for published in earlier)
    return Source(kind=situation.resource.kind, name=situation.resource.name, conditions=conditions)


def _conditions_of(view: AdapterView) -> tuple[Condition, ...]:
    return view.report.conditions if view.report else ()


def _blamed(rule: SummaryRule, situation: Situation) -> list[AdapterView]:
    """Return the adapters whose condition is not good; node pools are not adapters."""
    if rule.over is None or rule.over == "nodePools":
        return []
    good = FALSE if rule.negative else TRUE
    blamed = []
    for view in _views(rule.over, situation):
        condition = find(_conditions_of(view), rule.types[0])
        if condition is None or condition.status != good:
            blamed.append(view)
    return blamed


def _culprits_of(rule: SummaryRule, earlier: Sequence[Published], situation: Situation) -> Sequence[AdapterView]:
    """Return the culprits of the conditions that the rule summarizes."""
    summed = [published.verdict for published in earlier if published.verdict.type in rule.types]
    return situation.adapters.in_order(view for verdict in summed for view in verdict.culprits)


def _verdict(
    merged: Condition, situation: Situation, culprits: Sequence[AdapterView], *, names_adapters: bool = True
) -> Verdict:
    return Verdict(
        merged.type,
        merged.status,
        merged.reason,
        merged.message,
        situation.resource.generation,
        tuple(culprits),
        names_adapters,
    )
