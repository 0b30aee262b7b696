"""A source: an object that conditions are read from.

Summary, aggregate and mirror take sources. A condition has the state; the source has the object it belongs to.
"""

from typing import Final

from msgspec import Struct

from hyperfleet.model.condition import UNKNOWN, Condition

NOT_YET_REPORTED: Final = "NotYetReported"
NO_REASON_REPORTED: Final = "NoReasonReported"


class Source(Struct, frozen=True, kw_only=True):
    """An object as its conditions show it. Messages call it by kind and name."""

    kind: str = ""
    name: str = ""
    namespace: str = ""
    is_control_plane_machine: bool = False  # these are named first in messages
    conditions: tuple[Condition, ...] = ()


def not_yet_reported(type_: str, message: str) -> Condition:
    """Make a placeholder for a missing condition."""
    return Condition(type=type_, status=UNKNOWN, reason=NOT_YET_REPORTED, message=message)
