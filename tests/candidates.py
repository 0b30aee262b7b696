"""Policies to try one after the other, each different from the one before in another way; and what is foretold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

_DONE: Final = """
  - type: AllDone
    evaluate:
      expr: all(requiredAdapters, .state == "Completed")
"""
_READY: Final = """
phases: {ready: {requiredConditions: [{type: AllDone, status: "True"}]}}
"""

FEWER_ADAPTERS: Final = f"requiredAdapters: [validation]\nclusterConditions:{_DONE}{_READY}"
MORE_ADAPTERS: Final = f"requiredAdapters: [validation, dns, ghost]\nclusterConditions:{_DONE}{_READY}"
IMPATIENT: Final = f"""
requiredAdapters: [validation, dns, ghost]
defaultBehavior: {{timeout: 1us}}
clusterConditions:{_DONE}{_READY}
"""
STALE: Final = f"""
requiredAdapters: [validation, dns]
policies: {{staleThreshold: 1us, staleAction: degraded}}
clusterConditions:{_DONE}{_READY}
"""
OTHER_RULES: Final = f"""
requiredAdapters: [validation, dns]
optionalAdapters: [monitoring]
policies: {{inProgressReasons: [Broken]}}
clusterConditions:{_DONE}
    templates:
      true: {{reason: Finished, message: "all {{{{.TotalCount}}}} are done"}}
      false: {{reason: Open, message: "open: {{{{.FailedAdapterNames}}}}"}}
  - type: Dns
    mirror: {{adapter: dns, type: Available}}
  - type: Watched
    evaluate: {{expr: 'adapters["monitoring"].reported'}}
  - type: Trouble
    polarity: Negative
    goBadAfter: 10m
    evaluate: {{expr: 'any(requiredAdapters, .state == "Failed")'}}
{_READY}
"""
DAMPED: Final = f"""
requiredAdapters: [validation, dns, ghost]
clusterConditions:{_DONE}
    goBadAfter: 1h
    goGoodAfter: 1us
  - type: Trouble
    polarity: Negative
    goBadAfter: 1us
    evaluate: {{expr: 'any(allAdapters, .state == "Failed")'}}
{_READY}
"""
FAMILIES: Final = f"""
requiredAdapters: [validation]
clusterConditions:{_DONE}
  - type: PoolsReady
    summary: {{over: nodePools, type: Ready}}
  - type: PoolsDone
    goBadAfter: 5m
    summary: {{over: nodePools, type: PoolDone}}
phases:
  ready: {{requiredConditions: [{{type: AllDone, status: "True"}}, {{type: PoolsReady, status: "True"}}]}}
  degraded: {{requiredConditions: [{{type: PoolsReady, status: "False"}}]}}
---
appliesTo: {{kind: NodePool}}
requiredAdapters: [nodepool]
clusterConditions:
  - type: PoolDone
    evaluate: {{expr: 'all(requiredAdapters, .state == "Completed")'}}
phases: {{ready: {{requiredConditions: [{{type: PoolDone, status: "True"}}]}}}}
"""
OTHER_FAMILIES: Final = FAMILIES.replace("[nodepool]", "[nodepool, dns]").replace("PoolDone", "PoolFit")
BY_LABEL: Final = f"""
appliesTo: {{labels: {{env: prod}}}}
requiredAdapters: [dns]
clusterConditions:{_DONE}{_READY}
---
requiredAdapters: [validation, dns]
clusterConditions:{_DONE}{_READY}
"""
NOTHING: Final = "requiredAdapters: []\n"

CANDIDATES: Final = (
    FEWER_ADAPTERS,
    FAMILIES,
    MORE_ADAPTERS,
    OTHER_RULES,
    DAMPED,
    OTHER_FAMILIES,
    STALE,
    BY_LABEL,
    IMPATIENT,
    FAMILIES,
    NOTHING,
)

State = tuple[str, dict[str, tuple[str, str, str]]]  # the phase; status, reason and message of each condition


def states_of(*lists: Sequence[Mapping[str, Any]]) -> dict[str, State]:
    """Return how the resources of some lists are, by id."""
    return {resource["id"]: _state_of(resource["status"]) for resources in lists for resource in resources}


def _state_of(status: Mapping[str, Any]) -> State:
    conditions = {each["type"]: (each["status"], each["reason"], each["message"]) for each in status["conditions"]}
    return status["phase"], conditions


def foretell(before: Mapping[str, State], changes: Iterable[Mapping[str, Any]]) -> dict[str, State]:
    """Return how every resource would be after the changes that were predicted."""
    after = {id_: (phase, dict(conditions)) for id_, (phase, conditions) in before.items()}
    for change in changes:
        phase, conditions = after.pop(change["id"])
        for move in change["transitions"]:
            subject, to = move["subject"], move["to"]
            if subject == "phase":
                assert move["from"] == phase
                phase = to
            elif to is None:
                assert conditions.pop(subject)[0] == move["from"]
            else:
                assert move["from"] == (conditions[subject][0] if subject in conditions else None)
                conditions[subject] = (to, move["reason"], move["message"])
        if phase is not None:
            after[change["id"]] = (phase, conditions)
    return after
