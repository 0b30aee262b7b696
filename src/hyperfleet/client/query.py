"""From keywords to query parameters: filters of lists, moments, durations. Pure; the server judges what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias, TypedDict

from hyperfleet.client.effects import Query

Moment: TypeAlias = str | datetime | timedelta  # `15m`, a time with a zone, or a duration back from now
Words: TypeAlias = str | Iterable[str]  # with commas between them, or one by one


class Filters(TypedDict, total=False):
    """Which resources: all filters must hold. What each one takes is told in docs/api.md."""

    labels: str | Mapping[str, str]  # a selector as in Kubernetes, or labels that must be there
    conditions: str | Mapping[str, str]  # a selector over conditions, or statuses they must have: {"Ready": "False"}
    phase: Words
    flapping: Words
    adapter_state: str | Mapping[str, Words]  # `dns:Failed|Running`, or {"dns": ["Failed", "Running"]}
    blocked_by: str
    reason: Words
    q: str
    updated_since: Moment


class Moves(Filters, total=False):
    """Which transitions: of which kinds and subjects, from which value to which, and why."""

    kind: Words
    subjects: Words
    moved_from: Words
    moved_to: Words
    cause: Words


class Listing(Filters, total=False):
    """Which resources, in which order, and which parts of them."""

    order_by: str
    fields: Words


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
    """Write keywords as query parameters; those that are None or empty were not given."""
    written = ((name, _write(name, value)) for name, value in given.items() if value is not None)
    return tuple((_NAMES.get(name, name), text) for name, text in written if text)


def write_moment(moment: Moment) -> str:
    """Write a moment: a time as it is, a duration as one that ends now."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"a time needs a zone, {moment.isoformat()} has none")
        return moment.isoformat()
    return f"{moment // timedelta(microseconds=1)}us" if isinstance(moment, timedelta) else moment


def write_seconds(seconds: float) -> str:
    """Write seconds as a duration that the server reads; at least a millisecond."""
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
