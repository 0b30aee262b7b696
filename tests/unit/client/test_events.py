"""Parsing a stream of events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.client import events
from hyperfleet.client.events import EventReader, ServerEvent

STREAM = (
    b':\n\nevent: added\ndata: {"a":1}\n\n:\n\nevent: synced\nid: 12\ndata: {}\n\n'
    b"data: one\ndata: two\n\nid: x\nevent: odd\nretry: 5\ndata:\n\nevent: nothing\n\n"
)
EVENTS = [
    ServerEvent("added", b'{"a":1}'),
    ServerEvent("synced", b"{}", 12),
    ServerEvent("message", b"one\ntwo"),
    ServerEvent("odd", b""),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.booleans())
def test_a_stream_may_be_cut_anywhere(cuts: list[int], has_carriage_returns: bool) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    reader = EventReader()
    pieces = [STREAM[start:end] for start, end in pairwise(places)]
    if has_carriage_returns:
        pieces = [piece.replace(b"\n", b"\r\n") for piece in pieces]
    assert [event for piece in pieces for event in reader.take(piece)] == EVENTS


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_invalid_data_does_not_raise(pieces: list[bytes]) -> None:
    reader = EventReader()
    for piece in pieces:
        reader.take(piece)


def test_an_event_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MAX_BYTES", 100)
    with pytest.raises(ValueError, match="longer than"):
        EventReader().take(b"data: " + b"x" * 200)
