"""A condition: one named observation of a resource, in the Kubernetes shape.

Everything here is shared by what adapters report and by what we compute. Who may set which field when is not
decided here: see `aggregation.acceptance` (adapters' conditions) and `aggregation.publication` (ours).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

ConditionStatus = Literal["True", "False", "Unknown"]

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"
STATUSES: Final[tuple[ConditionStatus, ...]] = (TRUE, FALSE, UNKNOWN)

# The limits of the Kubernetes API for a condition's fields, in characters.
MAX_TYPE: Final = 316
MAX_REASON: Final = 1024
MAX_MESSAGE: Final = 32768

TYPE_PATTERN: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
)
REASON_PATTERN: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class Condition(Struct, frozen=True, gc=False):  # many, and nothing in them can make a circle
    """One observation. `last_transition_time` is None until the condition has been stored."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the first condition of a type."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None
