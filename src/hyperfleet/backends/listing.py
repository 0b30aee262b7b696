"""Builds the statements of lists: the resources of a query, their number, and their numbers by token.

Both SQL stores use it; a `Dialect` has the differences of the engines. Every value is a parameter. The meaning of
tokens is not known here.
"""
# ruff: noqa: S608  # statements are built from the texts in this file; values from outside are bound

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from hyperfleet.backends.rows import from_micros, to_micros
from hyperfleet.ports import GroupCount, OrderField, Query, StoredAnswer, TokenTerm

_COLUMNS: Final[dict[OrderField, str]] = {
    "name": "r.name",
    "createdAt": "r.created_time",
    "updatedAt": "r.revision",
    "severity": "r.severity",
}


class Dialect(Struct, frozen=True):
    """Where the engines differ."""

    mark: str  # precedes the number of a parameter: `?1`, `$1`
    bind_time: Callable[[datetime], object]
    # Where `exists` runs once for each resource, a range of tokens is better collected once.
    collects_ranges: bool = False
    # Precedes a column whose index the engine must not use.
    unindexed: str = ""


class Statement(Struct, frozen=True):
    """SQL and its parameters."""

    sql: str
    parameters: Sequence[object]


class Latest(Struct, frozen=True):
    """A scan of events from the newest down to a position: the order of `updatedAt`, descending."""

    floor: int


class Since(Struct, frozen=True):
    """Events since a time; none of them is at the floor or below it."""

    floor: int
    time: datetime


# Where a scan starts: with the resources of a positive term, those with recent events, or the newest events. None
# leaves the choice to the engine, which needs statistics for it.
Start = TokenTerm | Since | Latest | None


def build_find(query: Query, dialect: Dialect, start: Start = None) -> Statement:
    """Select the page of a query: id, answer, revision and key of each resource."""
    builder = _Builder(dialect)
    # The two columns are equal there, but SQLite avoids a sort only for the column of the table that it scans.
    column = "e.position" if isinstance(start, Latest) else _COLUMNS[query.order]
    source, conditions = builder.select_from(query, start)
    if query.after is not None:
        conditions.append(builder.follow(query, column, query.after))
    direction = "desc" if query.is_descending else "asc"
    return builder.finish(
        f"select r.id, r.answer, r.revision, {column} as key from {source} where {' and '.join(conditions)} "
        f"order by {column} {direction}, r.id {direction} "
        f"limit {builder.bind(query.limit)} offset {builder.bind(query.offset)}"
    )


def limit_bytes(sql: str, query: Query) -> str:
    """End a page of PostgreSQL before its answers become too large: it knows their sizes without reading them."""
    direction = "desc" if query.is_descending else "asc"
    order = f"key {direction}, id {direction}"
    before = f"sum(octet_length(answer)) over (order by {order}) - octet_length(answer)"
    sized = f"select *, {before} as before from ({sql}) as page"
    return f"select id, answer, revision, key from ({sized}) as sized where before < {query.max_bytes} order by {order}"


def build_count(query: Query, dialect: Dialect, start: Start = None) -> Statement:
    """Count the resources of a query, ignoring its page."""
    builder = _Builder(dialect)
    source, conditions = builder.select_from(query, start)
    return builder.finish(f"select count(*) from {source} where {' and '.join(conditions)}")


def build_summary(query: Query, prefixes: Sequence[str], dialect: Dialect, start: Start = None) -> Statement:
    """Count the resources of a query by the rest of a token after each prefix: the values, then the count."""
    builder = _Builder(dialect)
    groups = [f"g{place}" for place in range(len(prefixes))]
    tables = [
        f"{group} as materialized (select f.number, substr(f.token, {builder.bind(len(prefix) + 1)}) as value "
        f"from facets f where {builder.in_range(prefix)})"
        for group, prefix in zip(groups, prefixes, strict=True)
    ]
    source, conditions = builder.select_from(query, start)
    joins = [f" left join {group} on {group}.number = r.number" for group in groups]
    values = ", ".join(f"{group}.value" for group in groups)
    return builder.finish(
        (f"with {', '.join(tables)} " if groups else "")
        + f"select {values + ', ' if groups else ''}count(*) from {source}{''.join(joins)} "
        + f"where {' and '.join(conditions)}"
        + (f" group by {values}" if groups else "")
    )


def build_probe(start: TokenTerm | Since, dialect: Dialect, limit: int) -> Statement:
    """Count the rows that a scan would start with, up to a limit."""
    builder = _Builder(dialect)
    rows = (
        f"facets f where {builder.has_token(start)}"
        if isinstance(start, TokenTerm)
        else f"events e where {builder.happened(start)}"
    )
    return builder.finish(f"select count(*) from (select 1 from {rows} limit {builder.bind(limit)}) as some")


def take_within(answers: Iterable[StoredAnswer], max_bytes: int) -> tuple[StoredAnswer, ...]:
    """Take answers until they reach a size; the rest is not even read."""
    if not max_bytes:
        return tuple(answers)
    found: list[StoredAnswer] = []
    room = max_bytes
    for answer in answers:
        found.append(answer)
        room -= len(answer.body)
        if room <= 0:
            break
    return tuple(found)


