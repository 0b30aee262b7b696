"""The status core: from reports and a policy to a status.

In the order a newcomer meets it: `load_policies` makes policies of YAML; `read_report` makes a report of a body;
`decide` accepts or discards it; `aggregate` computes the status from all stored reports; `explain` explains it.
Everything here is pure: `now` is an argument, and what to store is returned.
"""

from hyperfleet.aggregation.acceptance import Decision, decide, digest_of
from hyperfleet.aggregation.aggregate import aggregate, can_change_status, is_calm
from hyperfleet.aggregation.body import BodyProblem, ReadReport, read_report
from hyperfleet.aggregation.deletion import awaited_finalizers, is_removable
from hyperfleet.aggregation.explaining.explanation import StatusExplanation, explain
from hyperfleet.aggregation.loading.policy_loader import Loading, check_policies, load_policies
from hyperfleet.aggregation.plain_body import read_plain
from hyperfleet.aggregation.policy import Policy, PolicySet
from hyperfleet.aggregation.situation import Child
from hyperfleet.aggregation.transitions import transitions_between

__all__ = [
    "BodyProblem",
    "Child",
    "Decision",
    "Loading",
    "Policy",
    "PolicySet",
    "ReadReport",
    "StatusExplanation",
    "aggregate",
    "awaited_finalizers",
    "can_change_status",
    "check_policies",
    "decide",
    "digest_of",
    "explain",
    "is_calm",
    "is_removable",
    "load_policies",
    "read_plain",
    "read_report",
    "transitions_between",
]
