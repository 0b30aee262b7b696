"""Read conditions from provider objects, which are plain dictionaries of any quality.

A malformed condition becomes an `UnreadableCondition` and does not hide its siblings. Only a caller that asks for that
one, or for all of them, gets the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hyperfleet.conditions.lookup import get
from hyperfleet.conditions.mirror import mirror
from hyperfleet.conditions.source import NO_REASON_REPORTED, Source
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

Object = Mapping[str, object]

CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"

_PLACES: Final = (("status", "v1beta2", "conditions"), ("status", "conditions"))
_STATUSES: Final[dict[str, ConditionStatus]] = {TRUE: TRUE, FALSE: FALSE, UNKNOWN: UNKNOWN}
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


class UnreadableCondition(Struct, frozen=True):
    """Why a condition cannot be read; `type` is empty if it is unknown."""

    type: str
    message: str


class ParsedConditions(Struct, frozen=True):
    """The conditions of one object as far as they can be read, and what cannot."""

    conditions: tuple[Condition, ...] = ()
    problems: tuple[UnreadableCondition, ...] = ()

    def get(self, type_: str) -> Condition | None:
        """Return the condition of a type; raise when it may be there but cannot be read."""
        condition = get(self.conditions, type_)
        if condition is None:
            _raise_first(problem for problem in self.problems if problem.type in (type_, ""))
        return condition

    def all(self) -> tuple[Condition, ...]:
        """Return every condition; raise when one of them cannot be read."""
        _raise_first(self.problems)
        return self.conditions

    def mirror(self, source_type: str, *, target: str = "", fallback: Condition | None = None) -> Condition:
        """Mirror a condition of this object; raise when it cannot be read."""
        self.get(source_type)
        return mirror(self.conditions, source_type, target=target, fallback=fallback)


def _raise_first(problems: Iterable[UnreadableCondition]) -> None:
    for problem in problems:
        raise MergeError(problem.message)


def read_conditions(obj: Object | None) -> ParsedConditions:
    """Read the conditions of an object, from `status.v1beta2.conditions` or else `status.conditions`."""
    if obj is None:
        raise MergeError("sourceObj is nil")
    for path in _PLACES:
        entries = dig(obj, *path)
        if isinstance(entries, list):
            failed = f"failed to convert {'.'.join(path)} from {_kind(obj)} to []metav1.Condition"
            return _read_entries(entries, failed)
    return ParsedConditions()


def read_source(obj: Object) -> Source:
    """Read an object as a source; conditions that cannot be read count as missing."""
    metadata = dig(obj, "metadata")
    return Source(
        kind=_kind(obj),
        name=_text(dig(metadata, "name")),
        namespace=_text(dig(metadata, "namespace")),
        is_control_plane_machine=is_control_plane_machine(obj),
        conditions=read_conditions(obj).conditions,
    )


def is_control_plane_machine(obj: Object) -> bool:
    """Tell whether an object is a Machine with the control plane label, whatever the label's value."""
    labels = dig(obj, "metadata", "labels")
    return _kind(obj) == "Machine" and isinstance(labels, Mapping) and CONTROL_PLANE_LABEL in labels


def dig(obj: object, *path: str) -> object:
    """Follow a path of keys; anything missing or of another shape on the way is None."""
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def _kind(obj: Object) -> str:
    return _text(obj.get("kind"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _read_entries(entries: list[object], failed: str) -> ParsedConditions:
    conditions: list[Condition] = []
    problems: list[UnreadableCondition] = []
    for entry in entries:
        if isinstance(entry, Mapping):
            try:
                conditions.append(_read_entry(entry))
            except MergeError as error:
                problems.append(UnreadableCondition(_text(entry.get("type")), f"{failed}: {error}"))
    return ParsedConditions(tuple(conditions), tuple(problems))


def _read_entry(entry: Object) -> Condition:
    """Read one condition, or raise what is wrong with it."""
    type_ = _string(entry, "type", "")
    moment = read_moment(entry.get("lastTransitionTime"))
    if not type_:
        raise MergeError("type must be set for all conditions")
    return Condition(
        type=type_,
        status=_status(entry, type_),
        reason=_string(entry, "reason", type_) or NO_REASON_REPORTED,
        message=_string(entry, "message", type_),
        observed_generation=_generation(entry, type_),
        last_transition_time=moment,
    )


def _string(entry: Object, field: str, type_: str) -> str:
    value = entry.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MergeError(f"{field} {_of(type_)} must be a string")
    return value


def _of(type_: str) -> str:
    return f"for the {type_} condition" if type_ else "of a condition"


def _status(entry: Object, type_: str) -> ConditionStatus:
    value = _string(entry, "status", type_)
    if not value:
        raise MergeError(f"status must be set for the {type_} condition")
    if value not in _STATUSES:
        raise MergeError(f"status for the {type_} condition must be one of True, False, Unknown")
    return _STATUSES[value]


def _generation(entry: Object, type_: str) -> int:
    value = entry.get("observedGeneration")
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise MergeError(f"observedGeneration {_of(type_)} must be an integer")
    return value


def read_moment(value: object) -> datetime | None:
    """Read a time: empty is the zero time; YAML loaders may have parsed it already."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        with suppress(ValueError):  # the right shape, but no such day or hour: refused below
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    raise MergeError(f"failed to unmarshal lastTransitionTime value: {value}")
