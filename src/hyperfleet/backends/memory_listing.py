"""Queries of the memory store, by a scan of every resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import product

from hyperfleet.backends.listing import take_within
from hyperfleet.backends.rows import severity_of, to_micros
from hyperfleet.ports import GroupCount, Query, Record, StoredAnswer, TokenTerm


def matches(record: Record, tokens: Collection[str], last_event: datetime | None, query: Query) -> bool:
    """Tell whether a resource matches a query."""
    resource = record.resource
    return (
        resource.kind == query.kind
        and query.scope.admits(resource.tenant)
        and query.parent_id in (None, resource.parent_id)
        and (query.updated_since is None or (last_event is not None and last_event >= query.updated_since))
        and all(_holds(term, tokens) for term in query.terms)
    )


def page(records: Iterable[Record], query: Query) -> tuple[StoredAnswer, ...]:
    """Return the page of a query from the resources that match it."""
    placed = sorted(((_key(record, query), record.resource.id, record) for record in records), key=_place)
    if query.is_descending:
        placed.reverse()
    if query.after is not None:
        after = query.after
        placed = [each for each in placed if (each[:2] < after if query.is_descending else each[:2] > after)]
    answers = [StoredAnswer(id_, record.answer, record.revision, key) for key, id_, record in placed]
    return take_within(answers[query.offset : query.offset + query.limit], query.max_bytes)


def summary(resources: Iterable[Collection[str]], prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
    """Count resources, given as their tokens, by the rest of a token after each prefix."""
    counts: Counter[tuple[str | None, ...]] = Counter()
    for tokens in resources:
        counts.update(product(*(_values(tokens, prefix) for prefix in prefixes)))
    if not prefixes and not counts:
        return (GroupCount((), 0),)
    return tuple(sorted((GroupCount(values, count) for values, count in counts.items()), key=lambda group: group.rank))


def _values(tokens: Collection[str], prefix: str) -> list[str | None]:
    return [token.removeprefix(prefix) for token in tokens if token.startswith(prefix)] or [None]


def _holds(term: TokenTerm, tokens: Collection[str]) -> bool:
    if term.is_prefix:
        has = any(token.startswith(term.tokens) for token in tokens)
    else:
        has = any(token in tokens for token in term.tokens)
    return has is not term.is_negated


def _key(record: Record, query: Query) -> str | int:
    match query.order:
        case "name":
            return record.resource.name
        case "createdAt":
            return to_micros(record.resource.created_time)
        case "updatedAt":
            return record.revision
        case "severity":
            return severity_of(record.status)


def _place(placed: tuple[str | int, str, Record]) -> tuple[str | int, str]:
    return placed[:2]
