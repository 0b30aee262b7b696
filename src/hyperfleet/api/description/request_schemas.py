"""Schemas of request bodies, which accept what the body readers accept.

They are written by hand because the readers are: those collect every error of a body at once, which no type can do. The
schemas describe camelCase; the text says that snake_case is accepted as well.
"""

from __future__ import annotations

from typing import Any, Final

from hyperfleet.aggregation.body import MAX_CONDITIONS, MAX_GENERATION
from hyperfleet.api.description.operations import Schema
from hyperfleet.api.resource_bodies import (
    LABEL_PATTERN,
    LABEL_PREFIX_PATTERN,
    MAX_FORCE_REASON,
    MAX_LABEL,
    MAX_LABEL_PREFIX,
    MAX_NAME,
    MAX_VERSION,
    NAME_PATTERN,
)
from hyperfleet.model.condition import MAX_MESSAGE, MAX_REASON, MAX_TYPE, REASON_PATTERN, STATUSES, TYPE_PATTERN
from hyperfleet.model.kind import Kind
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME, REQUIRED_CONDITIONS
from hyperfleet.services.resources import MAX_LABELS


def _whole(pattern: str) -> str:
    """Anchor a pattern at both ends: JSON Schema searches, the readers match."""
    return f"^(?:{pattern})$"


def _ignored(description: str) -> Schema:
    """Describe a key that is accepted with any value and ignored."""
    return {"description": f"Ignored: {description}"}


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ADAPTER_NAME: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_ADAPTER_NAME,
    "pattern": _whole(ADAPTER_PATTERN.pattern),
}
GENERATION: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_GENERATION}

_CONDITION: Final[Schema] = {
    "title": "ConditionReport",
    "description": "A condition of a report. Unknown keys are ignored, with a note in the answer.",
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string", "minLength": 1, "maxLength": MAX_TYPE, "pattern": _whole(TYPE_PATTERN.pattern)},
        "status": {"type": "string", "enum": list(STATUSES)},
        "reason": {
            "description": "A word in CamelCase, for programs.",
            "type": ["string", "null"],
            "maxLength": MAX_REASON,
            "pattern": f"^(?:{REASON_PATTERN.pattern})?$",
        },
        "message": {"description": "A sentence for people.", "type": ["string", "null"], "maxLength": MAX_MESSAGE},
        "lastTransitionTime": _ignored("the server sets it when the status changes."),
        "observedGeneration": _ignored("it is that of the report."),
    },
}


def _contains(type_: str) -> Schema:
    has_type = {"type": "object", "required": ["type"], "properties": {"type": {"const": type_}}}
    return {"contains": has_type, "maxContains": 1}


_REPORT_PROPERTIES: Final[Schema] = {
    "adapter": ADAPTER_NAME,
    "observedGeneration": {**GENERATION, "description": "The generation of the resource that the adapter observed."},
    "observedTime": {
        "description": "When it was observed, with a zone; default: now.",
        "anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}],
    },
    "conditions": {
        "description": f"Each type once; {', '.join(REQUIRED_CONDITIONS)} are required.",
        "type": "array",
        "minItems": len(REQUIRED_CONDITIONS),
        "maxItems": MAX_CONDITIONS,
        "items": _CONDITION,
        "allOf": [_contains(type_) for type_ in REQUIRED_CONDITIONS],
    },
    "data": {"description": "Data for other programs.", "type": ["object", "null"]},
    "metadata": {"description": "Data for debugging, such as the name of a job.", "type": ["object", "null"]},
    "lastUpdated": _ignored("the server sets it."),
}
_REPORT_TEXT: Final = "A report of one adapter on one resource. Unknown keys are ignored, with a note in the answer."

REPORT: Final[Schema] = {
    "title": "Report",
    "description": _REPORT_TEXT,
    "type": "object",
    "required": ["adapter", "observedGeneration", "conditions"],
    "properties": _REPORT_PROPERTIES,
}
REPORT_OF_NAMED: Final[Schema] = {  # where the path names the adapter; a body that does too must agree
    "title": "ReportOfNamedAdapter",
    "description": f"{_REPORT_TEXT} If it names the adapter, it must be the one in the path.",
    "type": "object",
    "required": ["observedGeneration", "conditions"],
    "properties": {key: value for key, value in _REPORT_PROPERTIES.items() if key != "adapter"},
}
_BUNDLE_KEYS: Final = ("adapterStatuses", "adapter_statuses")
REPORTS: Final[Schema] = {
    "title": "Reports",
    "description": "Reports of several adapters on one resource: all are accepted together, or none.",
    "type": "object",
    "required": ["adapterStatuses"],
    "properties": {"adapterStatuses": {"type": "array", "minItems": 1, "items": REPORT}},
    "additionalProperties": False,
}
REPORT_OR_REPORTS: Final[Schema] = {
    "anyOf": [
        {**REPORT, "title": "SingleReport", "not": {"anyOf": [{"required": [key]} for key in _BUNDLE_KEYS]}},
        REPORTS,
    ]
}


