"""Justifies a status in one line for each condition: which rule and which adapters decided it.

`simulation` shows these lines with each predicted change. They take the same steps as `aggregate` and cost as much;
`explain` shows far more, including what would help, and costs a hundred times that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from hyperfleet.aggregation import Child, Policy
from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.aggregate import judge
from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.explaining.explanation import describe_rule
from hyperfleet.aggregation.phase import PhaseInputs, evidence_for
from hyperfleet.aggregation.policy import PhaseRule
from hyperfleet.aggregation.situation import read_situation
from hyperfleet.expr import Budget
from hyperfleet.model.condition import TRUE
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.phase import PROGRESSING_PHASES
from hyperfleet.model.status import Status
from hyperfleet.ports import Record

_SHOWN: Final = 5  # adapters, or pieces of evidence; more would not fit into one line of a table
_LONGEST_RULE: Final = 200  # characters; the rest of a long rule is in the policy


class Justification:
    """Why a status is what it is under one policy."""

    def __init__(
        self,
        record: Record,
        policy: Policy,
        previous: Status,
        now: datetime,
        children: Iterable[Child],
        budget: Budget | None = None,
    ) -> None:
        """Evaluate what the status was computed from, once for all subjects; the rules pay from `budget`."""
        situation = read_situation(record.resource, record.reports, policy, previous, now, children, budget)
        published = judge(situation).published
        self._status = record.status
        self._inputs = PhaseInputs(situation, published)
        self._verdicts = {each.verdict.type: each.verdict for each in published}
        self._rules = {rule.type: rule for rule in policy.rules}
        self._ready = policy.phases.get("Ready", PhaseRule())

    def describe(self, subject: str) -> str:
        """Return the justification of the phase, or of a condition."""
        if subject == PHASE_SUBJECT:
            return _list([*self._lacks(), *evidence_for(self._status.phase, self._inputs)], "; ")
        verdict, condition = self._verdicts.get(subject), self._status.condition(subject)
        if verdict is None or condition is None:
            return "the policy has no rule for it"
        rule = self._rules.get(subject)
        text = describe_rule(rule)[:_LONGEST_RULE] if rule else ""
        if condition.status != verdict.status:
            return f"{text}: {verdict.status}, but held back by damping"
        blamed = _list([_describe(view) for view in verdict.culprits], ", ")
        return ": ".join([part for part in (text, blamed) if part])

    def _lacks(self) -> Iterator[str]:
        """Yield what a progressing resource lacks to be Ready: completed adapters alone do not show it."""
        if self._status.phase not in PROGRESSING_PHASES:
            return
        required = dict.fromkeys([*self._ready.required_conditions, (READY, TRUE)])
        lacking = [f"{type_}={status}" for type_, status in required if self._inputs.status_of(type_) != status]
        if lacking:
            yield f"to be Ready, it lacks {_list(lacking, ', ')}"
        else:
            yield "the policy requires no conditions for Ready, so nothing is"


def _describe(view: AdapterView) -> str:
    details = [view.reason] if view.reason and view.state != "Completed" else []
    details += ["stale"] if view.is_stale else []
    return f"{view.adapter} is {view.state}" + (f" ({', '.join(details)})" if details else "")


def _list(items: list[str], between: str) -> str:
    more = len(items) - _SHOWN
    return between.join(items[:_SHOWN]) + (f"{between}and {more} more" if more > 0 else "")
