"""Decides what an event of the log means to a watch: a resource was added, modified or deleted, or nothing.

The event alone decides, because it carries the tokens of its resource before and after. So every watch sees the same,
at any time and at any replica. Called by the API; it reads nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import LoggedEvent, Query, Scope, TokenTerm

WatchChange = Literal["added", "modified", "deleted"]


class WatchFilter(Struct, frozen=True):
    """What a watch shows: the resources of a kind that a list would show, or one of them."""

    kind: str
    scope: Scope
    parent_id: str | None = None
    resource_id: str | None = None
    terms: tuple[TokenTerm, ...] = ()

    @classmethod
    def of(cls, query: Query) -> WatchFilter:
        """Return the filter for what a list shows."""
        return cls(query.kind, query.scope, query.parent_id, None, query.terms)

    def classify(self, event: LoggedEvent) -> WatchChange | None:
        """Return what an event means to this watch; None: nothing."""
        if not self.concerns(event):
            return None
        was, is_now = self._matches(event)
        if was:
            return "modified" if is_now else "deleted"
        return "added" if is_now else None

    def concerns(self, event: LoggedEvent) -> bool:
        """Tell whether the caller may see the resource of an event, and it may match the filters."""
        return (
            self.scope.admits(event.tenant)
            and event.kind == self.kind
            and self.resource_id in (None, event.resource_id)
            and self.parent_id in (None, event.parent_id)
        )

    def _matches(self, event: LoggedEvent) -> tuple[bool, bool]:
        """Tell whether the resource matched before the event, and whether it matches after it."""
        was_there, is_there = event.type != "Created", event.type != "Removed"
        if not self.terms:
            return was_there, is_there
        if event.facets is None:
            raise HistoryPruned(f"the tokens changed by event {event.position} were not kept")
        kept, gained, lost = event.facets.kept, event.facets.gained, event.facets.lost
        was = was_there and self._hold({*kept, *lost})
        is_now = is_there and (self._hold({*kept, *gained}) if gained or lost or not was_there else was)
        return was, is_now

    def _hold(self, tokens: Collection[str]) -> bool:
        return all(term_holds(term, tokens) for term in self.terms)


def term_holds(term: TokenTerm, tokens: Collection[str]) -> bool:
    """Tell whether a term holds for a resource with these tokens."""
    if term.is_prefix:
        has = any(token.startswith(term.tokens) for token in tokens)
    else:
        has = any(token in tokens for token in term.tokens)
    return has is not term.is_negated
