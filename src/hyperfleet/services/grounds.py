"""On what grounds a status is as it is, in one line for each condition: which rule, which adapters.

`simulation` tells them with what would change. They take the same steps as `aggregate` and cost as much; `explain`
tells far more, also what would help, and costs a hundred times that.
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
from hyperfleet.model.condition import TRUE
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.phase import PROGRESSING_PHASES
from hyperfleet.model.status import Status
from hyperfleet.ports import Record

_SHOWN: Final = 5  # adapters, or pieces of evidence, told by name
_LONGEST_RULE: Final = 200  # characters


class Grounds:
    """What speaks for one status under one policy."""

    def __init__(
        self, record: Record, policy: Policy, previous: Status, now: datetime, children: Iterable[Child]
    ) -> None:
        """Look at what a status was computed from, once for all its subjects."""
        situation = read_situation(record.resource, record.reports, policy, previous, now, children)
        published = judge(situation).published
        self._status = record.status
        self._inputs = PhaseInputs(situation, published)
        self._verdicts = {each.verdict.type: each.verdict for each in published}
        self._rules = {rule.type: rule for rule in policy.rules}
        self._ready = policy.phases.get("Ready", PhaseRule())

    def of(self, subject: str) -> str:
        """Tell what speaks for the phase, or for a condition."""
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
        """Say what a resource that is well on its way lacks to be Ready: that adapters are done does not tell it."""
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
