"""Reads request bodies of the compat API: snake_case, and as lenient as the original. Handlers call this.

Names, labels and conditions are checked by the shared code, `api.resource_bodies` and `aggregation.body`. This module
has only what differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import UNSET, UnsetType
from starlette.requests import Request

from hyperfleet.aggregation import BodyProblem, read_report
from hyperfleet.api.compat.metadata import read_metadata
from hyperfleet.api.compat.problems import BAD_REQUEST, INVALID, MALFORMED, CompatRefused, FieldError
from hyperfleet.api.context import RequestLimits
from hyperfleet.api.json_bodies import find_long_texts
from hyperfleet.api.problems import Refused, from_body
from hyperfleet.api.requests import ANY, read_json
from hyperfleet.api.resource_bodies import (
    MAX_FORCE_REASON,
    MAX_LABEL,
    NewResource,
    is_label_key,
    is_label_value,
    read_creation,
)
from hyperfleet.model.condition import MAX_REASON
from hyperfleet.model.json_value import name_type
from hyperfleet.model.kind import Kind
from hyperfleet.model.report import REQUIRED_CONDITIONS, Report
from hyperfleet.services.redaction import Redactor
from hyperfleet.services.results import ResourceEdit

# How far the clock of an adapter may be off: the limits of the original.
BEHIND: Final = timedelta(minutes=30)
AHEAD: Final = timedelta(minutes=5)

_REPORT_KEYS: Final = ("adapter", "observed_generation", "observed_time", "conditions", "data", "metadata")
_CONDITION_KEYS: Final = ("type", "status", "reason", "message")
_NEW_KEYS: Final = ("name", "spec", "labels")
_PATCH_KEYS: Final = ("spec", "labels", "references")
MAX_GENERATION: Final = 2**31 - 1  # an int32 in the original
_SHOWN: Final = 80  # characters of a value in an error
_EMPTY: Final[Mapping[str, Any]] = {}
_NOT_OF_REASON: Final = re.compile(r"[^A-Za-z0-9_,:]+")


async def read_object(request: Request, limits: RequestLimits) -> dict[str, Any]:
    """Read a JSON object of any media type."""
    body = await read_json(request, limits, ANY)
    if not isinstance(body, dict):
        raise CompatRefused(INVALID, f"the body must be an object, not {name_type(body)}")
    return body


def read_kind(body: Mapping[str, Any]) -> str:
    """Read the kind of a new resource."""
    kind = body.get("kind")
    if kind is None or kind == "":
        raise _invalid("kind", "kind is required", "required")
    if not isinstance(kind, str):
        raise _invalid("kind", "field 'kind' must be a string", "format")
    return kind


def read_new(body: Mapping[str, Any], kind: Kind) -> NewResource:
    """Read a new resource; unknown fields and those that only the server sets are ignored."""
    if read_kind(body) != kind.name:
        raise _invalid("kind", f"kind must be '{kind.name}'", "enum")
    _refuse_references(body)
    given = {key: body[key] for key in _NEW_KEYS if key in body}
    read = read_creation(_without_nulls(given), kind)
    _check(read.errors, read.labels)
    return read


def read_patch(body: Mapping[str, Any], kind: Kind) -> ResourceEdit:
    """Read a patch. Each given field is replaced as a whole, as in the original; nothing is merged."""
    unknown = [key for key in body if key not in _PATCH_KEYS]
    if unknown:
        raise CompatRefused(MALFORMED, f'unknown field "{unknown[0][:80]}"')
    _refuse_references(body)
    given = _without_nulls(body)
    if not given:
        raise CompatRefused(BAD_REQUEST, "at least one of spec, labels, references must be given")
    read = read_creation(
        {"name": "unchanged", "spec": {}} | {key: given[key] for key in _NEW_KEYS if key in given}, kind
    )
    _check(read.errors, read.labels)
    spec: dict[str, Any] | UnsetType = read.spec if "spec" in given else UNSET
    labels: dict[str, Any] | UnsetType = read.labels if "labels" in given else UNSET
    return ResourceEdit(spec, labels)


def read_reason(body: Mapping[str, Any]) -> str:
    """Read the reason for a forced removal."""
    reason = body.get("reason")
    if reason is None or reason == "":
        raise _invalid("reason", "reason is required", "required")
    if not isinstance(reason, str):
        raise _invalid("reason", "field 'reason' must be a string", "format")
    if not reason.strip() or len(reason) > MAX_FORCE_REASON:
        raise _invalid("reason", f"reason must have 1 to {MAX_FORCE_REASON} characters", "max")
    return reason


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_adapter_report(body: Mapping[str, Any], now: datetime, redactor: Redactor) -> Report:
    """Read a report; unknown fields are ignored."""
    given = {key: body[key] for key in _REPORT_KEYS if key in body}
    _check(tuple(find_long_texts(given, "")))
    known = redactor.redact(given).body
    metadata, conditions = known.get("metadata"), known.get("conditions")
    faults: tuple[BodyProblem, ...] = ()
    if isinstance(metadata, dict):
        known["metadata"], faults = read_metadata(metadata)
    if isinstance(conditions, list):
        _check_mandatory(conditions)
        known["conditions"] = [_known_part(condition) for condition in conditions]
    read = read_report(known)
    _check((*read.errors, *faults))
    assert read.report is not None  # noqa: S101  # without errors there is a report
    _check_range(read.report, now)
    return read.report


def _known_part(condition: object) -> object:
    """Return the known fields of a condition, with a valid reason."""
    if not isinstance(condition, dict):
        return condition
    known = {key: condition[key] for key in _CONDITION_KEYS if key in condition}
    if isinstance(known.get("reason"), str):
        known["reason"] = _repair_reason(known["reason"])
    return known


def _repair_reason(reason: str) -> str:
    """Make a reason valid: the original accepts any text, and a report must not be lost for a blank."""
    repaired = _NOT_OF_REASON.sub("_", reason.strip()).rstrip(",:")[:MAX_REASON]
    return repaired if not repaired or repaired[0].isalpha() else f"Reason_{repaired}"[:MAX_REASON]


def _check_mandatory(conditions: list[object]) -> None:
    """Refuse a report without a mandatory condition, with the message of the original."""
    types = [each.get("type") for each in conditions if isinstance(each, dict)]
    for type_ in REQUIRED_CONDITIONS:
        if type_ not in types:
            wanted = ", ".join(REQUIRED_CONDITIONS)
            raise _invalid("conditions", f"missing mandatory condition '{type_}': a report has {wanted}", "required")


def _check_range(report: Report, now: datetime) -> None:
    if report.observed_generation > MAX_GENERATION:
        raise _invalid("observed_generation", f"observed_generation must be at most {MAX_GENERATION}", "max")
    observed = report.observed_time
    if observed is not None and not now - BEHIND <= observed <= now + AHEAD:
        message = "observed_time must be within 30 minutes before and 5 minutes after the server's time"
        raise _invalid("observed_time", message, "min" if observed < now else "max")


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _without_nulls(body: Mapping[str, Any]) -> dict[str, Any]:
    """Drop null labels and references: Go programs treat them as absent. A null spec is an error."""
    return {key: value for key, value in body.items() if key == "spec" or value is not None}


def _refuse_references(body: Mapping[str, Any]) -> None:
    """Refuse references to other resources: no kind has any, so every reference type is unknown."""
    references = body.get("references")
    if references is not None and not isinstance(references, dict):
        raise _invalid("references", "field 'references' must be an object", "format")
    for type_ in references or ():
        raise _invalid(f"references[{type_}]", f"unknown reference type '{type_}'", "enum")


def _check(errors: tuple[BodyProblem, ...], labels: Mapping[str, Any] = _EMPTY) -> None:
    """Refuse a body with errors. Labels come last and, as in the original, with their values."""
    others = [each for each in errors if each.code != "BadFormat" or not each.pointer.startswith("/labels/")]
    if others:
        raise Refused(from_body(tuple(others)))
    if errors:
        found = [error for key, value in labels.items() for error in _label_errors(key, value)]
        raise CompatRefused(INVALID, "label validation failed", tuple(found))


def _label_errors(key: str, value: str) -> Iterator[FieldError]:
    if not is_label_key(key):
        message = "label key must match Kubernetes label format (optional DNS prefix/name, alphanumeric with ._-)"
        yield FieldError("labels", message, "pattern", key[:_SHOWN])
    if not is_label_value(value):
        message = f"label value must be at most {MAX_LABEL} chars (alphanumeric with ._-)"
        yield FieldError(f"labels[{key[:_SHOWN]}]", message, "pattern", value[:_SHOWN])


def _invalid(field: str, message: str, constraint: str) -> CompatRefused:
    return CompatRefused(INVALID, message, (FieldError(field, message, constraint),))
