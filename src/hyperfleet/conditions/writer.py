"""Write conditions as Kubernetes JSON: the inverse of reading them (`unstructured`).

For operators that store a computed status. What the API server would refuse for want of a field is an error here,
with the name of the condition; `lint` finds everything else that it would refuse.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from hyperfleet.errors import MergeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from hyperfleet.model.condition import Condition

JsonObject = dict[str, object]


def write_conditions(conditions: Iterable[Condition]) -> list[JsonObject]:
    """Return the value of `status.conditions`, in the order given."""
    return [_write(condition) for condition in conditions]


def _write(condition: Condition) -> JsonObject:
    if not condition.reason:
        raise MergeError(f"reason must be set for the {condition.type} condition")
    moment = condition.last_transition_time
    if moment is None or moment.tzinfo is None:
        raise MergeError(
            f"lastTransitionTime must be set for the {condition.type} condition, with a time zone: "
            "put it into the list with set_condition"
        )
    entry: JsonObject = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": write_moment(moment),
    }
    if condition.observed_generation:
        entry["observedGeneration"] = condition.observed_generation
    return entry


def write_moment(moment: datetime) -> str:
    """Write a time as Kubernetes does: in UTC, in whole seconds."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
