"""Pulling events through lost connections, and answering them, as flows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hyperfleet.client.answers.pubsub import PulledMessage, read_event
from hyperfleet.client.errors import NotFound, Unauthenticated, UnexpectedAnswer
from hyperfleet.client.pubsub import acknowledge, delete_subscription, pull, reject
from tests.unit.client.world import LOST, REFUSED, World, answer, problem


def page(*receipts: str) -> Any:
    """Make an answer with messages."""
    return answer({"messages": [{"receipt": each, "attempt": 1, "event": {}} for each in receipts]})


def collect(world: World, most: int, *, deadline: int = 60, **limits: Any) -> list[str]:
    """Pull so many messages; return their receipts."""
    feed = pull("dns", lambda: 5, deadline, world.retry(**limits), lambda: False)
    return [message.receipt for message in world.collect(feed, most)]


def test_messages_are_pulled_page_by_page() -> None:
    world = World(page("1.1", "2.1"), page(), page("3.1"))
    assert collect(world, 3) == ["1.1", "2.1", "3.1"]
    assert world.pauses == [], "the server waits, not the client"
    assert msgspec.json.decode(world.sent[0].body) == {"max": 5, "ackDeadlineSeconds": 60, "waitSeconds": 15}
    assert world.sent[0].path == "/api/hyperfleet/v1/subscriptions/dns:pull"


def test_a_server_that_is_away_is_waited_for_however_long_it_takes() -> None:
    away: list[Any] = [LOST, REFUSED, problem(503, "Overloaded"), problem(429, "TooManyWatches")] * 25
    world = World(page("1.1"), *away, page("2.1"))
    assert collect(world, 2, deadline=10_000, retries=2) == ["1.1", "2.1"]
    assert len(world.pauses) == 100
    assert max(world.pauses) == 10
    assert sum(world.pauses) > 600


@pytest.mark.parametrize(
    ("status", "code", "error"), [(404, "NotFound", NotFound), (401, "InvalidToken", Unauthenticated)]
)
def test_what_trying_again_does_not_help_is_raised(status: int, code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        collect(World(problem(status, code)), 1)


def test_requests_that_are_too_short_to_wait_in_pause_between_pulls() -> None:
    world = World(page(), page(), page("1.1"))
    assert collect(world, 1, timeout=1.0) == ["1.1"]
    assert world.pauses == [1.0, 1.0]


def test_messages_whose_deadline_has_passed_are_not_handed_out() -> None:
    world = World(page("1.1", "2.1"), page("2.2"))
    feed = pull("dns", lambda: 5, 60, world.retry(), lambda: False)
    assert [each.receipt for each in world.collect(feed, 1)] == ["1.1"]
    world.time += 60
    assert [each.receipt for each in world.collect(feed, 1)] == ["2.2"]


def test_a_stop_ends_the_feed() -> None:
    stops = iter([False, False, True, True])
    world = World(page("1.1", "2.1"))
    feed = pull("dns", lambda: 5, 60, world.retry(), lambda: next(stops))
    assert [each.receipt for each in world.collect(feed)] == ["1.1"]


def test_answers_tell_whether_they_were_in_time() -> None:
    world = World(answer({"acknowledged": 1}), answer({"acknowledged": 0}))
    assert world.run(acknowledge("dns", "1.1", world.retry())) is True
    assert world.run(reject("dns", "1.1", "no zone", world.retry(), is_dead=True)) is False
    assert [msgspec.json.decode(request.body) for request in world.sent] == [
        {"receipts": ["1.1"]},
        {"receipts": ["1.1"], "error": "no zone", "deadLetter": True},
    ]


def test_an_answer_that_was_lost_counts_as_given() -> None:
    world = World(LOST, answer({"acknowledged": 0}))
    assert world.run(acknowledge("dns", "1.1", world.retry())) is True
    world = World(LOST, problem(404, "NotFound"))
    assert world.run(delete_subscription("dns", world.retry())) is None
    world = World(problem(404, "NotFound"))
    with pytest.raises(NotFound):
        world.run(delete_subscription("dns", world.retry()))


def test_names_are_quoted() -> None:
    world = World(answer({"acknowledged": 1}))
    world.run(acknowledge("a/b:pull", "1.1", world.retry()))
    assert world.sent[0].path == "/api/hyperfleet/v1/subscriptions/a%2Fb%3Apull:ack"


def test_what_is_not_an_event_is_an_unexpected_answer() -> None:
    with pytest.raises(UnexpectedAnswer, match="not a CloudEvent"):
        read_event(PulledMessage(event=msgspec.Raw(b"{}")).event, 1)
