"""Both faces against misbehaving servers, on real sockets."""

from __future__ import annotations

import socket
import zlib

import msgspec
import pytest

from hyperfleet.client import (
    BadConnection,
    ConnectionFailed,
    FleetError,
    NotFound,
    PreconditionFailed,
    RateLimited,
    Unavailable,
    UnexpectedAnswer,
)
from tests.unit.client.faces import FACES, PATIENT, Face
from tests.unit.client.misbehaving import Disconnect, Respond, Stall, misbehaving_server, response

ALIVE = Respond(response(b'{"status":"alive"}'))
POLICY = Respond(response(b'{"version":3}'))
CLUSTER = Respond(response(b'{"id":"cls-1","name":"payments","generation":1}', "201 Created"))
AWAY = Respond(response(b"<html>", "503 Service Unavailable", "text/html"))


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest) -> Face:
    return FACES[request.param]


def test_lost_connections_are_retried(face: Face) -> None:
    truncated = Respond(response(b'{"version":3}')[:-5])
    begun = Respond(b"HTTP/1.1 200 OK\r\nContent-Ty")
    garbled = Respond(b"\x16\x03\x01 not http at all\r\n\r\n")
    with misbehaving_server(Disconnect(), Disconnect(is_read=False), truncated, begun, garbled, POLICY) as server:
        assert face.ask(server.url, lambda fleet: fleet.policy()).version == 3


def test_several_503_are_retried(face: Face) -> None:
    with misbehaving_server(*[AWAY] * 5, POLICY) as server:
        assert face.ask(server.url, lambda fleet: fleet.policy()).version == 3
        assert len(server.received) == 6


def test_a_lasting_503_is_raised(face: Face) -> None:
    with misbehaving_server(AWAY) as server:
        with pytest.raises(Unavailable, match="HTTP 503 without a problem document"):
            face.ask(server.url, lambda fleet: fleet.policy(), retries=3)
        assert len(server.received) == 4


def test_a_creation_keeps_its_key_through_all_attempts(face: Face) -> None:
    with misbehaving_server(Disconnect(), AWAY, CLUSTER) as server:
        created = face.ask(server.url, lambda fleet: fleet.clusters.create("payments", {"a": 1}))
    keys = {
        line
        for received in server.received
        for line in received.split(b"\r\n")
        if line.lower().startswith(b"idempotency")
    }
    assert created.id == "cls-1"
    assert len(server.received) == 3
    assert len(keys) == 1
    assert {received.partition(b"\r\n\r\n")[2] for received in server.received} == {
        b'{"name":"payments","spec":{"a":1}}'
    }


def test_a_report_is_the_same_report_through_all_attempts(face: Face) -> None:
    taken = Respond(response(b'{"phase":"Ready","outcomes":[{"adapter":"dns","outcome":"aggregated"}]}'))
    with misbehaving_server(Disconnect(), Disconnect(), taken) as server:
        outcome = face.ask(server.url, lambda fleet: fleet.report("cls-1", "dns", available=True, generation=2))
    assert outcome.outcome == "aggregated"
    assert len({received.partition(b"\r\n\r\n")[2] for received in server.received}) == 1


def test_a_patch_is_sent_once(face: Face) -> None:
    with misbehaving_server(Disconnect()) as server:
        with pytest.raises(ConnectionFailed) as caught:
            face.ask(server.url, lambda fleet: fleet.clusters.patch("cls-1", {"spec": {}}))
        assert caught.value.is_sent
        assert len(server.received) == 1


def test_a_deletion_whose_answer_was_lost_has_happened(face: Face) -> None:
    gone = Respond(
        response(b'{"code":"NotFound","status":404,"detail":"gone"}', "404 Not Found", "application/problem+json")
    )
    with misbehaving_server(Disconnect(), gone) as server:
        assert face.ask(server.url, lambda fleet: fleet.clusters.delete("cls-1")) is None
    with misbehaving_server(gone) as server, pytest.raises(NotFound, match="gone"):
        face.ask(server.url, lambda fleet: fleet.clusters.delete("cls-1"))


def test_a_replacement_whose_answer_was_lost_is_not_its_own_conflict(face: Face) -> None:
    conflict = Respond(
        response(b'{"code":"GenerationConflict","status":409,"detail":"it is 2"}', "409 Conflict", "application/json")
    )
    done = Respond(response(msgspec.json.encode({"id": "cls-1", "generation": 2, "spec": {"a": 2}, "metadata": {}})))
    with misbehaving_server(Disconnect(), conflict, done) as server:
        after = face.ask(server.url, lambda fleet: fleet.clusters.replace("cls-1", {"a": 2}, generation=1))
        assert after.generation == 2


