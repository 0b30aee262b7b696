"""The query parameters of lists and summaries. A test compares their patterns with what `services.search` accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hyperfleet.api.description.operations import Parameter, Schema
from hyperfleet.api.wire import RESOURCE_KEYS
from hyperfleet.model.condition import STATUSES, TYPE_PATTERN
from hyperfleet.model.phase import PHASES
from hyperfleet.model.report import ADAPTER_PATTERN
from hyperfleet.model.status import ADAPTER_STATES
from hyperfleet.services.field_masks import MAX_DEPTH, MAX_PATHS
from hyperfleet.services.filters import MAX_GROUPS, MAX_TERMS
from hyperfleet.services.search import DEFAULT_LIMIT, MAX_LIMIT, ORDERS
from hyperfleet.services.selectors import MAX_VALUES
from hyperfleet.services.transitions import CAUSES, VALUES
from hyperfleet.services.trends import DEFAULT_POINTS, MAX_POINTS


def _any_of(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


def _list_of(item: str, most: int = MAX_TERMS) -> str:
    """Return the pattern of a comma-separated list."""
    return rf"{item}(?:,{item}){{0,{most - 1}}}"


def _selector(key: str, value: str, *, has_empty_value: bool) -> str:
    """Return the pattern of a Kubernetes selector."""
    equal = rf"(?:==?|!=)(?:{value}){'?' if has_empty_value else ''}"
    within = rf" (?:in|notin) \({_list_of(value, MAX_VALUES)}\)"
    return _list_of(rf"(?:!{key}|{key}(?:{equal}|{within})?)")


_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_LABEL_KEY: Final = rf"(?:{_DNS}/)?{_NAME}"
_TYPE: Final = f"(?:{TYPE_PATTERN.pattern})"
_ADAPTER: Final = f"(?:{ADAPTER_PATTERN.pattern})"
_STATE: Final = _any_of((*ADAPTER_STATES, "Stale"))
_ORDER: Final = _any_of(ORDERS)
_REASON: Final = rf"(?:{_TYPE}:[A-Za-z](?:[A-Za-z0-9_:]*[A-Za-z0-9_])?|[A-Za-z][A-Za-z0-9_]*)"
_GROUP: Final = _any_of(
    (
        "phase",
        "reason",
        "blockedBy",
        "flapping",
        f"(?:reason|condition):{_TYPE}",
        f"label:{_LABEL_KEY}",
        f"adapter:{_ADAPTER}",
    )
)
_ID: Final = r"[A-Za-z0-9][-A-Za-z0-9_.]{0,127}"
# The common ones of `documents.durations`.
_DURATION: Final = r"0|(?=[0-9])(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,6}s)?"
_KEY: Final = r'(?:"[^"]+"|[^ \t".,]+)'
_FIRST_KEY: Final = rf'(?:"{_any_of(RESOURCE_KEYS)}"|{_any_of(RESOURCE_KEYS)})'


def _text(pattern: str) -> Schema:
    """Return the schema of a text parameter. (Blanks between its parts are accepted as well.)"""
    return {"type": "string", "pattern": rf"^(?:{pattern})$"}


def _number(most: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most}


_INSTANT: Final[Schema] = {"anyOf": [{"type": "string", "format": "date-time"}, _text(_DURATION)]}

FILTERS: Final = (
    Parameter(
        "labelSelector",
        "query",
        "A label selector as in Kubernetes; all terms must hold. `!=` and `notin` also match resources without the "
        "label.",
        _text(rf"{_selector(_LABEL_KEY, _NAME, has_empty_value=True)}|\s*"),
        "environment=production,team in (platform,payments)",
    ),
    Parameter(
        "conditions",
        "query",
        "A selector of conditions, with the grammar of labels; all terms must hold. A type alone means True.",
        _text(_selector(_TYPE, _any_of(STATUSES), has_empty_value=False)),
        "Ready!=True",
    ),
    Parameter(
        "phase",
        "query",
        "One of these phases; with `!`, none of them.",
        _text(_list_of(f"!?{_any_of(PHASES)}")),
        "Failed,Degraded",
    ),
    Parameter(
        "flapping",
        "query",
        "One of these is flapping: condition types, `phase`, or `any`; with `!`, none of them.",
        _text(_list_of(f"!?{_TYPE}")),
        "any",
    ),
    Parameter(
        "adapterState",
        "query",
        "States of adapters, or `Stale`; all terms must hold, `|` separates alternatives. `Unreported` matches every "
        "adapter without another state, also an unknown one; it cannot be an alternative to `Stale`.",
        _text(_list_of(rf"{_ADAPTER}:{_STATE}(?:\|{_STATE})*")),
        "dns:Failed|Running",
    ),
    Parameter("blockedBy", "query", "Resources that wait for this adapter.", _text(_ADAPTER), "dns"),
    Parameter(
        "reason",
        "query",
        "The reason of a condition, `Type:Reason`; without a type, of Ready.",
        _text(_list_of(_REASON)),
        "AdaptersFailed",
    ),
    Parameter(
        "q",
        "query",
        "Words; each must be the prefix of a word of the name, the labels or the problems of the resource.",
        {"type": "string", "pattern": r"[^\W_]"},  # a letter or digit
        "my-cluster",
    ),
    Parameter(
        "updatedSince",
        "query",
        "Changed since then, spec or status: a time with a zone, or a duration that ends now.",
        _INSTANT,
        "15m",
    ),
)
SPAN: Final = (
    Parameter(
        "since", "query", "The start, inclusive: a time with a zone, or a duration that ends now.", _INSTANT, "24h"
    ),
    Parameter(
        "until", "query", "The end, exclusive: a time with a zone, or a duration that ends now.", _INSTANT, "15m"
    ),
)
AT: Final = Parameter(
    "at", "query", "The state as of this time: a time with a zone, or a duration before now such as `2h`.", _INSTANT
)
REPLAY: Final = Parameter(
    "replay",
    "query",
    "Also replay recorded reports: how far to go back from now.",
    _text(rf"{_DURATION}|[0-9]{{1,4}}d"),
    "7d",
)
COMPARISON: Final = (
    Parameter("from", "query", "The earlier side: a time with a zone, or a duration before now.", _INSTANT, "10m"),
    Parameter("to", "query", "The later side, in the same format; default: now.", _INSTANT),
    Parameter("against", "query", "Instead of `from`: the id of another resource of the same kind.", _text(_ID)),
    Parameter("times", "query", "Also show fields that are only times.", {"type": "boolean"}),
)
TREND: Final = (
    Parameter(
        "trend",
        "query",
        "Also the counts of the past: a duration before `at` or now, in steps.",
        _text(_DURATION),
        "24h",
    ),
    Parameter(
        "step",
        "query",
        f"The step of a trend; default: a {DEFAULT_POINTS}th of it. At most {MAX_POINTS} points.",
        _text(_DURATION),
        "1h",
    ),
)
SUBJECT: Final = Parameter(
    "subject",
    "query",
    "Only these subjects: `phase` and condition types.",
    _text(_list_of(_TYPE)),
    "phase,Ready",
)
MOVES: Final = (
    Parameter("kind", "query", "Only resources of these kinds.", _text(_list_of("[A-Z][A-Za-z]*")), "Cluster,NodePool"),
    Parameter(
        "movedFrom",
        "query",
        "Only transitions from these phases and statuses.",
        _text(_list_of(_any_of(VALUES))),
        "Ready",
    ),
    Parameter(
        "movedTo", "query", "Only transitions to these phases and statuses.", _text(_list_of(_any_of(VALUES))), "Failed"
    ),
    Parameter("cause", "query", "Only transitions with these causes.", _text(_list_of(_any_of(CAUSES))), "report"),
)
ORDER: Final = Parameter(
    "order",
    "query",
    "Oldest or newest first; default: newest first, with `after` oldest first.",
    {"type": "string", "enum": ["asc", "desc"]},
)
CONDITION: Final = Parameter("condition", "query", "Only the condition of this type.", _text(_TYPE), "Ready")
LIMIT: Final = Parameter(
    "limit", "query", f"The maximum number of items; default: {DEFAULT_LIMIT}.", _number(MAX_LIMIT), 20
)
CONTINUE: Final = Parameter("continue", "query", "The `continue` of the previous page. Opaque.")
FIELDS: Final = Parameter(
    "fields",
    "query",
    "Only these fields, and the id: dotted paths; a key that contains dots is quoted.",
    _text(_list_of(rf"{_FIRST_KEY}(?:\.{_KEY}){{0,{MAX_DEPTH - 1}}}", MAX_PATHS)),
    "id,name,status.phase",
)
PAGES: Final = (
    Parameter(
        "orderBy",
        "query",
        "The order; a leading `-` or a trailing `desc` reverses it. `updatedAt` or `lastUpdated`: by the last change, "
        "including the status; `metadata.updatedAt` is only that of spec and labels. `severity`: the worst phase "
        "first.",
        _text(f"-?{_ORDER}|{_ORDER} (?:asc|desc)"),
        "name",
    ),
    LIMIT,
    CONTINUE,
    Parameter(
        "page",
        "query",
        "The page number, from 1; instead of `limit` and `continue`. The answer has a `total`.",
        _number(1_000_000_000),
    ),
    Parameter("size", "query", f"The page size; default: {DEFAULT_LIMIT}.", _number(MAX_LIMIT)),
    FIELDS,
)
GROUP_BY: Final = Parameter(
    "groupBy",
    "query",
    "What to group by, up to four, each once: `phase`, `reason`, `reason:Type`, `condition:Type`, `label:key`, "
    "`adapter:name` (null: neither required nor reported), `blockedBy`, `flapping`; default: `phase`.",
    _text(_list_of(_GROUP, MAX_GROUPS)),
    "phase,label:environment",
)
