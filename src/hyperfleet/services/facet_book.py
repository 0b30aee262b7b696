"""The tokens of one transaction's records: what each event did to them, and what all of it comes to.

`Workspace` keeps one and tells it of every version of a record. No version's tokens are made twice, and those of a
heartbeat not even once.
"""

from __future__ import annotations

from hyperfleet.ports import FacetChange, Record
from hyperfleet.services.facets import facets_of, has_same_facets

TokenRows = list[tuple[str, str]]  # resource id, token


class FacetBook:
    """Who had which tokens when the transaction began, and who has which by now; only of those whose tokens moved."""

    def __init__(self) -> None:
        """Start with nobody."""
        self._first: dict[str, frozenset[str]] = {}
        self._now: dict[str, frozenset[str]] = {}

    def turn(self, before: Record | None, after: Record | None) -> FacetChange | None:
        """Go from one version of a record to the next (None: not there); None: the tokens stay as they are."""
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

    def keep(self, record: Record) -> FacetChange:
        """Return the tokens of a record's current version as those that it keeps."""
        return FacetChange(kept=tuple(sorted(self._tokens_of(record))))

    def totals(self) -> tuple[TokenRows, TokenRows]:
        """Return all that was gained and all that was lost since the transaction began, in the order of ids."""
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
