"""When a deleted resource may be removed."""

from __future__ import annotations

from collections.abc import Mapping

from hyperfleet.aggregation.acceptance import finalizes
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource


def awaited_finalizers(resource: Resource, reports: Mapping[str, StoredReport], policy: Policy) -> tuple[str, ...]:
    """Return the required adapters that have not reported Finalized=True at the generation of the deletion."""
    return tuple(
        name for name in policy.required if name not in reports or not finalizes(reports[name].report, resource)
    )


def is_removable(
    resource: Resource, reports: Mapping[str, StoredReport], policy: Policy, *, has_children: bool
) -> bool:
    """Tell whether nothing is left to clean up. After a removal, the caller must check the parent."""
    return resource.is_deleting and not has_children and not awaited_finalizers(resource, reports, policy)
