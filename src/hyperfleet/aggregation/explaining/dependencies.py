"""What a condition depends on: which adapters, which of their conditions, and which part of each adapter.

`remedies` uses this to try only what can matter. A superfluous adapter costs time; a missing one would hide a remedy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from msgspec import Struct

from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.culprits import mentioned_lists
from hyperfleet.aggregation.explaining.projection import Projection, find_projection
from hyperfleet.aggregation.policy import ExprRule, MirrorRule, Rule, SummaryRule
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.vocabulary import ADAPTERS_BY_NAME
from hyperfleet.expr.nodes import ExprNode, Identifier, MemberAccess, String, walk
from hyperfleet.model.condition import FALSE, TRUE, ConditionStatus
from hyperfleet.model.report import REQUIRED_CONDITIONS


class Dependencies(Struct, frozen=True):
    """What one condition depends on."""

    adapters: tuple[str, ...] = ()  # each once
    named: frozenset[str] = frozenset()  # adapters that the rule names individually
    conditions: Mapping[str, ConditionStatus] = {}  # besides the required three: the good status
    projection: Projection | None = None  # None: no two adapters are interchangeable


def find_dependencies(type_: str, situation: Situation) -> Dependencies:
    """Return what a condition depends on, including the conditions that it summarizes."""
    rule = next((rule for rule in situation.policy.rules if rule.type == type_), None)
    if rule is None:
        return _of_built_in(type_, situation)
    match rule.by:
        case ExprRule(program=program):
            return _of_expression(rule, program.tree, situation)
        case MirrorRule(adapter=adapter, type=copied):
            return _of_one(adapter, {copied: TRUE})
        case SummaryRule(over=None, adapter=None, types=types):
            return _merged([find_dependencies(part, situation) for part in types])
        case SummaryRule() as summary:
            return _of_summary(summary, situation)


def _of_built_in(type_: str, situation: Situation) -> Dependencies:
    if type_ != READY:
        return Dependencies(situation.policy.required, projection=_project_for_available)
    if situation.resource.is_deleting:
        return Dependencies(projection=_project_nothing)
    return Dependencies(situation.policy.required, projection=_project_for_ready)


def _project_for_available(view: AdapterView) -> Hashable:
    return view.is_reported, view.available == TRUE, view.observed_generation


def _project_for_ready(view: AdapterView) -> Hashable:
    return view.available == TRUE and view.is_current and not view.is_stale


def _of_expression(rule: Rule, tree: ExprNode, situation: Situation) -> Dependencies:
    named, lists = rule.named_adapters, mentioned_lists(tree)
    adapters = [*named, *(name for group in lists for name in _members(group, situation))]
    if _takes_any_adapter(tree):
        adapters += _members("allAdapters", situation)
    in_order = tuple(dict.fromkeys(adapters))
    conditions: dict[str, ConditionStatus] = dict.fromkeys(_mentioned_conditions(tree), TRUE)
    return Dependencies(in_order, frozenset(named), _further(conditions), find_projection(tree))


def _members(group: str, situation: Situation) -> Iterable[str]:
    """Return who is in a list, or would be after a report."""
    policy = situation.policy
    known = {"requiredAdapters": policy.required, "optionalAdapters": policy.optional, "nodePools": ()}
    everybody = (*situation.by_name, *policy.optional, *policy.named_adapters)
    return known.get(group, everybody)


def _takes_any_adapter(tree: ExprNode) -> bool:
    """Tell whether an expression uses the map of all adapters otherwise than with a name written out."""
    nodes = list(walk(tree))
    named = [id(node.base) for node in nodes if isinstance(node, MemberAccess) and isinstance(node.key, String)]
    maps = [node for node in nodes if isinstance(node, Identifier) and node.name == ADAPTERS_BY_NAME]
    return any(id(node) not in named for node in maps)


def _mentioned_conditions(tree: ExprNode) -> list[str]:
    """List the types that stand in `….conditions["Type"]`."""
    return [
        node.key.value
        for node in walk(tree)
        if isinstance(node, MemberAccess)
        and isinstance(node.key, String)
        and isinstance(node.base, MemberAccess)
        and isinstance(node.base.key, String)
        and node.base.key.value == "conditions"
    ]


def _of_summary(rule: SummaryRule, situation: Situation) -> Dependencies:
    if rule.adapter is not None:
        return _of_one(rule.adapter, {t: FALSE if t in rule.negative else TRUE for t in rule.types})
    (type_,) = rule.types  # of many: merged as it is, a negative one into a negative one

    def project(view: AdapterView) -> Hashable:
        condition = view.report.condition(type_) if view.report else None
        return condition.status if condition else None

    members = dict.fromkeys(_members(rule.over or "allAdapters", situation))
    return Dependencies(tuple(members), frozenset(), _further({type_: TRUE}), project)


def _of_one(adapter: str, conditions: Mapping[str, ConditionStatus]) -> Dependencies:
    return Dependencies((adapter,), frozenset({adapter}), _further(conditions), _project_nothing)


def _project_nothing(view: AdapterView) -> Hashable:
    """Project to nothing: the condition depends only on adapters that it names."""
    return None


def _further(conditions: Mapping[str, ConditionStatus]) -> Mapping[str, ConditionStatus]:
    """Leave out the conditions that every report has: they follow from the adapter's state."""
    return {type_: status for type_, status in conditions.items() if type_ not in REQUIRED_CONDITIONS}


def _merged(parts: list[Dependencies]) -> Dependencies:
    projections = [part.projection for part in parts if part.projection is not None]
    return Dependencies(
        tuple(dict.fromkeys(name for part in parts for name in part.adapters)),
        frozenset().union(*(part.named for part in parts)),
        {type_: status for part in parts for type_, status in part.conditions.items()},
        (lambda view: tuple(project(view) for project in projections)) if len(projections) == len(parts) else None,
    )
