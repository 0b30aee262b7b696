"""What an event of the log means to somebody who watches: something came, changed or left, or it is not theirs.

Decided from the event alone: it carries the tokens of its resource before and after. So every watcher sees the same,
whenever and at whichever replica they ask. Called by the API; it reads nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import Entry, Query, Scope, Term

Move = Literal["added", "modified", "deleted"]


class Interest(Struct, frozen=True):
    """What somebody watches: the resources of a kind that a list would show, or one of them."""

    kind: str
    scope: Scope
    parent_id: str | None = None
    resource_id: str | None = None
    terms: tuple[Term, ...] = ()

    @classmethod
    def of(cls, query: Query) -> Interest:
        """Return the interest in what a list shows."""
        return cls(query.kind, query.scope, query.parent_id, None, query.terms)

    def move_of(self, entry: Entry) -> Move | None:
        """Return what an event means to this interest; None: nothing."""
        if not self.concerns(entry):
            return None
        was, is_now = self._matches(entry)
        if was:
            return "modified" if is_now else "deleted"
        return "added" if is_now else None

    def concerns(self, entry: Entry) -> bool:
        """Tell whether an event is of a resource that may be seen and is, or could be, one of ours."""
        return (
            self.scope.admits(entry.tenant)
            and entry.kind == self.kind
            and self.resource_id in (None, entry.resource_id)
            and self.parent_id in (None, entry.parent_id)
        )

    def _matches(self, entry: Entry) -> tuple[bool, bool]:
        """Tell whether the resource was one of ours before the event, and whether it is after it."""
        was_there, is_there = entry.type != "Created", entry.type != "Removed"
        if not self.terms:
            return was_there, is_there
        if entry.facets is None:
            raise HistoryPruned(f"what event {entry.position} changed of filters was not kept")
        kept, gained, lost = entry.facets.kept, entry.facets.gained, entry.facets.lost
        was = was_there and self._hold({*kept, *lost})
        is_now = is_there and (self._hold({*kept, *gained}) if gained or lost or not was_there else was)
        return was, is_now

    def _hold(self, tokens: Collection[str]) -> bool:
        return all(holds(term, tokens) for term in self.terms)


def holds(term: Term, tokens: Collection[str]) -> bool:
    """Tell whether a term holds for a resource with these tokens."""
    if term.is_prefix:
        has = any(token.startswith(term.tokens) for token in tokens)
    else:
        has = any(token in tokens for token in term.tokens)
    return has is not term.is_negated
