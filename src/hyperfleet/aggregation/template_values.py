"""The values of template variables, for a situation and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hyperfleet.aggregation.adapters import describe_reason, names_of
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.templates import Template
from hyperfleet.aggregation.verdict import Verdict
from hyperfleet.model.condition import FALSE


def render(template: Template, situation: Situation, verdict: Verdict) -> str:
    """Fill in the variables of a template; the loader has checked that there are no others."""
    if not template.variables:
        return template.message
    return template.message % tuple([_VALUES[name](situation, verdict) for name in template.variables])


def _failed_count(_: Situation, verdict: Verdict) -> str:
    return str(len(verdict.culprits))


def _failed_names(_: Situation, verdict: Verdict) -> str:
    return names_of(verdict.culprits)


def _awaited_names(_: Situation, verdict: Verdict) -> str:
    return names_of([view for view in verdict.culprits if view.is_awaited])


def _total_count(situation: Situation, _: Verdict) -> str:
    return str(len(situation.adapters.required))


def _unhealthy_names(situation: Situation, _: Verdict) -> str:
    return names_of([view for view in situation.adapters.all if view.health == FALSE])


def _working_count(situation: Situation, _: Verdict) -> str:
    return str([view.state for view in situation.adapters.required].count("Running"))


def _adapter_failure(situation: Situation, verdict: Verdict) -> str:
    culprits = verdict.culprits
    return describe_reason(culprits[0], situation.resource.generation) if culprits else ""


def _first_failure(situation: Situation, verdict: Verdict) -> str:
    for view in verdict.culprits:
        if view.state == "Failed":
            return describe_reason(view, situation.resource.generation)
    return _adapter_failure(situation, verdict)


def _message_so_far(_: Situation, verdict: Verdict) -> str:
    """Return the message without a template: a merged message, or an error."""
    return verdict.message


_VALUES: Final[Mapping[str, Callable[[Situation, Verdict], str]]] = {
    "FailedCount": _failed_count,
    "FailedAdapterNames": _failed_names,
    "AwaitedAdapterNames": _awaited_names,
    "TotalCount": _total_count,
    "UnhealthyAdapterNames": _unhealthy_names,
    "WorkingCount": _working_count,
    "AdapterFailureMessage": _adapter_failure,
    "FirstFailureMessage": _first_failure,
    "Error": _message_so_far,
    "Summary": _message_so_far,
}
