"""The wire shapes of resources and reports for the Go clients. Those of requests are in `bodies`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from hyperfleet.api.compat.conditions import ResourceCondition, conditions_of
from hyperfleet.api.compat.metadata import CompatReportMetadata, show_metadata
from hyperfleet.api.wire import href_of
from hyperfleet.model.condition import Condition, ConditionStatus
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Record

SYSTEM: Final = "system@hyperfleet.local"  # the author, if unknown


class OwnerReference(Struct, frozen=True):
    """The parent of a resource."""

    id: str
    kind: str
    href: str


class ResourceStatus(Struct, frozen=True):
    """The status of a resource."""

    conditions: tuple[ResourceCondition, ...]


class ResourceShape(Struct, frozen=True, kw_only=True):
    """A resource. UNSET fields are left out."""

    id: str
    kind: str
    name: str
    href: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str] | UnsetType = UNSET
    generation: int
    owner_references: OwnerReference | UnsetType = UNSET
    status: ResourceStatus
    created_time: datetime
    updated_time: datetime
    created_by: str
    updated_by: str
    deleted_time: datetime | UnsetType = UNSET
    deleted_by: str | UnsetType = UNSET
    tenancy: Mapping[str, str]


class CompatReportedCondition(Struct, frozen=True):
    """A condition that an adapter reported."""

    type: str
    status: ConditionStatus
    last_transition_time: datetime
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class CompatAdapterStatus(Struct, frozen=True):
    """The last report of one adapter."""

    adapter: str
    observed_generation: int
    conditions: tuple[CompatReportedCondition, ...]
    data: Mapping[str, Any]
    created_time: datetime
    last_report_time: datetime
    metadata: CompatReportMetadata | UnsetType = UNSET


class CompatPage(Struct, frozen=True):
    """One page of a list. `size` is the number of items on this page."""

    items: Sequence[object]
    page: int
    size: int
    total: int


def shape_resource(record: Record, kinds: Kinds) -> ResourceShape:
    """Convert a stored resource."""
    resource, kind = record.resource, kind_of(record, kinds)
    author = resource.created_by or SYSTEM
    return ResourceShape(
        id=resource.id,
        kind=resource.kind,
        name=resource.name,
        href=href_of(kind, resource.id, resource.parent_id, kinds),
        spec=resource.spec,
        labels=resource.labels or UNSET,
        generation=resource.generation,
        owner_references=owner_of(resource, kind, kinds) or UNSET,
        status=ResourceStatus(conditions_of(record)),
        created_time=resource.created_time,
        updated_time=resource.generation_time,  # as in the original: spec, labels, deletion
        created_by=author,
        updated_by=author if resource.generation == 1 else SYSTEM,  # the audit log has the real name
        deleted_time=resource.deletion_time or UNSET,
        deleted_by=SYSTEM if resource.is_deleting else UNSET,
        tenancy={"tenant": resource.tenant} if resource.tenant else {},
    )


def kind_of(record: Record, kinds: Kinds) -> Kind:
    """Return the kind of a stored resource, which must be known."""
    kind = kinds.get(record.resource.kind)
    if kind is None:
        raise ValueError(f"{record.resource.id} is a {record.resource.kind}, which is not a known kind")
    return kind


def owner_of(resource: Resource, kind: Kind, kinds: Kinds) -> OwnerReference | None:
    """Return the parent of a resource."""
    above = kinds.get(kind.parent) if kind.parent else None
    if above is None or resource.parent_id is None:
        return None
    return OwnerReference(resource.parent_id, above.name, href_of(above, resource.parent_id, None, kinds))


def shape_report(stored: StoredReport) -> CompatAdapterStatus:
    """Convert a stored report."""
    report = stored.report
    times = [time for each in report.conditions if (time := each.last_transition_time) is not None]
    return CompatAdapterStatus(
        report.adapter,
        report.observed_generation,
        tuple([_shape_condition(each, stored.effective_time) for each in report.conditions]),
        report.data,
        min([*times, stored.effective_time]),  # the earliest time that is known
        stored.effective_time,
        show_metadata(report.metadata),
    )


def _shape_condition(condition: Condition, otherwise: datetime) -> CompatReportedCondition:
    return CompatReportedCondition(
        condition.type,
        condition.status,
        condition.last_transition_time or otherwise,
        condition.reason or UNSET,
        condition.message or UNSET,
    )
