"""`/metrics` of real servers: several workers at one address tell what all of them did, also after one has died."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import httpx
import pytest

from hyperfleet.backends.shared_board import SharedBoard
from tests.api.scrapes import Scrape
from tests.e2e.server import Server, await_state, run_command, running

READS = 40


def ask_anew(server: Server, path: str) -> httpx.Response:
    """GET over a connection of its own, so that any worker may take it."""
    with httpx.Client() as http:
        return http.get(server.url + path)


def count_reads(server: Server) -> float:
    """Return how many reads of clusters have been counted, whichever worker is asked."""
    found = Scrape(ask_anew(server, "/metrics"))
    return found.get("hyperfleet_http_requests_total", route="/api/hyperfleet/v1/clusters", method="GET", code="200")


def workers_of(server: Server) -> set[int]:
    """Return the process ids of the workers that have said that they take requests."""
    return {int(pid) for pid in re.findall(r"process (\d+) accepts requests", server.log)}


@pytest.mark.postgres
def test_workers_tell_what_all_of_them_did(tmp_path: Path, postgres_url: str) -> None:
    assert run_command("db", "migrate", database=postgres_url).returncode == 0
    with running(tmp_path, postgres_url, workers="2") as server:
        for _ in range(READS):
            assert ask_anew(server, "/api/hyperfleet/v1/clusters").status_code == 200
        await_state(lambda: count_reads(server) == READS)
        answers = [Scrape(ask_anew(server, "/metrics")) for _ in range(10)]
        assert {each.get("hyperfleet_write_queue_capacity") for each in answers} == {4_000}  # of both together
        assert set(answers[0].find("process_cpu_seconds_total")) == {("1",), ("2",)}
        victim = min(workers_of(server))
        os.kill(victim, signal.SIGKILL)
        await_state(lambda: len(workers_of(server)) == 3)
        await_state(lambda: Scrape(ask_anew(server, "/metrics")).get("hyperfleet_write_queue_capacity") == 4_000)
        assert {count_reads(server) for _ in range(10)} == {READS}  # nothing of what was told is taken back
        assert server.stop() == 0


def test_one_worker_needs_no_board(tmp_path: Path) -> None:
    with running(tmp_path, "memory:") as server:
        ask_anew(server, "/api/hyperfleet/v1/clusters")
        assert count_reads(server) == 1
        found = Scrape(ask_anew(server, "/metrics"))
        assert set(found.find("process_cpu_seconds_total")) == {()}
        assert found.get("hyperfleet_loop_failures_total") == 0


def test_a_place_of_the_board_outlives_its_worker() -> None:
    board = SharedBoard(2)
    child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        board.take(1).write(b"counted")
        os._exit(0)
    os.waitpid(child, 0)
    assert board.read() == [b"", b"counted"]
    assert not board.is_taken(0)
    assert not board.is_taken(1)
    assert board.write(b"ours")
    assert board.is_taken(0)
    assert not board.write(b"x" * 5_000_000)
    assert board.read() == [b"ours", b"counted"]
