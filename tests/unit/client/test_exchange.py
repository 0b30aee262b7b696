"""What is retried, when, and for how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.client.answers.fleet import Liveness
from hyperfleet.client.answers.resource import Cluster
from hyperfleet.client.effects import ApiRequest, Reply
from hyperfleet.client.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    WaitTimeout,
)
from hyperfleet.client.exchange import exchange, fetch
from tests.unit.client.world import LOST, REFUSED, World, answer, problem

GET = ApiRequest("GET", "/x")
PATCH = ApiRequest("PATCH", "/x", is_repeatable=False)
BAD_GATEWAY = Reply(502, {"content-type": "text/html"}, b"<html>Bad gateway</html>")


@pytest.mark.parametrize(
    ("failure", "because"),
    [
        (LOST, "the connection was lost"),
        (REFUSED, "it could not be made"),
        (BAD_GATEWAY, "a proxy says that the server is away"),
        (problem(503, "Overloaded"), "the server says not now"),
        (problem(503, "StoreUnavailable"), "its database is away"),
        (problem(429, "RateLimited"), "we were too fast"),
        (problem(408, "RequestTimeout"), "nothing was done"),
        (Reply(504, {}, b""), "a proxy lost patience"),
    ],
)
def test_temporary_failures_are_retried(failure: Reply | ConnectionFailed, because: str) -> None:
    world = World(failure, failure, answer({}))
    reply = world.run(exchange(GET, world.retry()))
    assert (reply.status, reply.attempts, len(world.sent)) == (200, 3, 3), because


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (problem(400, "InvalidBody"), Invalid),
        (problem(401, "InvalidToken"), Unauthenticated),
        (problem(403, "NotYourAdapter"), Forbidden),
        (problem(404, "NotFound"), NotFound),
        (problem(409, "NameTaken"), Conflict),
        (problem(500, "InternalError"), Unavailable),
        (problem(504, "WaitTimeout"), WaitTimeout),
        (problem(418, "Teapot"), ApiError),
    ],
)
def test_permanent_failures_are_raised_at_once(failure: Reply, kind: type[ApiError]) -> None:
    world = World(failure)
    with pytest.raises(ApiError) as caught:
        world.run(exchange(GET, world.retry()))
    assert type(caught.value) is kind
    assert world.pauses == []


def test_a_request_that_is_not_repeatable_is_not_retried_once_sent() -> None:
    for failure in (LOST, problem(503, "StoreUnavailable"), BAD_GATEWAY):
        world = World(failure)
        with pytest.raises((ConnectionFailed, Unavailable)):
            world.run(exchange(PATCH, world.retry()))


def test_a_request_that_is_not_repeatable_is_retried_if_not_processed() -> None:
    world = World(REFUSED, problem(429, "RateLimited"), answer({}))
    assert world.run(exchange(PATCH, world.retry())).status == 200


def test_a_certificate_error_is_not_retried() -> None:
    world = World(ConnectionFailed("not trusted", is_lasting=True))
    with pytest.raises(ConnectionFailed):
        world.run(exchange(GET, world.retry()))


def test_pauses_double_up_to_a_limit() -> None:
    world = World(*[LOST] * 11)
    with pytest.raises(ConnectionFailed):
        world.run(exchange(GET, world.retry(retries=10)))
    assert world.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10])


def test_jitter_halves_a_pause_at_most() -> None:
    world = World(LOST, LOST, answer({}), random=0.0)
    world.run(exchange(GET, world.retry()))
    assert world.pauses == pytest.approx([0.05, 0.1])


def test_retry_after_is_respected() -> None:
    world = World(problem(429, "RateLimited", retry_after="7"), answer({}))
    world.run(exchange(GET, world.retry()))
    assert world.pauses == [7.0]


def test_no_pause_exceeds_the_deadline() -> None:
    world = World(problem(429, "RateLimited", retry_after="3600"))
    with pytest.raises(RateLimited) as caught:
        world.run(exchange(GET, world.retry(deadline=60.0)))
    assert caught.value.retry_after == 3600
    assert world.pauses == []


def test_retries_can_be_forbidden() -> None:
    world = World(LOST)
    with pytest.raises(ConnectionFailed):
        world.run(exchange(GET, world.retry(retries=0)))


@given(
    st.lists(st.sampled_from([LOST, REFUSED, problem(503, "Overloaded", retry_after="2")]), max_size=30),
    st.floats(0, 1),
    st.floats(0.01, 40),
    st.integers(0, 20),
    st.floats(0, 5),
)
def test_the_deadline_and_the_number_of_attempts_always_hold(
    failures: list[Reply | ConnectionFailed], random: float, deadline: float, retries: int, takes: float
) -> None:
    world = World(*failures, answer({}), random=random, takes=takes)
    retry = world.retry(deadline=deadline, retries=retries)
    begun = world.time
    try:
        assert world.run(exchange(GET, retry)).status == 200
    except (ConnectionFailed, Unavailable):
        assert not world.is_over
    assert len(world.sent) <= retries + 1
    assert sum(world.pauses) <= deadline + 1e-9
    assert all(timeout <= deadline + 1e-9 for timeout in world.timeouts)
    assert world.time - begun <= deadline + takes + 1e-9  # the last attempt may begin just before it


def test_an_answer_of_another_server_is_reported() -> None:
    world = World(Reply(200, {"content-type": "text/html"}, b"<html>Sign in</html>"))
    with pytest.raises(UnexpectedAnswer, match=r"text/html.*is this the address of a HyperFleet server"):
        world.run(fetch(Liveness, GET, world.retry()))


def test_a_redirect_is_not_followed() -> None:
    world = World(Reply(307, {"location": "https://elsewhere.example/"}))
    with pytest.raises(UnexpectedAnswer, match=r"redirect .* https://elsewhere\.example/"):
        world.run(fetch(Liveness, GET, world.retry()))


def test_a_broken_document_is_reported() -> None:
    for body in (b"{", b"[]", b'{"id": 7}', b"\xff\xfe"):
        world = World(Reply(200, {"content-type": "application/json"}, body))
        with pytest.raises(UnexpectedAnswer, match="not a Cluster"):
            world.run(fetch(Cluster, GET, world.retry()))


def test_a_newer_server_is_understood() -> None:
    document = {"id": "cls-1", "name": "a", "tomorrow": 1, "status": {"phase": "Levitating", "mood": "good"}}
    world = World(answer(document, etag='"7"'))
    cluster = world.run(fetch(Cluster, GET, world.retry()))
    assert (cluster.phase, cluster.raw, cluster.etag) == ("Levitating", document, '"7"')
