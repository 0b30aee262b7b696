"""Limits of a real server: hit one by one, refused in a way that can be acted on, and then everything is as before."""

from __future__ import annotations

import gzip
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import zstandard

from tests.e2e.server import PATIENCE, Server, await_state, running
from tests.e2e.standstill import standstill
from tests.world import body

BODY: Final = 64 * 1024
BATCH: Final = 128 * 1024
DEPTH: Final = 16
REPORTS: Final = 10
WATCHES: Final = 3
MIB: Final = 1024 * 1024
JSON: Final = {"Content-Type": "application/json"}
SETTINGS: Final = {
    "limits_max_body_bytes": str(BODY),
    "limits_max_batch_bytes": str(BATCH),
    "limits_max_depth": str(DEPTH),
    "limits_max_batch_reports": str(REPORTS),
    "limits_max_watches": str(WATCHES),
    "limits_request_timeout": "2s",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, lasting_database: str) -> Iterator[Server]:
    """Give a server that takes little."""
    with running(tmp_path_factory.mktemp("limits"), lasting_database, **SETTINGS) as server:
        yield server


@pytest.fixture
def cluster(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the path of a cluster; afterwards the server must take a report on it as if nothing had been."""
    name = f"c{abs(hash(request.node.name))}"
    path = f"/clusters/{server.http.post('/clusters', json={'name': name, 'spec': {}}).json()['id']}"
    yield path
    answer = server.http.post(f"{path}/statuses", json=body("dns", "True"))
    assert (answer.status_code, answer.json()["outcome"]) == (200, "aggregated"), answer.text
    assert server.http.get(path).status_code == 200
    assert "Traceback" not in server.log


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Return a problem, which an answer must be."""
    problem = dict(answer.json())
    assert (answer.status_code, problem["code"]) == (status, code), answer.text
    return problem


def memory_of(server: Server) -> int:
    """Return how many bytes the server has in memory."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


@pytest.mark.parametrize("place", ["/clusters", "/statuses", "/statuses/adapters/dns", "batch"])
@pytest.mark.parametrize("is_promised", [True, False])
def test_a_body_that_is_too_large(server: Server, cluster: str, place: str, is_promised: bool) -> None:
    path = {"/clusters": place, "batch": "/statuses:batch"}.get(place, cluster + place)
    size = BATCH if place == "batch" else BODY
    raw = b" " * (size + 1)
    content = raw if is_promised else iter([raw[:size], raw[size:]])
    method = "PUT" if "adapters" in place else "POST"
    answer = server.http.request(method, path, content=content, headers=JSON)
    refused(answer, 413, "BodyTooLarge")
    assert answer.headers["Connection"] == "close", "the rest is not read, so nothing can follow"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_that_grows_without_end(server: Server, cluster: str, encoding: str) -> None:
    blank = b" " * (50 * MIB)
    bomb = gzip.compress(blank) if encoding == "gzip" else zstandard.ZstdCompressor(19).compress(blank)
    assert len(bomb) < BODY
    headers = {**JSON, "Content-Encoding": encoding}
    before = memory_of(server)

    def throw(_: int) -> httpx.Response:
        return httpx.post(f"{server.api}{cluster}/statuses", content=bomb, headers=headers, timeout=PATIENCE)

    with ThreadPoolExecutor(8) as threads:
        for answer in threads.map(throw, range(40)):
            refused(answer, 413, "BodyTooLarge")
    assert memory_of(server) - before < 32 * MIB, "one bomb that went off would take more"


@pytest.mark.parametrize("depth", [DEPTH + 1, 7_000])
def test_a_body_that_is_too_deep(server: Server, cluster: str, depth: int) -> None:
    for raw in (b'{"data":' * depth + b"1" + b"}" * depth, b"[" * depth):
        for path in ("/clusters", f"{cluster}/statuses", "/statuses:batch"):
            answer = server.http.post(path, content=raw, headers=JSON)
            assert answer.status_code == 400, answer.text
            assert {each["code"] for each in answer.json()["errors"]} <= {"TooDeep", "MalformedJson"}


def test_too_many_reports(server: Server, cluster: str) -> None:
    id_ = cluster.rpartition("/")[2]
    reports = [{"clusterId": id_, **body(f"adapter-{number}", "True")} for number in range(REPORTS + 1)]
    refused(server.http.post("/statuses:batch", json={"reports": reports}), 400, "InvalidBody")
    statuses = [body(f"adapter-{number}", "True") for number in range(REPORTS + 1)]
    refused(server.http.post(f"{cluster}/statuses", json={"adapterStatuses": statuses}), 400, "InvalidBody")
    assert server.http.post("/statuses:batch", json={"reports": reports[1:]}).json()["accepted"] == REPORTS


def test_too_many_watches(server: Server, cluster: str) -> None:
    with ExitStack() as open_ones:
        streams = [open_ones.enter_context(server.http.stream("GET", "/clusters?watch=true")) for _ in range(WATCHES)]
        assert [stream.status_code for stream in streams] == [200] * WATCHES
        answer = server.http.get("/clusters?watch=true")
        refused(answer, 503, "Overloaded")
        assert answer.headers["retry-after"]
        refused(server.http.get(f"{cluster}:wait?for=deleted"), 503, "Overloaded")
        assert server.http.get("/clusters").status_code == 200, "who does not watch is not concerned"
        streams[0].close()

        def has_room() -> bool:
            with server.http.stream("GET", "/clusters?watch=true") as stream:
                return stream.status_code == 200

        await_state(has_room)


@pytest.mark.parametrize("path", ["/clusters", "{cluster}/statuses"])
def test_a_body_that_does_not_come(server: Server, cluster: str, path: str) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as slow:
        where = "/api/hyperfleet/v1" + path.format(cluster=cluster)
        slow.sendall(f"POST {where} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in slow.recv(65536).splitlines()[0]


@pytest.mark.parametrize("path", ["/clusters", "{cluster}/statuses", "/statuses:batch"])
@pytest.mark.parametrize(
    "rest",
    ["Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n"],
    ids=["cut off", "no chunk"],
)
def test_a_body_that_ends_early(server: Server, cluster: str, path: str, rest: str) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as broken:
        where = "/api/hyperfleet/v1" + path.format(cluster=cluster)
        head = f"POST {where} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{rest}"
        broken.sendall(head.encode())
        broken.shutdown(socket.SHUT_WR)
        assert b" 400 " in broken.recv(65536).splitlines()[0]


def test_headers_that_are_too_large(server: Server, cluster: str) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as wide:
        wide.sendall(f"GET {cluster} HTTP/1.1\r\nHost: localhost\r\n".encode())
        answer = b""
        try:
            for number in range(200):
                wide.sendall(f"X-{number}: {'a' * 10_000}\r\n".encode())
            wide.sendall(b"\r\n")
            answer = wide.recv(65536)
        except ConnectionError:
            pass  # it hung up, which is as good
        assert not answer or answer.split()[1] in (b"400", b"431")


def test_more_writes_than_can_wait(tmp_path: Path, database: str) -> None:
    limits = {"max_queued_writes": "10", "max_batch_reports": "10", "max_writes_per_transaction": "1"}
    with running(tmp_path, database, **{f"limits_{name}": value for name, value in limits.items()}) as server:
        assert create(server, "first").status_code == 201
        with ThreadPoolExecutor(40) as people:
            with standstill(database):
                answers = [people.submit(create, server, f"c{number}") for number in range(40)]
                await_state(lambda: sum(answer.done() for answer in answers) >= 20)
                for answer in [answer.result() for answer in answers if answer.done()]:
                    refused(answer, 503, "Overloaded")
                    assert int(answer.headers["retry-after"]) >= 1
                unready = server.http.get(f"{server.url}/readyz").json()["reasons"]
                assert "queue" in [reason["check"] for reason in unready]
                assert server.http.get(f"{server.url}/healthz").status_code == 200
                assert len(server.http.get("/clusters").json()["items"]) == 1, "who reads is not concerned"
            statuses = [answer.result().status_code for answer in answers]
        assert 10 < statuses.count(201) <= 20, "those that waited were written in the end"
        await_state(server.is_ready)
        listed = server.http.get("/clusters?limit=100").json()["items"]
        assert len(listed) == 1 + statuses.count(201), "what was refused was not done"
        assert create(server, "last").status_code == 201


def create(server: Server, name: str) -> httpx.Response:
    """Ask for a cluster, each time over a connection of its own."""
    return httpx.post(f"{server.api}/clusters", json={"name": name, "spec": {}}, timeout=PATIENCE)


def test_requests_over_the_limit_wait(tmp_path: Path, database: str) -> None:
    limits = {"limits_max_connections": "2", "limits_max_watches": "1"}
    with running(tmp_path, database, **limits) as server, ExitStack() as open_ones:
        server.http.close()

        def connect(request: bytes) -> socket.socket:
            opened = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
            open_ones.callback(opened.close)
            opened.sendall(request)
            return opened

        half = b"POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        busy = [connect(half) for _ in range(3)]
        time.sleep(0.5)  # until they are taken
        waiting = connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert select.select([waiting], [], [], 0.5)[0] == [], "it has to wait"
        busy[0].close()
        assert waiting.recv(65536).split()[1] == b"200", "and then it is its turn"


def test_a_caller_who_is_too_fast(tmp_path: Path, database: str) -> None:
    with running(tmp_path, database, limits_max_requests_per_second="50") as server:
        answers = [server.http.get("/clusters") for _ in range(300)]
        slowed = [answer for answer in answers if answer.status_code != 200]
        assert len(answers) - len(slowed) >= 100, "a burst of two seconds goes through"
        assert slowed, "and no more than that at once"
        for answer in slowed:
            refused(answer, 429, "RateLimited")
        assert {server.http.get(f"{server.url}/healthz").status_code for _ in range(200)} == {200}
        time.sleep(int(slowed[-1].headers["retry-after"]))
        assert server.http.get("/clusters").status_code == 200
