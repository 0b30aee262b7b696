"""The fast path for reading a report: decode it straight into a struct, if it has no errors and no notes.

Most bodies have none. `read_plain` returns exactly what `read_report` would, or None; then `read_report` finds the
errors and notes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from hyperfleet.aggregation.body import MAX_CONDITIONS, MAX_GENERATION, is_usual_type
from hyperfleet.documents.json_keys import may_repeat_keys
from hyperfleet.model.condition import MAX_MESSAGE, MAX_REASON, MAX_TYPE, REASON_PATTERN, Condition, ConditionStatus
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME, REQUIRED_CONDITIONS, Report

_REQUIRED: Final = frozenset(REQUIRED_CONDITIONS)

Generation = Annotated[int, Meta(ge=1, le=MAX_GENERATION)]
Time = Annotated[datetime, Meta(tz=True)]


class _Condition(Struct, forbid_unknown_fields=True, gc=False):
    """A condition as adapters write it; fields that only the server sets are accepted and ignored."""

    type: Annotated[str, Meta(max_length=MAX_TYPE)]  # longer ones must not get into a cache
    status: ConditionStatus
    reason: Annotated[str, Meta(max_length=MAX_REASON)] | UnsetType = UNSET
    message: Annotated[str, Meta(max_length=MAX_MESSAGE)] | UnsetType = UNSET
    last_transition_time: Any = UNSET
    last_updated_time: Any = UNSET
    created_time: Any = UNSET
    observed_generation: Any = UNSET


class _Body(Struct, forbid_unknown_fields=True, gc=False):
    """A report as adapters write it, in snake_case. What was not sent is unset, so that keys can be counted."""

    observed_generation: Generation
    conditions: Annotated[list[_Condition], Meta(max_length=MAX_CONDITIONS)]
    adapter: Annotated[str, Meta(max_length=MAX_ADAPTER_NAME)] | UnsetType | None = UNSET
    observed_time: Time | UnsetType | None = UNSET
    data: dict[str, Any] | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    last_updated: Any = UNSET
    last_report_time: Any = UNSET
    created_time: Any = UNSET


def _respell(struct: type[Struct], **types: Any) -> Any:
    """Return the same structure in camelCase; `types` replaces those of some fields."""
    fields = [
        (each.name, types.get(each.name, each.type), msgspec.field(default=each.default))
        for each in msgspec.structs.fields(struct)
    ]
    return msgspec.defstruct(f"{struct.__name__}InCamelCase", fields, rename="camel", forbid_unknown_fields=True)


def _respell_body() -> Any:
    condition: Any = _respell(_Condition)
    return _respell(_Body, conditions=Annotated[list[condition], Meta(max_length=MAX_CONDITIONS)])


_decode_snake: Final = msgspec.json.Decoder(_Body).decode
_decode_camel: Final = msgspec.json.Decoder(_respell_body()).decode


def read_plain(raw: bytes, adapter: str = "") -> Report | None:
    """Read one report from JSON; None if it has errors, notes, escapes or perhaps a key twice.

    If the caller knows the adapter, the body need not name it.
    """
    if b"\\" in raw and b"\\u" in raw:  # searching one byte is four times as fast as two
        return None
    decode = _decode_camel if b'"observedGeneration"' in raw else _decode_snake
    try:
        body = decode(raw)
        observed = body.observed_time.astimezone(UTC) if body.observed_time else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return None
    name = body.adapter or adapter
    if (adapter and name != adapter) or (body.adapter == "") or not _is_adapter(name):
        return None
    if not _has_usual_types(tuple([each.type for each in body.conditions])):
        return None
    generation = body.observed_generation
    conditions = []
    for each in body.conditions:
        reason = each.reason or ""
        if not _is_reason(reason):
            return None
        conditions.append(Condition(each.type, each.status, reason, each.message or "", generation))
    if may_repeat_keys(raw, body):
        return None
    return Report(name, generation, tuple(conditions), observed, body.data or {}, body.metadata or {})


@lru_cache(maxsize=256)  # small: an entry may have a hundred types
def _has_usual_types(types: tuple[str, ...]) -> bool:
    """Tell whether the types of all conditions are complete, unique and without notes."""
    return len(set(types)) == len(types) and _REQUIRED.issubset(types) and all(map(is_usual_type, types))


@lru_cache(maxsize=4096)  # a fleet has few reasons
def _is_reason(text: str) -> bool:
    return not text or REASON_PATTERN.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _is_adapter(text: str) -> bool:
    return len(text) <= MAX_ADAPTER_NAME and ADAPTER_PATTERN.fullmatch(text) is not None
