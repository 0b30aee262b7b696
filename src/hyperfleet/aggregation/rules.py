"""Evaluating the rules of a policy: one verdict for each, in policy order, after the built-in ones.

A rule that fails at run time makes its own condition Unknown and harms nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hyperfleet.aggregation.adapters import AWAITED_STATES
from hyperfleet.aggregation.merging import judge_mirror, judge_summary
from hyperfleet.aggregation.policy import ExprRule, MirrorRule, Rule, SummaryRule
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.template_values import render
from hyperfleet.aggregation.templates import Template
from hyperfleet.aggregation.verdict import Culprits, Verdict
from hyperfleet.errors import ExprRuntimeError
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN

EXPRESSION_ERROR: Final = "ExpressionError"
IN_PROGRESS: Final = "InProgress"


def judge_rules(situation: Situation, built_in: Sequence[Verdict]) -> list[Verdict]:
    """Evaluate every rule; a `summary` of the resource's own conditions sees those before it."""
    verdicts = list(built_in)
    for rule in situation.policy.rules:
        by = rule.by
        if isinstance(by, ExprRule):
            verdicts.append(_judge_expression(rule, by, situation))
        else:
            verdicts.append(_judge_merged(rule, by, situation, verdicts))
    return verdicts


def _judge_merged(
    rule: Rule, by: SummaryRule | MirrorRule, situation: Situation, earlier: Sequence[Verdict]
) -> Verdict:
    templates = rule.templates
    verdict = judge_summary(by, situation, earlier) if isinstance(by, SummaryRule) else judge_mirror(by, situation)
    verdict.type = rule.type
    template = {TRUE: templates.true, FALSE: templates.false, UNKNOWN: templates.unknown}[verdict.status]
    if verdict.status == FALSE and templates.in_progress and _is_in_progress(verdict.culprits):
        template = templates.in_progress
    return _word(verdict, template, situation) if template else verdict


def _judge_expression(rule: Rule, by: ExprRule, situation: Situation) -> Verdict:
    generation, templates, finder = situation.resource.generation, rule.templates, by.culprits
    try:
        outcome = by.program.evaluate(situation.values)
    except ExprRuntimeError as error:
        verdict = Verdict(rule.type, UNKNOWN, EXPRESSION_ERROR, str(error), generation)
        return _word(verdict, templates.unknown, situation) if templates.unknown else verdict
    if outcome:
        verdict = Verdict(rule.type, TRUE, "", "", generation, None, finder.names_adapters, finder, situation)
        return _word(verdict, templates.true or Template(rule.type), situation)
    blamed = finder.find(situation, False)
    verdict = Verdict(rule.type, FALSE, "", "", generation, blamed, finder.names_adapters)
    return _word(verdict, _template_for_false(rule, blamed), situation)


def _template_for_false(rule: Rule, culprits: Culprits) -> Template:
    if _is_in_progress(culprits):
        return rule.templates.in_progress or _IN_PROGRESS
    return rule.templates.false or Template(f"Not{rule.type}", "Because of %s", ("FailedAdapterNames",))


def _is_in_progress(culprits: Culprits) -> bool:
    """Tell «not yet» from «no»: somebody who has yet to say how it went is not to blame."""
    for view in culprits:
        if view.state not in AWAITED_STATES:
            return False
    return bool(culprits)


_IN_PROGRESS: Final = Template(IN_PROGRESS, "Waiting for %s", ("AwaitedAdapterNames",))


def _word(verdict: Verdict, template: Template, situation: Situation) -> Verdict:
    """Give a verdict the reason and message of a template; what it said so far is `Summary` and `Error` to it."""
    verdict.reason = template.reason
    verdict.message = render(template, situation, verdict)
    return verdict
