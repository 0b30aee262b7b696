"""Statements for lists: which resources a query finds, how many, and counted by their tokens.

Both SQL stores build theirs here; a `Dialect` holds what the engines spell differently. Every value is a parameter.
What terms mean is not known here: a resource has tokens, and a term asks for some of them.
"""
# ruff: noqa: S608  # statements are put together from the words in this file; what comes from outside is bound

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
    """What the engines spell differently."""

    mark: str  # stands before the number of a parameter: `?1`, `$1`
    bind_time: Callable[[datetime], object]
    # Where `exists` runs once for each resource, a range of tokens is better collected once.
    collects_ranges: bool = False
    # Stands before a column by which the engine must not choose an index.
    unindexed: str = ""


class Statement(Struct, frozen=True):
    """SQL and its parameters."""

    sql: str
    parameters: Sequence[object]


class Latest(Struct, frozen=True):
    """A walk through events from the newest on down, as far as a position: the order of `updatedAt`, descending."""

    floor: int


class Since(Struct, frozen=True):
    """Events since a time; none of them is at the floor or below it."""

    floor: int
    time: datetime


# What a scan starts from: the resources a positive term selects, those with recent events, or the newest events. None
# leaves it to the engine, which needs statistics to choose well.
Start = TokenTerm | Since | Latest | None


def build_find(query: Query, dialect: Dialect, start: Start = None) -> Statement:
    """Select the page of a query: id, answer, revision and key of each resource."""
    builder = _Builder(dialect)
    # The two are equal there; but only in the order of the table it walks through need SQLite not sort.
    column = "e.position" if isinstance(start, Latest) else _COLUMNS[query.order]
    source, conditions = builder.select_from(query, start)
    if query.after is not None:
        conditions.append(builder.follow(query, column, query.after))
    direction = "desc" if query.is_descending else "asc"
    return builder.finish(
        f"select r.id, r.answer, r.revision, {column} from {source} where {' and '.join(conditions)} "
        f"order by {column} {direction}, r.id {direction} "
        f"limit {builder.bind(query.limit)} offset {builder.bind(query.offset)}"
    )


def build_count(query: Query, dialect: Dialect, start: Start = None) -> Statement:
    """Count the resources of a query, whatever its page."""
    builder = _Builder(dialect)
    source, conditions = builder.select_from(query, start)
    return builder.finish(f"select count(*) from {source} where {' and '.join(conditions)}")


def build_summary(query: Query, prefixes: Sequence[str], dialect: Dialect, start: Start = None) -> Statement:
    """Count the resources of a query by what follows each prefix: the values, then the count."""
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
    """Count how many rows a scan that starts there would begin with, up to a limit."""
    builder = _Builder(dialect)
    rows = (
        f"facets f where {builder.has_token(start)}"
        if isinstance(start, TokenTerm)
        else f"events e where {builder.happened(start)}"
    )
    return builder.finish(f"select count(*) from (select 1 from {rows} limit {builder.bind(limit)}) as some")


def page_of(rows: Iterable[Sequence[Any]]) -> tuple[StoredAnswer, ...]:
    """Make answers of the rows of `build_find`."""
    return tuple(
        StoredAnswer(id_, bytes(body), revision, to_micros(key) if isinstance(key, datetime) else key)
        for id_, body, revision, key in rows
    )


def groups_of(rows: Iterable[Sequence[Any]]) -> tuple[GroupCount, ...]:
    """Make groups of the rows of `build_summary`, the largest first."""
    groups = [GroupCount(tuple(row[:-1]), row[-1]) for row in rows]
    return tuple(sorted(groups, key=lambda group: group.rank))


def end_of_range(prefix: str) -> str | None:
    """Return the least text that is greater than all that begin with a prefix; None: there is no such text."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # Between the two lie surrogates, which no text can hold.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)


class _Builder:
    """A statement that is being written, and its parameters."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._parameters: list[object] = []

    def bind(self, value: object) -> str:
        """Add a parameter and return how the statement names it."""
        self._parameters.append(value)
        return f"{self._dialect.mark}{len(self._parameters)}"

    def finish(self, sql: str) -> Statement:
        """Return the statement."""
        return Statement(sql, self._parameters)

    def select_from(self, query: Query, start: Start) -> tuple[str, list[str]]:
        """Return what to select from, and all conditions but those of the page."""
        source, conditions = self._source(start)
        if query.parent_id is None:
            conditions.append(f"r.kind = {self.bind(query.kind)}")
        else:  # a family is small: better sort it than meet it on a walk through all of its kind
            conditions.append(f"r.parent_id = {self.bind(query.parent_id)}")
            conditions.append(f"{self._dialect.unindexed}r.kind = {self.bind(query.kind)}")
        if query.scope.tenants is not None:
            conditions.append(self._one_of("r.tenant", sorted(query.scope.tenants)))
        conditions += [self._holds(term) for term in query.terms if term is not start]
        if query.updated_since is not None and not isinstance(start, Since):
            # The last event of a resource is its newest, so no other need be looked at.
            since = self.bind(self._dialect.bind_time(query.updated_since))
            conditions.append(f"exists (select 1 from events e where e.position = r.revision and e.time >= {since})")
        return source, conditions

    def follow(self, query: Query, column: str, after: tuple[str | int, str]) -> str:
        """Return the condition that a resource comes after the last one seen."""
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
        """Return what to select from. A cross join keeps SQLite from turning the two around."""
        if isinstance(start, TokenTerm):
            started = f"select distinct f.number from facets f where {self.has_token(start)}"
            return f"({started}) s cross join resources r", ["r.number = s.number"]
        if isinstance(start, Latest):
            # No event of a resource is newer than its revision. With `=` PostgreSQL would expect to find next to
            # nothing, and read everything for it.
            joined = ["r.id = e.resource_id", "r.revision <= e.position"]
            return "events e cross join resources r", [f"e.position > {self.bind(start.floor)}", *joined]
        if isinstance(start, Since):
            column = (
                f"{self._dialect.unindexed}e.resource_id"  # or the index is walked that gives ids in order, all of it
            )
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
