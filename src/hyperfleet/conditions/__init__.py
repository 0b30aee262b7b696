"""Conditions: a small pure library with the semantics of Cluster API's condition utilities.

A tour, in the order a newcomer meets it:

    lookup        ask a list of conditions: get, has, is_true, …; a missing condition is Unknown
    transition    write one condition: the transition time moves if and only if the status moves
    order         the order in which conditions are shown
    source        an object that conditions are read from
    unstructured  read conditions from provider objects that come as dictionaries
    writer        write conditions as Kubernetes JSON
    mirror        show a condition of one object on another
    summary       many conditions of one object become one
    aggregate     one condition of many objects becomes one
      priority      issue, unknown or info?
      merge         the worst decides
      grouping      the message of an aggregate
      message       nesting, lists of names, the length limit
      plural        kinds in the plural
    patch         apply changes to a list that others may have changed
    lint          what Kubernetes would refuse, and what is almost surely a mistake
    cluster       the status of a Cluster, computed with all of the above; its decisions, one by one, are here too

Conditions are values and lists are tuples; nothing is changed in place, nothing reads a clock. Examples, and
the table of where we differ from the original and why: docs/conditions.md. Needs msgspec and nothing else.
"""

from hyperfleet.conditions.aggregate import Aggregation, aggregate
from hyperfleet.conditions.cluster import (
    ClusterScope,
    ClusterStatus,
    ClusterView,
    available,
    compute_status,
    control_plane_available,
    control_plane_initialized,
    control_plane_machines_ready,
    control_plane_machines_up_to_date,
    deleting,
    infrastructure_ready,
    paused,
    remediating,
    remote_connection_probe,
    rolling_out,
    scaling_down,
    scaling_up,
    topology_reconciled,
    worker_machines_ready,
    worker_machines_up_to_date,
    workers_available,
)
from hyperfleet.conditions.lint import Flaw, lint
from hyperfleet.conditions.lookup import (
    get,
    get_last_transition_time,
    get_message,
    get_reason,
    get_status,
    has,
    has_same_state,
    is_false,
    is_true,
    is_unknown,
)
from hyperfleet.conditions.merge import RankedCondition, Strategy, choose_reason
from hyperfleet.conditions.mirror import mirror
from hyperfleet.conditions.order import default_order
from hyperfleet.conditions.patch import ConditionChange, Patch, apply_patch, diff
from hyperfleet.conditions.priority import Priority, PriorityOf, by_polarity
from hyperfleet.conditions.source import Source
from hyperfleet.conditions.summary import SummaryOptions, summarize
from hyperfleet.conditions.transition import (
    delete_condition,
    keep_transition_time,
    set_condition,
    sort_conditions,
)
from hyperfleet.conditions.unstructured import ParsedConditions, read_conditions, read_source
from hyperfleet.conditions.writer import write_conditions
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import Condition

__all__ = [
    "Aggregation",
    "ClusterScope",
    "ClusterStatus",
    "ClusterView",
    "Condition",
    "ConditionChange",
    "Flaw",
    "MergeError",
    "ParsedConditions",
    "Patch",
    "Priority",
    "PriorityOf",
    "RankedCondition",
    "Source",
    "Strategy",
    "SummaryOptions",
    "aggregate",
    "apply_patch",
    "available",
    "by_polarity",
    "choose_reason",
    "compute_status",
    "control_plane_available",
    "control_plane_initialized",
    "control_plane_machines_ready",
    "control_plane_machines_up_to_date",
    "default_order",
    "delete_condition",
    "deleting",
    "diff",
    "get",
    "get_last_transition_time",
    "get_message",
    "get_reason",
    "get_status",
    "has",
    "has_same_state",
    "infrastructure_ready",
    "is_false",
    "is_true",
    "is_unknown",
    "keep_transition_time",
    "lint",
    "mirror",
    "paused",
    "read_conditions",
    "read_source",
    "remediating",
    "remote_connection_probe",
    "rolling_out",
    "scaling_down",
    "scaling_up",
    "set_condition",
    "sort_conditions",
    "summarize",
    "topology_reconciled",
    "worker_machines_ready",
    "worker_machines_up_to_date",
    "workers_available",
    "write_conditions",
]