def page_of(rows: Iterable[Sequence[Any]], max_bytes: int = 0) -> tuple[StoredAnswer, ...]:
    """Make answers of the rows of `build_find`."""
    answers = (
        StoredAnswer(id_, bytes(body), revision, to_micros(key) if isinstance(key, datetime) else key)
        for id_, body, revision, key in rows
    )
    return take_within(answers, max_bytes)


def groups_of(rows: Iterable[Sequence[Any]]) -> tuple[GroupCount, ...]:
    """Make groups of the rows of `build_summary`, the largest first."""
    groups = [GroupCount(tuple(row[:-1]), row[-1]) for row in rows]
    return tuple(sorted(groups, key=lambda group: group.rank))


def end_of_range(prefix: str) -> str | None:
    """Return the smallest text greater than all with a prefix; None: there is none."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # Between the two are surrogates, which no text contains.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)


class _Builder:
    """A statement under construction, and its parameters."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._parameters: list[object] = []

    def bind(self, value: object) -> str:
        """Add a parameter and return its placeholder."""
        self._parameters.append(value)
        return f"{self._dialect.mark}{len(self._parameters)}"

    def finish(self, sql: str) -> Statement:
        """Return the statement."""
        return Statement(sql, self._parameters)

    def select_from(self, query: Query, start: Start) -> tuple[str, list[str]]:
        """Return the tables to select from, and all conditions except those of the page."""
        source, conditions = self._source(start)
        if query.parent_id is None:
            conditions.append(f"r.kind = {self.bind(query.kind)}")
        else:  # children are few: sorting them is cheaper than scanning their whole kind
            conditions.append(f"r.parent_id = {self.bind(query.parent_id)}")
            conditions.append(f"{self._dialect.unindexed}r.kind = {self.bind(query.kind)}")
        if query.scope.tenants is not None:
            conditions.append(self._one_of("r.tenant", sorted(query.scope.tenants)))
        conditions += [self._holds(term) for term in query.terms if term is not start]
        if query.updated_since is not None and not isinstance(start, Since):
            # The event of the revision is the newest one of the resource, so no other matters.
            since = self.bind(self._dialect.bind_time(query.updated_since))
            conditions.append(f"exists (select 1 from events e where e.position = r.revision and e.time >= {since})")
        return source, conditions

    def follow(self, query: Query, column: str, after: tuple[str | int, str]) -> str:
        """Return the condition that a resource comes after the last one of the previous page."""
        key, id_ = after
        bound = self._dialect.bind_time(from_micros(int(key))) if query.order == "createdAt" else key
        comparison = "<" if query.is_descending else ">"
        return f"({column}, r.id) {comparison} ({self.bind(bound)}, {self.bind(id_)})"

    def has_token(self, term: TokenTerm) -> str:
        """Return the condition that a row of `facets` has one of a term's tokens."""
        if term.is_prefix:
            return f"({' or '.join(self.in_range(prefix) for prefix in term.tokens) or '1 = 0'})"
        return self._one_of("f.token", term.tokens)

    def in_range(self, prefix: str) -> str:
        """Return the condition that a token begins with a prefix."""
        end = end_of_range(prefix)
        beginning = f"f.token >= {self.bind(prefix)}"
        return beginning if end is None else f"({beginning} and f.token < {self.bind(end)})"

    def happened(self, start: Since) -> str:
        """Return the condition that an event came since a time."""
        return f"e.position > {self.bind(start.floor)} and e.time >= {self.bind(self._dialect.bind_time(start.time))}"

    def _source(self, start: Start) -> tuple[str, list[str]]:
        """Return the tables to select from. A cross join keeps SQLite from changing their order."""
        if isinstance(start, TokenTerm):
            started = f"select distinct f.number from facets f where {self.has_token(start)}"
            return f"({started}) s cross join resources r", ["r.number = s.number"]
        if isinstance(start, Latest):
            # No event of a resource is newer than its revision. With `=` PostgreSQL would expect to find almost
            # nothing, and scan everything.
            joined = ["r.id = e.resource_id", "r.revision <= e.position"]
            return "events e cross join resources r", [f"e.position > {self.bind(start.floor)}", *joined]
        if isinstance(start, Since):
            column = f"{self._dialect.unindexed}e.resource_id"  # otherwise the whole index by id is scanned
            started = f"select distinct {column} as resource_id from events e where {self.happened(start)}"
            return f"({started}) s cross join resources r", ["r.id = s.resource_id"]
        return "resources r", []

    def _holds(self, term: TokenTerm) -> str:
        negation = "not " if term.is_negated else ""
        if term.is_prefix and self._dialect.collects_ranges:
            return f"r.number {negation}in (select f.number from facets f where {self.has_token(term)})"
        return f"{negation}exists (select 1 from facets f where f.number = r.number and {self.has_token(term)})"

    def _one_of(self, column: str, values: Sequence[str]) -> str:
        return f"{column} in ({', '.join(self.bind(value) for value in values)})" if values else "1 = 0"
