"""Conditions of the compat API, computed from a stored record whenever it is shown: pure, and never stored.

`Reconciled` is our Ready without freshness, `LastKnownReconciled` our Available without mixed generations, and
`<Adapter>Successful` the last report of a required adapter. Transition times are those stored for Ready and Available;
the rest follows from the reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from hyperfleet.aggregation.acceptance import finalizes
from hyperfleet.aggregation.availability import MIXED_GENERATIONS, READY
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Record

RECONCILED: Final = "Reconciled"
LAST_KNOWN_RECONCILED: Final = "LastKnownReconciled"
SUCCESSFUL: Final = "Successful"

_ALL_RECONCILED: Final = "All required adapters reported Available=True or Finalized=True at the current generation"
_WAITS_FOR_CHILDREN: Final = (
    "Deletion in progress. All required adapters reported Finalized=True but child resources still exist"
)
_LAST_KNOWN_MESSAGES: Final[Mapping[str, str]] = {
    "AllAdaptersReconciled": "All required adapters report Available=True for the tracked generation",
    "AdaptersMissingReports": "Required adapters have not yet reported status",
    "AdapterReportedNotAvailable": "One or more required adapters report Available=False",
    "AdaptersNotAtSameGeneration": "Required adapters do not report a consistent Available state",
}


class ResourceCondition(Struct, frozen=True):
    """A condition as the Go clients read it."""

    type: str
    status: ConditionStatus
    observed_generation: int
    created_time: datetime
    last_updated_time: datetime
    last_transition_time: datetime
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


def conditions_of(record: Record) -> tuple[ResourceCondition, ...]:
    """Return the conditions of a resource; without required adapters, only those of the policy's rules."""
    required = tuple(record.status.memory.required_since)
    if not required:
        return tuple(_mapped(record, ()))
    heard = {name: stored for name in required if (stored := _decided_report(record, name)) is not None}
    own = (
        _reconciled(record, required, heard),
        _last_known_reconciled(record, required, heard),
        *[_successful(record, name, stored) for name, stored in heard.items()],
    )
    return (*own, *_mapped(record, own))


def type_of(adapter: str) -> str:
    """Return the condition type of an adapter: `my-adapter` has `MyAdapterSuccessful`."""
    return "".join(part[:1].upper() + part[1:] for part in adapter.split("-")) + SUCCESSFUL


# ── Reconciled ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _reconciled(record: Record, required: tuple[str, ...], heard: Mapping[str, StoredReport]) -> ResourceCondition:
    resource = record.resource
    waited_for = [name for name in required if not _is_done(record.reports.get(name), resource)]
    is_true = not waited_for and not resource.is_deleting
    done = [name for name in required if name not in waited_for]
    current = [record.reports[name] for name in {*done, *heard} if _is_current(record.reports[name], resource)]
    reason, message = _explain_reconciled(resource, waited_for, heard)
    return ResourceCondition(
        RECONCILED,
        TRUE if is_true else FALSE,
        resource.generation,
        resource.created_time,
        _oldest(current, resource.generation_time),
        _reconciled_since(record, heard, is_true=is_true),
        reason,
        message,
    )


def _explain_reconciled(
    resource: Resource, waited_for: list[str], heard: Mapping[str, StoredReport]
) -> tuple[str, str]:
    if not waited_for:  # a deleted resource that is cleaned up still exists only because of its children
        return (
            ("ReconciledWaitingForChildren", _WAITS_FOR_CHILDREN)
            if resource.is_deleting
            else ("ReconciledAll", _ALL_RECONCILED)
        )
    wanted = "Finalized=True" if resource.is_deleting else "Available=True"
    message = f"Required adapters not reporting {wanted}: {_list(waited_for)}. Currently reporting: {_list(heard)}"
    return "ReconciledMissingAdapters", message


def _is_done(stored: StoredReport | None, resource: Resource) -> bool:
    """Return whether an adapter is done: with its work or, during a deletion, with cleaning up."""
    if stored is None or not _is_current(stored, resource):
        return False
    if resource.is_deleting:
        return finalizes(stored.report, resource)
    return stored.report.status_of(AVAILABLE) == TRUE


def _reconciled_since(record: Record, heard: Mapping[str, StoredReport], *, is_true: bool) -> datetime:
    """Return the transition time of Ready. The two differ only by staleness, which affects Ready alone."""
    ready = record.status.condition(READY)
    if ready is not None and ready.last_transition_time and (ready.status == TRUE) is is_true:
        return ready.last_transition_time
    moved = [_moved(stored.report.condition(AVAILABLE)) for stored in heard.values()]
    return max([record.resource.generation_time, *[time for time in moved if time is not None]])


