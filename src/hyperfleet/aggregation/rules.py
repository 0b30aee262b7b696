"""Evaluate the rules of a policy: one verdict for each, in policy order, published at once.

A rule that fails at run time makes its own condition Unknown and affects nothing else. All rules pay for their
work from one budget (`Situation.budget`), in policy order.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.aggregation.adapters import AWAITED_STATES
from hyperfleet.aggregation.merging import judge_mirror, judge_summary
from hyperfleet.aggregation.policy import ExprRule, Rule, SummaryRule
from hyperfleet.aggregation.publication import Publisher
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.template_values import render
from hyperfleet.aggregation.templates import Template, default_reason
from hyperfleet.aggregation.verdict import Culprits, Verdict
from hyperfleet.errors import ExprBudgetError, ExprRuntimeError
from hyperfleet.expr import STEPS, steps_left
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN

EXPRESSION_ERROR: Final = "ExpressionError"
IN_PROGRESS: Final = "InProgress"
_SHARED_BUDGET: Final = f"The rules of a policy share {STEPS:,} steps; those before this one used {{used:,}}."


def judge_rules(situation: Situation, publisher: Publisher) -> None:
    """Evaluate and publish every rule; a `summary` of the resource's own conditions sees those before it."""
    for rule in situation.policy.rules:
        by = rule.by
        if isinstance(by, ExprRule):
            verdict = _judge_expression(rule, by, situation)
        elif isinstance(by, SummaryRule):
            verdict = _with_template(judge_summary(by, situation, publisher.published), rule, situation)
        else:
            verdict = _with_template(judge_mirror(by, situation), rule, situation)
        publisher.publish(verdict, rule)


def _with_template(verdict: Verdict, rule: Rule, situation: Situation) -> Verdict:
    """Give a merged or copied verdict its type and, if there is a template for it, reason and message."""
    templates = rule.templates
    verdict.type = rule.type
    template = {TRUE: templates.true, FALSE: templates.false, UNKNOWN: templates.unknown}[verdict.status]
    if verdict.status == FALSE and templates.in_progress and _is_in_progress(rule, verdict.culprits):
        template = templates.in_progress
    return _apply(verdict, template, situation) if template else verdict


def _judge_expression(rule: Rule, by: ExprRule, situation: Situation) -> Verdict:
    generation, templates, finder = situation.resource.generation, rule.templates, by.culprits
    used = STEPS - steps_left(situation.budget)
    try:
        outcome = by.program.evaluate(situation.values, situation.budget)
    except ExprRuntimeError as error:
        shared = isinstance(error, ExprBudgetError) and used > 0
        message = f"{error}\n{_SHARED_BUDGET.format(used=used)}" if shared else str(error)
        verdict = Verdict(rule.type, UNKNOWN, EXPRESSION_ERROR, message, generation)
        return _apply(verdict, templates.unknown, situation) if templates.unknown else verdict
    if outcome:
        verdict = Verdict(rule.type, TRUE, "", "", generation, None, finder.names_adapters, finder, situation)
        return _apply(verdict, templates.true or _default_template(rule, verdict), situation)
    blamed = finder.find(situation.adapters, situation.values, False, situation.budget)
    verdict = Verdict(rule.type, FALSE, "", "", generation, blamed, finder.names_adapters)
    if _is_in_progress(rule, blamed):
        return _apply(verdict, templates.in_progress or _IN_PROGRESS, situation)
    return _apply(verdict, templates.false or _default_template(rule, verdict), situation)


def _default_template(rule: Rule, verdict: Verdict) -> Template:
    """Make a template from the type of a rule without templates, with the culprits if it is not good."""
    reason = default_reason(rule.type)
    reason = reason if verdict.status == TRUE else f"Not{reason}"
    if rule.is_good(verdict.status) or not verdict.culprits:
        return Template(reason)
    return Template(reason, "Because of %s", ("FailedAdapterNames",))


def _is_in_progress(rule: Rule, culprits: Culprits) -> bool:
    """Tell "not yet" from "no": all culprits are still working or have not reported.

    Only for a rule that is good when True: of any other, False is the good result, and nothing is awaited.
    """
    if rule.polarity == "Negative":
        return False
    for view in culprits:
        if view.state not in AWAITED_STATES:
            return False
    return bool(culprits)


_IN_PROGRESS: Final = Template(IN_PROGRESS, "Waiting for %s", ("AwaitedAdapterNames",))


def _apply(verdict: Verdict, template: Template, situation: Situation) -> Verdict:
    """Apply a template to a verdict; its message so far is `Summary` and `Error` in the template."""
    verdict.reason = template.reason
    verdict.message = render(template, situation, verdict)
    return verdict