def test_a_policy_whose_answer_was_lost_is_not_its_own_conflict(face: Face) -> None:
    moved = b'{"title":"t","detail":"d","status":412,"code":"PreconditionFailed"}'
    stale = Respond(response(moved, "412 Precondition Failed", "application/problem+json"))
    ours, theirs = (Respond(response(b'{"version":4,"text":"%b","restores":2}' % text)) for text in (b"a: 1", b"a: 2"))
    with misbehaving_server(Disconnect(), stale, ours) as server:
        assert face.ask(server.url, lambda fleet: fleet.put_policy("a: 1", replaces=3)).version == 4
        assert b'if-match: "3"' in server.received[0].lower()
    with misbehaving_server(Disconnect(), stale, ours) as server:
        assert face.ask(server.url, lambda fleet: fleet.rollback_policy(2, replaces=3)).version == 4
    with misbehaving_server(Disconnect(), stale, theirs) as server, pytest.raises(PreconditionFailed):
        face.ask(server.url, lambda fleet: fleet.put_policy("a: 1", replaces=3))
    with misbehaving_server(stale, ours) as server, pytest.raises(PreconditionFailed):
        face.ask(server.url, lambda fleet: fleet.put_policy("a: 1", replaces=3))


def test_a_deletion_whose_answer_was_lost_does_not_miss_its_own_version(face: Face) -> None:
    body = b'{"code":"PreconditionFailed","status":412,"detail":"it has changed"}'
    changed = Respond(response(body, "412 Precondition Failed", "application/problem+json"))
    leaving = Respond(response(b'{"id":"cls-1","metadata":{"deletionTimestamp":"2026-11-16T08:00:00Z"}}'))
    with misbehaving_server(Disconnect(), changed, leaving) as server:
        left = face.ask(server.url, lambda fleet: fleet.clusters.delete("cls-1", etag='"7"'))
        assert left.is_deleting
    staying = Respond(response(b'{"id":"cls-1"}'))
    for behaviours in ((Disconnect(), changed, staying), (changed, leaving)):
        with misbehaving_server(*behaviours) as server, pytest.raises(PreconditionFailed):
            face.ask(server.url, lambda fleet: fleet.clusters.delete("cls-1", etag='"7"'))


def test_a_rate_limit_is_waited_out_or_raised(face: Face) -> None:
    body = b'{"code":"RateLimited","status":429,"detail":"too fast"}'
    limited = Respond(response(body, "429 Too Many Requests", "application/problem+json", "Retry-After: 2"))
    with misbehaving_server(limited, POLICY) as server:
        assert face.ask(server.url, lambda fleet: fleet.policy()).version == 3
    with misbehaving_server(limited) as server, pytest.raises(RateLimited) as caught:
        face.ask(server.url, lambda fleet: fleet.policy(), deadline=1.0)
    assert caught.value.retry_after == 2.0


def test_redirects_are_not_followed(face: Face) -> None:
    with misbehaving_server(POLICY) as elsewhere:
        away = Respond(response(b"", "307 Temporary Redirect", "text/plain", f"Location: {elsewhere.url}/"))
        with misbehaving_server(away) as server, pytest.raises(UnexpectedAnswer, match="redirect"):
            face.ask(server.url, lambda fleet: fleet.policy(), token="s3cret")  # noqa: S106
        assert elsewhere.received == []