# ── LastKnownReconciled ──────────────────────────────────────────────────────────────────────────────────────────────


def _last_known_reconciled(
    record: Record, required: tuple[str, ...], heard: Mapping[str, StoredReport]
) -> ResourceCondition:
    resource, available = record.resource, record.status.condition(AVAILABLE)
    is_true = _was_reconciled(available)
    generations = {stored.report.observed_generation for stored in heard.values()}
    generation = available.observed_generation if available and is_true else max(generations, default=1)
    reason = _last_known_reason(required, heard, is_true=is_true)
    since = _last_known_since(available, resource)
    return ResourceCondition(
        LAST_KNOWN_RECONCILED,
        TRUE if is_true else FALSE,
        generation,
        resource.created_time,
        _last_known_updated(heard.values(), reason, generation, since),
        since,
        reason,
        _LAST_KNOWN_MESSAGES[reason],
    )


def _was_reconciled(available: Condition | None) -> bool:
    """Tell whether all required adapters were True at one generation, and nothing has ended that.

    Available is also True if they are all True at different generations; in the original that alone is not enough.
    """
    if available is None or available.status != TRUE:
        return False
    return available.observed_generation > 0 and available.reason != MIXED_GENERATIONS


def _last_known_since(available: Condition | None, resource: Resource) -> datetime:
    """Return the transition time of Available; while it has no generation, that of the first status."""
    has_generation = available is not None and available.observed_generation > 0
    return (_moved(available) if has_generation else None) or resource.created_time


def _last_known_reason(required: tuple[str, ...], heard: Mapping[str, StoredReport], *, is_true: bool) -> str:
    if is_true:
        return "AllAdaptersReconciled"
    if len(heard) < len(required):
        return "AdaptersMissingReports"
    if any(stored.report.status_of(AVAILABLE) == FALSE for stored in heard.values()):
        return "AdapterReportedNotAvailable"
    return "AdaptersNotAtSameGeneration"


def _last_known_updated(heard: Collection[StoredReport], reason: str, generation: int, since: datetime) -> datetime:
    """Return the time of the oldest report it is based on; if it is only kept from earlier, its transition time."""
    there = [stored for stored in heard if stored.report.observed_generation == generation]
    is_uniform = len(there) == len(heard)
    has_failed = any(stored.report.status_of(AVAILABLE) == FALSE for stored in there)
    if (reason == "AllAdaptersReconciled" and is_uniform) or (reason == "AdapterReportedNotAvailable" and has_failed):
        return _oldest(there, since)
    return since


# ── one adapter, and the policy's rules ──────────────────────────────────────────────────────────────────────────────


def _successful(record: Record, name: str, stored: StoredReport) -> ResourceCondition:
    report = stored.report
    available = report.condition(AVAILABLE)
    return ResourceCondition(
        type_of(name),
        TRUE if report.status_of(AVAILABLE) == TRUE else FALSE,
        report.observed_generation,
        record.status.memory.required_since[name],
        stored.effective_time,
        _moved(available) or stored.effective_time,
        (available.reason if available else "") or UNSET,
        (available.message if available else "") or UNSET,
    )


def _mapped(record: Record, own: tuple[ResourceCondition, ...]) -> list[ResourceCondition]:
    """Return the conditions of the policy's rules, by type. The compat API has no Unknown; those are left out."""
    taken = {AVAILABLE, READY, *[condition.type for condition in own]}
    shown = [each for each in record.status.conditions if each.type not in taken and each.status != UNKNOWN]
    created = record.resource.created_time
    return [
        ResourceCondition(
            each.type,
            each.status,
            each.observed_generation,
            created,
            _moved(each) or created,
            _moved(each) or created,
            each.reason or UNSET,
            each.message or UNSET,
        )
        for each in sorted(shown, key=lambda condition: condition.type)
    ]


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _decided_report(record: Record, name: str) -> StoredReport | None:
    """Return the last report of an adapter if its Available is True or False."""
    stored = record.reports.get(name)
    return stored if stored is not None and stored.report.status_of(AVAILABLE) != UNKNOWN else None


def _is_current(stored: StoredReport, resource: Resource) -> bool:
    return stored.report.observed_generation == resource.generation


def _oldest(reports: Iterable[StoredReport], otherwise: datetime) -> datetime:
    return min([stored.effective_time for stored in reports], default=otherwise)


def _moved(condition: Condition | None) -> datetime | None:
    return condition.last_transition_time if condition is not None else None


def _list(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
