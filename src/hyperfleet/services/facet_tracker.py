"""Tracks the tokens of one transaction's records: what each event changed, and the net change.

`Workspace` has one and passes it every version of a record. The tokens of a version are computed once at most, and not
at all if nothing that they are made of changed.
"""

from __future__ import annotations

from hyperfleet.ports import FacetChange, Record
from hyperfleet.services.facets import facets_of, has_same_facets

TokenRows = list[tuple[str, str]]  # resource id, token


class FacetTracker:
    """The tokens of each record at the start of the transaction and now; only of records whose tokens changed."""

    def __init__(self) -> None:
        """Start with no records."""
        self._first: dict[str, frozenset[str]] = {}
        self._now: dict[str, frozenset[str]] = {}

    def change(self, before: Record | None, after: Record | None) -> FacetChange | None:
        """Go from one version of a record to the next (None: it does not exist); returns None if the tokens stay."""
        if before is not None and after is not None and has_same_facets(before, after):
            return None
        version = after or before
        if version is None:
            return None
        id_ = version.resource.id
        old = self._tokens_of(before) if before is not None else self._first.setdefault(id_, frozenset())
        new = self._now[id_] = facets_of(after) if after is not None else frozenset()
        if old == new:
            return None
        return FacetChange(tuple(sorted(old & new)), tuple(sorted(new - old)), tuple(sorted(old - new)))

    def unchanged(self, record: Record) -> FacetChange:
        """Return the tokens of a record's current version as kept."""
        return FacetChange(kept=tuple(sorted(self._tokens_of(record))))

    def totals(self) -> tuple[TokenRows, TokenRows]:
        """Return all tokens gained and lost since the transaction began, in order of ids."""
        gained: TokenRows = []
        lost: TokenRows = []
        for id_, first in sorted(self._first.items()):
            now = self._now.get(id_, first)
            gained += [(id_, token) for token in sorted(now - first)]
            lost += [(id_, token) for token in sorted(first - now)]
        return gained, lost

    def _tokens_of(self, record: Record) -> frozenset[str]:
        """Return the tokens of a record's current version."""
        id_ = record.resource.id
        tokens = self._now.get(id_)
        if tokens is None:
            tokens = self._first[id_] = self._now[id_] = facets_of(record)
        return tokens