def test_requests_to_this_machine_use_no_proxy(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    with misbehaving_server(AWAY) as proxy, misbehaving_server(POLICY) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert face.ask(server.url, lambda fleet: fleet.policy(), token="s3cret").version == 3  # noqa: S106
        assert proxy.received == []
        with pytest.raises(Unavailable):
            face.ask("http://fleet.example", lambda fleet: fleet.policy(), retries=0)
        assert b"GET http://fleet.example/" in proxy.received[0], "but what goes elsewhere does"


def test_an_unusable_proxy_is_reported(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "gopher://127.0.0.1:1")
    with pytest.raises(BadConnection, match="proxy"):
        face.ask("http://fleet.example", lambda fleet: fleet.policy())


def test_an_echoed_token_is_redacted(face: Face) -> None:
    echo = response(b"you sent Authorization: Bearer s3cret-s3cret-s3cret", "400 Bad Request", "text/plain")
    where = response(b"", "302 Found", "text/plain", "Location: http://127.0.0.1/?token=s3cret-s3cret-s3cret")
    for data in (echo, where):
        with misbehaving_server(Respond(data)) as server:
            with pytest.raises(FleetError) as plain:
                face.ask(server.url, lambda fleet: fleet.policy(), token="s3cret-s3cret-s3cret")  # noqa: S106
            with pytest.raises(FleetError) as streamed:
                face.collect(server.url, lambda fleet: fleet.clusters.watch(), token="s3cret-s3cret-s3cret")  # noqa: S106
        assert "s3cret-s3cret-s3cret" not in f"{plain.value} {streamed.value}"


def test_an_answer_that_is_not_a_stream_has_a_timeout(face: Face) -> None:
    ticks = iter(range(10_000))
    hasty = msgspec.structs.replace(PATIENT, monotonic=lambda: float(next(ticks)))
    for data in (response(b"<html>", media_type="text/html"), response(b"<html>", "404 Not Found", "text/html")):
        with misbehaving_server(Respond(data)) as server, pytest.raises(ConnectionFailed, match="did not end in time"):
            face.collect(server.url, lambda f: f.clusters.watch(), runtime=hasty, timeout=0.5, retries=0)


def test_an_answer_of_another_program_is_reported(face: Face) -> None:
    with misbehaving_server(Respond(response(b"<html>hello</html>", media_type="text/html"))) as server:
        with pytest.raises(UnexpectedAnswer, match="is this the address of a HyperFleet server"):
            face.ask(server.url, lambda fleet: fleet.policy())
        with pytest.raises(UnexpectedAnswer, match="not a stream of events"):
            face.collect(server.url, lambda fleet: fleet.clusters.watch())


def test_compressed_answers_are_read_and_broken_ones_are_not(face: Face) -> None:
    packed = zlib.compress(b'{"version":3}')
    good = Respond(response(packed, "200 OK", "application/json", "Content-Encoding: deflate"))
    bad = Respond(response(b"nonsense", "200 OK", "application/json", "Content-Encoding: gzip"))
    with misbehaving_server(bad, good) as server:
        assert face.ask(server.url, lambda fleet: fleet.policy()).version == 3


def test_a_refused_connection_is_reported(face: Face) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(
        ConnectionFailed, match=f"cannot connect to http://127.0.0.1:{port}: .*refused|failed"
    ) as caught:
        face.ask(f"http://127.0.0.1:{port}", lambda fleet: fleet.policy(), retries=1)
    assert not caught.value.is_sent


def test_probes_are_not_retried(face: Face) -> None:
    with misbehaving_server(
        Respond(response(b'{"status":"notReady","reasons":[{"check":"store","message":"away"}]}', "503 No"))
    ) as server:
        found = face.ask(server.url, lambda fleet: fleet.ready())
        assert not found.is_ready
        assert [reason.check for reason in found.reasons] == ["store"]
    with misbehaving_server(Disconnect(), ALIVE) as server, pytest.raises(ConnectionFailed):
        face.ask(server.url, lambda fleet: fleet.health())


def test_a_slow_and_broken_stream_is_followed_to_its_end(face: Face) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    def chunked(text: bytes) -> bytes:
        return b"".join(b"1\r\n%b\r\n" % bytes([letter]) for letter in text)

    first = b':\n\nevent: synced\nid: 4\ndata: {}\n\nevent: added\nid: 5\ndata: {"id":"cls-1"}\n\neve'
    second = b'event: modified\nid: 6\ndata: {"id":"cls-1","name":"x"}\n\n'
    with misbehaving_server(
        Respond(head + chunked(first)), AWAY, Disconnect(), Respond(head + chunked(second) + b"0\r\n\r\n")
    ) as server:
        events = face.collect(server.url, lambda fleet: fleet.clusters.watch(phase="Ready"), 3)
    assert [(each.kind, each.position) for each in events] == [("synced", 4), ("added", 5), ("modified", 6)]
    assert b"GET /api/hyperfleet/v1/clusters?phase=Ready&watch=true " in server.received[0]
    assert all(b"last-event-id: 5" in received.lower() for received in server.received[1:4])


def test_an_endless_answer_times_out(face: Face) -> None:
    ticks = iter(range(10_000))
    hasty = msgspec.structs.replace(PATIENT, monotonic=lambda: float(next(ticks)))
    with (
        misbehaving_server(Respond(response(b'{"version":3}'))) as server,
        pytest.raises(ConnectionFailed, match="did not end in time"),
    ):
        face.ask(server.url, lambda fleet: fleet.policy(), runtime=hasty, timeout=0.5, retries=0)


def test_a_stream_that_does_not_begin_times_out(face: Face) -> None:
    with misbehaving_server(Stall()) as server, pytest.raises(ConnectionFailed, match="did not answer in time"):
        face.collect(server.url, lambda fleet: fleet.clusters.watch(), timeout=0.1, retries=0)


def test_a_stream_may_be_silent_longer_than_the_timeout(face: Face) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    news = tuple(b"event: synced\nid: %d\ndata: {}\n\n" % number for number in (1, 2))
    with misbehaving_server(Stall((head, *news), pause=0.6)) as server:
        events = face.collect(server.url, lambda fleet: fleet.clusters.watch(), 2, timeout=0.5, retries=0)
    assert [event.position for event in events] == [1, 2]
