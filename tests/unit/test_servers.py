"""The servers that tests use are real, survive being killed with what was committed, and are missed loudly."""

from __future__ import annotations

import asyncio
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rabbit_server import RABBIT_SCRIPTS, find_rabbit, temporary_rabbit
from tests.servers import (
    POSTGRES_ADDRESS,
    POSTGRES_BINARIES,
    PostgresServer,
    ServerMissingError,
    SharedPostgres,
    ask_for_server,
    temporary_database,
    temporary_postgres,
)

ROOT = Path(__file__).parents[2]
LEFT_ALONE = """
from tests.servers import temporary_postgres

with temporary_postgres(durable=False) as server:
    print(server.directory, flush=True)
    input()
"""


def query(url: str, *statements: str) -> object:
    """Execute statements, each committed on its own; return the first value of the last."""

    async def run() -> object:
        connection = await importlib.import_module("asyncpg").connect(url)
        try:
            return [await connection.fetchval(statement) for statement in statements][-1]
        finally:
            await connection.close()

    return asyncio.run(run())


def test_a_test_gets_a_database(postgres_url: str) -> None:
    assert str(query(postgres_url, "SELECT version()")).startswith("PostgreSQL")


def test_the_database_is_empty(postgres_url: str) -> None:
    assert query(postgres_url, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == 0


def test_a_database_is_gone_afterwards(postgres_url: str) -> None:
    with temporary_database(postgres_url) as url:
        assert url != postgres_url
        assert query(url, "SELECT 1") == 1
    with pytest.raises(importlib.import_module("asyncpg").InvalidCatalogNameError):
        query(url, "SELECT 1")


def test_what_was_committed_survives_a_kill(postgres_server: PostgresServer) -> None:
    url = postgres_server.url()
    query(url, "CREATE TABLE kept (value int)", "INSERT INTO kept VALUES (42)")
    postgres_server.kill9()
    with pytest.raises(ConnectionRefusedError):
        query(url, "SELECT 1")
    postgres_server.start()
    assert query(url, "SELECT value FROM kept") == 42


def test_an_own_server_is_durable(postgres_server: PostgresServer) -> None:
    assert query(postgres_server.url(), "SHOW fsync") == "on"
    assert query(postgres_server.url(), "SHOW synchronous_commit") == "on"


@pytest.mark.usefixtures("postgres_binaries")
def test_a_setting_is_taken() -> None:
    with temporary_postgres(durable=False, settings={"max_connections": "17"}) as server:
        assert query(server.url(), "SHOW max_connections") == "17"
    assert not server.directory.exists()


@pytest.mark.usefixtures("postgres_binaries")
def test_all_processes_of_a_run_share_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(POSTGRES_ADDRESS, raising=False)
    shared = SharedPostgres()
    try:
        name = shared.listen()
        url = ask_for_server(name)
        assert ask_for_server(name) == shared.url() == url
        assert query(url, "SELECT 1") == 1
    finally:
        shared.close()
    with pytest.raises(ConnectionRefusedError):
        query(url, "SELECT 1")


def test_a_server_that_cannot_start_is_told_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(POSTGRES_ADDRESS, raising=False)
    monkeypatch.setenv(POSTGRES_BINARIES, str(tmp_path))
    shared = SharedPostgres()
    try:
        for _ in range(2):
            with pytest.raises(ServerMissingError, match="not installed"):
                ask_for_server(shared.listen())
    finally:
        shared.close()


@pytest.mark.usefixtures("postgres_binaries")
def test_a_killed_run_leaves_no_server_and_no_files() -> None:
    with subprocess.Popen(  # noqa: S603 - a constant script
        [sys.executable, "-c", LEFT_ALONE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        directory = Path(run.stdout.readline().strip())
        server = os.pidfd_open(int((directory / "data/postmaster.pid").read_text().split()[0]))
        files = os.pidfd_open(_find_remover(directory))
        run.send_signal(signal.SIGKILL)
    for handle in (server, files):
        assert select.select([handle], [], [], 60)[0], "still alive"
        os.close(handle)
    assert not directory.exists()


def _find_remover(directory: Path) -> int:
    """Return the process whose last argument is the directory."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        if each.read_bytes().endswith(f"\0{directory}\0".encode()):
            return int(each.parent.name)
    raise AssertionError("nobody will remove the files")


def test_what_is_skipped_for_want_of_a_server_is_told_in_capitals(tmp_path: Path) -> None:
    """Run one test of this file where no binaries are."""
    target = f"{Path(__file__).relative_to(ROOT)}::{test_a_test_gets_a_database.__name__}"
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", target],
        cwd=ROOT,
        env={**os.environ, POSTGRES_BINARIES: str(tmp_path), POSTGRES_ADDRESS: ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-2] == (
        "1 SKIPPED: POSTGRESQL IS NOT INSTALLED. TO ENABLE: apt-get install postgresql, "
        "or HYPERFLEET_TEST_POSTGRES=postgresql://user:password@host:port/database"
    )


@pytest.mark.usefixtures("rabbit_scripts")
def test_a_rabbitmq_is_reached_over_loopback_and_gone_afterwards() -> None:
    with temporary_rabbit() as server:
        assert server.directory.exists()
        assert server.control("list_users").split()[:2] == ["user", "tags"]
        assert _listens(server.port)
    assert not server.directory.exists()
    assert not _listens(server.port)


def test_a_missing_rabbitmq_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RABBIT_SCRIPTS, str(tmp_path))
    with pytest.raises(ServerMissingError, match="RabbitMQ is not installed; to enable: apt-get install"):
        find_rabbit()


def _listens(port: int) -> bool:
    """Tell whether a server listens at a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
