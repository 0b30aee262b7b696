"""From keywords to query parameters: filters, times, durations. Pure; the server validates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias, TypedDict

from hyperfleet.client.effects import Query

Moment: TypeAlias = str | datetime | timedelta  # `15m`, a time with a zone, or a duration before now
TextList: TypeAlias = str | Iterable[str]  # comma-separated, or an iterable


class Filters(TypedDict, total=False):
    """Filters of a list; all must hold. See docs/api.md for the syntax of each."""

    labels: str | Mapping[str, str]  # a selector as in Kubernetes, or required labels
    conditions: str | Mapping[str, str]  # a selector over conditions, or required statuses: {"Ready": "False"}
    phase: TextList
    flapping: TextList
    adapter_state: str | Mapping[str, TextList]  # `dns:Failed|Running`, or {"dns": ["Failed", "Running"]}
    blocked_by: str
    reason: TextList
    q: str
    updated_since: Moment


class Moves(Filters, total=False):
    """Which transitions: of which kinds and subjects, from which value to which, and why."""

    kind: TextList
    subjects: TextList
    moved_from: TextList
    moved_to: TextList
    cause: TextList


class ListOptions(Filters, total=False):
    """Which resources, in which order, and which parts of them."""

    order_by: str
    fields: TextList


_NAMES = {
    "labels": "labelSelector",
    "adapter_state": "adapterState",
    "blocked_by": "blockedBy",
    "updated_since": "updatedSince",
    "order_by": "orderBy",
    "group_by": "groupBy",
    "subjects": "subject",
    "moved_from": "movedFrom",
    "moved_to": "movedTo",
}


def query_of(given: Mapping[str, object]) -> Query:
    """Return keywords as query parameters, without those that are None or empty."""
    written = ((name, _write(name, value)) for name, value in given.items() if value is not None)
    return tuple((_NAMES.get(name, name), text) for name, text in written if text)


def write_moment(moment: Moment) -> str:
    """Format a time, or a duration before now."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"a time needs a zone, {moment.isoformat()} has none")
        return moment.isoformat()
    return f"{moment // timedelta(microseconds=1)}us" if isinstance(moment, timedelta) else moment


def write_seconds(seconds: float) -> str:
    """Format seconds as a duration for the server; at least a millisecond."""
    return f"{max(round(seconds * 1000), 1)}ms"


def _write(name: str, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Mapping() if name == "adapter_state":
            return ",".join(f"{adapter}:{_join(states, '|')}" for adapter, states in value.items())
        case Mapping():
            return ",".join(f"{key}={wanted}" for key, wanted in value.items())
        case datetime() | timedelta():
            return write_moment(value)
        case str() | int():
            return str(value)
        case Iterable():
            return _join(value, ",")
    raise TypeError(f"{name} cannot be {type(value).__name__}")


def _join(words: object, separator: str) -> str:
    if isinstance(words, str):
        return words
    return separator.join(str(word) for word in words) if isinstance(words, Iterable) else str(words)