def batch(most: int) -> Schema:
    """Return the schema of a batch of independent reports."""
    entry = {
        "title": "BatchReport",
        "type": "object",
        "required": REPORT["required"],
        "properties": {
            "clusterId": {"type": "string", "description": "The cluster, or the cluster of the node pool."},
            "nodePoolId": {"type": "string", "description": "The node pool, for a report on one."},
            **_REPORT_PROPERTIES,
        },
    }
    anything = {"description": "Anything else is refused on its own, in `results`, without affecting the others."}
    return {
        "title": "Batch",
        "type": "object",
        "required": ["reports"],
        "additionalProperties": False,
        "properties": {
            "reports": {"type": "array", "minItems": 1, "maxItems": most, "items": {"anyOf": [entry, anything]}}
        },
    }


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────────

NAME: Final[Schema] = {
    "description": "A DNS label. It cannot be changed.",
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_NAME,
    "pattern": _whole(NAME_PATTERN.pattern),
}
SPEC: Final[Schema] = {
    "description": "The desired state, for adapters; checked only against the schema of the kind, if there is one.",
    "type": "object",
}
_SHORT_LABEL: Final = rf"(?=.{{1,{MAX_LABEL}}}$){LABEL_PATTERN.pattern}"
_LABEL_KEY: Final = rf"^(?:(?=.{{1,{MAX_LABEL_PREFIX}}}/){LABEL_PREFIX_PATTERN.pattern}/)?{_SHORT_LABEL}$"


def _labels(*, is_merge: bool = False) -> Schema:
    value: Schema = {
        "type": ["string", "null"] if is_merge else "string",
        "maxLength": MAX_LABEL,
        "pattern": f"^(?:{LABEL_PATTERN.pattern})?$",
    }
    return {
        "description": "Kubernetes labels." + (" Null removes one, or all." if is_merge else ""),
        "type": ["object", "null"] if is_merge else "object",
        "maxProperties": MAX_LABELS,
        "propertyNames": {"pattern": _LABEL_KEY},
        "additionalProperties": value,
    }


def _resource(kind: Kind, properties: Schema, required: list[str], *, is_merge: bool = False) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {
            **properties,
            "spec": SPEC,
            "labels": _labels(is_merge=is_merge),
            "metadata": {
                "description": "The metadata of an answer may be sent back. Its `labels` are used if there are none "
                "at the top level.",
                "type": "object",
            },
            "type": {"description": "Must be the kind of the path.", "enum": [kind.name, None]},
            "href": _ignored("it follows from the id."),
            "status": _ignored("it is computed from reports."),
        },
    }


def creation(kind: Kind) -> Schema:
    """Return the schema of a new resource."""
    ignored = {"id": _ignored("the server generates it."), "generation": _ignored("it starts with 1.")}
    return {"title": f"New{kind.name}", **_resource(kind, {"name": NAME, **ignored}, ["name", "spec"])}


def replacement(kind: Kind) -> Schema:
    """Return the schema of a replacement."""
    text = "`id` and `name` may be repeated, but not changed. Without `labels`, all labels are removed."
    return {"title": f"{kind.name}Replacement", "description": text, **_resource(kind, _PRECONDITION, ["spec"])}


def patch(kind: Kind) -> Schema:
    """Return the schema of a merge patch."""
    text = "`id` and `name` may be repeated, but not changed."
    return {"title": f"{kind.name}Patch", "description": text, **_resource(kind, _PRECONDITION, [], is_merge=True)}


_PRECONDITION: Final[dict[str, Any]] = {
    "generation": {
        "description": "The generation that the change is based on; another one is a conflict.",
        "type": "integer",
    }
}

FORCE_DELETE: Final[Schema] = {
    "title": "ForceDelete",
    "type": "object",
    "additionalProperties": False,
    "required": ["reason"],
    "properties": {
        "reason": {
            "description": "The reason, kept in the history.",
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_FORCE_REASON,
            "pattern": r"\S",
        }
    },
}

# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────

POLICY: Final[Schema] = {"type": "object", "description": "A policy, as JSON or YAML."}
ROLLBACK: Final[Schema] = {
    "title": "Rollback",
    "type": "object",
    "additionalProperties": False,
    "required": ["version"],
    "properties": {
        "version": {
            "description": "The version whose text is put in force again.",
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_VERSION,
        }
    },
}

# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

IDEMPOTENCY_KEY: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"}
_ENTITY_TAG: Final = r'(?:W/)?"[!#-~]*"'
ENTITY_TAGS: Final[Schema] = {
    "type": "string",
    "pattern": rf"^(?:\*|{_ENTITY_TAG}(?:\s*,\s*{_ENTITY_TAG})*)?$",
}
