"""What an event means to a watcher, row by row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hyperfleet.errors import HistoryPruned
from hyperfleet.model.event import EventType
from hyperfleet.ports import EVERYTHING, FacetChange, LoggedEvent, Scope, TokenTerm
from hyperfleet.services.watch_filter import WatchFilter

NOW = datetime(2025, 10, 17, 12, tzinfo=UTC)
FAILED = TokenTerm(("p:Failed",))
NOT_FAILED = TokenTerm(("p:Failed",), is_negated=True)
EAST = TokenTerm(("w:east",), is_prefix=True)


def entry(type_: EventType, kept: str = "", gained: str = "", lost: str = "", tenant: str = "") -> LoggedEvent:
    facets = FacetChange(tuple(kept.split()), tuple(gained.split()), tuple(lost.split()))
    return LoggedEvent(7, type_, "NodePool", "np-1", "cls-1", tenant, 1, NOW, b"{}", facets)


@pytest.mark.parametrize(
    ("terms", "event", "move"),
    [
        ((), entry("Created", gained="p:Pending"), "added"),
        ((), entry("StatusChanged", "w:a"), "modified"),
        ((), entry("Removed", lost="p:Deleting"), "deleted"),
        ((FAILED,), entry("Created", gained="p:Failed"), "added"),
        ((FAILED,), entry("Created", gained="p:Pending"), None),
        ((FAILED,), entry("StatusChanged", gained="p:Failed", lost="p:Pending"), "added"),
        ((FAILED,), entry("StatusChanged", kept="p:Failed"), "modified"),
        ((FAILED,), entry("StatusChanged", gained="p:Ready", lost="p:Failed"), "deleted"),
        ((FAILED,), entry("StatusChanged", kept="p:Ready"), None),
        ((FAILED,), entry("Removed", lost="p:Failed"), "deleted"),
        ((FAILED,), entry("Removed", lost="p:Ready"), None),
        ((NOT_FAILED,), entry("Created", gained="p:Pending"), "added"),
        ((NOT_FAILED,), entry("Removed", lost="p:Ready"), "deleted"),
        ((NOT_FAILED,), entry("Removed", lost="p:Failed"), None),
        ((FAILED, EAST), entry("StatusChanged", kept="w:eastern", gained="p:Failed"), "added"),
        ((FAILED, EAST), entry("StatusChanged", kept="w:west", gained="p:Failed"), None),
    ],
)
def test_what_an_event_means(terms: tuple[TokenTerm, ...], event: LoggedEvent, move: str | None) -> None:
    assert WatchFilter("NodePool", EVERYTHING, terms=terms).classify(event) == move


@pytest.mark.parametrize(
    ("interest", "concerns"),
    [
        (WatchFilter("NodePool", EVERYTHING), True),
        (WatchFilter("Cluster", EVERYTHING), False),
        (WatchFilter("NodePool", EVERYTHING, parent_id="cls-1"), True),
        (WatchFilter("NodePool", EVERYTHING, parent_id="cls-2"), False),
        (WatchFilter("NodePool", EVERYTHING, resource_id="np-1"), True),
        (WatchFilter("NodePool", EVERYTHING, resource_id="np-2"), False),
        (WatchFilter("NodePool", Scope(frozenset({"ours"}))), True),
        (WatchFilter("NodePool", Scope(frozenset({"theirs"}))), False),
    ],
)
def test_whom_an_event_concerns(interest: WatchFilter, concerns: bool) -> None:
    assert (interest.classify(entry("StatusChanged", tenant="ours")) is not None) is concerns


def test_an_event_from_before_tokens_were_kept_cannot_be_filtered() -> None:
    old = LoggedEvent(7, "StatusChanged", "NodePool", "np-1", "cls-1", "", 1, NOW, b"{}", None)
    assert WatchFilter("NodePool", EVERYTHING).classify(old) == "modified"
    with pytest.raises(HistoryPruned):
        WatchFilter("NodePool", EVERYTHING, terms=(FAILED,)).classify(old)
