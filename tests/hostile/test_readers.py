"""Readers who ask for much and read little."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from hyperfleet.api.app import create_app
from hyperfleet.api.lists import MAX_LIST_BYTES
from hyperfleet.api.outgoing import PIECE, OutgoingBytes, split
from hyperfleet.api.wire import BASE
from hyperfleet.errors import Overloaded
from tests.api.compat_client import COMPAT
from tests.api.fleet import Fleet, problem_of

LARGE = 200_000  # bytes of one spec


@pytest.fixture
def large(fleet: Fleet) -> Fleet:
    """Give a fleet of large clusters: three answers' worth of them."""
    for number in range(3 * MAX_LIST_BYTES // LARGE):
        fleet.create(f"c{number:03}", spec={"text": "x" * LARGE})
    return fleet


def test_a_list_is_cut_into_answers(large: Fleet) -> None:
    names, query, answers = [], "?limit=500", 0
    while query:
        answer = large.get(f"/clusters{query}")
        assert len(answer.content) < MAX_LIST_BYTES + 2 * LARGE
        found = answer.json()
        names += [item["name"] for item in found["items"]]
        query = f"?limit=500&continue={found['continue']}" if "continue" in found else ""
        answers += 1
    assert names == sorted(names)
    assert (len(names), answers) == (3 * MAX_LIST_BYTES // LARGE, 3)


def test_a_page_by_number_cannot_be_cut(large: Fleet) -> None:
    problem = problem_of(large.get("/clusters?page=1&size=500"), 400, "InvalidQuery")
    assert (problem["errors"][0]["parameter"], problem["errors"][0]["code"]) == ("size", "TooLarge")
    assert len(large.get("/clusters?page=2&size=5").json()["items"]) == 5


def test_the_memory_of_answers_is_shared() -> None:
    bytes_ = OutgoingBytes(most=100, most_of_one=40)
    bytes_.take("ann", 40)
    with pytest.raises(Overloaded):
        bytes_.take("ann", 1)
    bytes_.take("bob", 1_000 // 20)
    with pytest.raises(Overloaded):
        bytes_.take("cat", 30)
    bytes_.give_back("bob", 50)
    bytes_.take("cat", 30)
    bytes_.give_back("ann", 40)
    bytes_.give_back("cat", 30)
    assert bytes_.total == 0
    bytes_.take("ann", 1_000)  # alone it may be as large as it is


def test_a_body_is_sent_in_pieces() -> None:
    for size in (0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE):
        body = bytes(index % 251 for index in range(size))
        pieces = list(split(body))
        assert b"".join(piece for piece, _ in pieces) == body
        assert [is_last for _, is_last in pieces] == [False] * (len(pieces) - 1) + [True]
        assert max(len(piece) for piece, _ in pieces) <= PIECE


def test_too_many_large_answers_at_once_are_refused(large: Fleet) -> None:
    outgoing = large.context.outgoing
    outgoing.take("somebody else", 96 * 1024 * 1024)
    for path in ("/clusters?limit=3", f"{COMPAT}/clusters?size=3"):
        answer = large.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    outgoing.give_back("somebody else", 96 * 1024 * 1024)
    assert large.get("/clusters?limit=3").status_code == 200
    assert outgoing.total == 0


def test_a_reader_that_stalls_is_let_go(large: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection takes the first piece of an answer and no other."""
    monkeypatch.setattr("hyperfleet.api.boundary.STALLED", 0.05)
    app, outgoing = create_app(large.context), large.context.outgoing
    sent: list[Message] = []

    async def send(message: Message) -> None:
        if len(sent) > 1:
            await asyncio.Event().wait()
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    path = f"{BASE}/clusters"
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"limit=3", "headers": [], "state": {}}
    large.run(app(scope, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (len(sent[1]["body"]), sent[1]["more_body"]) == (PIECE, True)
    assert outgoing.total == 0
