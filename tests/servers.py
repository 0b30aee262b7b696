"""Real servers for tests and for `bench/`: found on the machine, started privately, gone when their user is gone.

`conftest.py` makes fixtures of this; `bench/` takes `temporary_postgres()`. Nothing here knows pytest, and nothing here
touches a server that somebody else runs, except the one that `HYPERFLEET_TEST_POSTGRES` names.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import secrets
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

POSTGRES_ADDRESS: Final = "HYPERFLEET_TEST_POSTGRES"  # a server to use instead of a private one
POSTGRES_BINARIES: Final = "HYPERFLEET_TEST_POSTGRES_BIN"  # the only directory to look for binaries in

_PATIENCE: Final = 60.0  # seconds; a start takes 0.1, but recovery on a busy machine may take many
_SERVER_USER: Final = "postgres"  # whom Debian's package creates


class ServerError(Exception):
    """A server did not do what it was asked to."""


class ServerMissingError(ServerError):
    """A server is not installed; the message says how to get it."""


class PostgresServer:
    """A private PostgreSQL in a directory of its own, reached over loopback and a socket in that directory.

    It dies with the thread that called `start`. When we are root it runs as `postgres`, who must be able to reach
    the directory.
    """

    def __init__(self, directory: Path, *, durable: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self.directory: Final = directory
        self.port: Final = free_port()
        self._password: Final = secrets.token_hex(16)
        self._binaries: Final = find_postgres()
        self._data: Final = directory / "data"
        self._log: Final = directory / "log"
        self._settings: Final = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(directory),
            **({} if durable else {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}),
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, the first time with an empty cluster, and return when connections are accepted."""
        if self._process is not None:
            raise ServerError("PostgreSQL is running already")
        if not self._data.exists():
            self._create_cluster()
        options = [option for name, value in self._settings.items() for option in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the binary that find_postgres found
                self._as_server_user("postgres", "-D", str(self._data), *options),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which still need the server to tidy up
            )
        self._await_ready(self._process)

    def stop(self) -> None:
        """Stop in good order, if it runs; clients are disconnected."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_PATIENCE)
            self._process = None

    def kill9(self) -> None:
        """Kill the server and all its processes at once: none of them can finish anything."""
        if self._process is None:
            raise ServerError("PostgreSQL is not running")
        _kill_tree(self._process.pid)
        self._process.wait(_PATIENCE)
        self._process = None

    def _create_cluster(self) -> None:
        self.directory.mkdir(exist_ok=True)
        password = self.directory / "password"
        password.touch(mode=0o600)
        password.write_text(self._password)
        if _is_root():
            for path in (self.directory, password):
                shutil.chown(path, _SERVER_USER, _SERVER_USER)
        # No sync: it guards against a power cut, and no test outlives one.
        options = ["--username=postgres", "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync"]
        command = self._as_server_user("initdb", "-D", str(self._data), *options, "--encoding=UTF8", "--no-locale")
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)  # noqa: S603 - as above
        if done.returncode:
            raise ServerError(f"initdb failed:\n{done.stderr}")

    def _as_server_user(self, program: str, *arguments: str) -> Sequence[str]:
        """Return the command that runs a program as somebody PostgreSQL accepts, and ends it when we end."""
        user = [f"--reuid={_SERVER_USER}", f"--regid={_SERVER_USER}", "--init-groups"] if _is_root() else []
        return ["setpriv", *user, "--pdeathsig=QUIT", str(self._binaries / program), *arguments]

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        limit = time.monotonic() + _PATIENCE
        while not self._is_ready(process.pid):
            if process.poll() is not None or time.monotonic() > limit:
                process.kill()
                process.wait()
                self._process = None
                raise ServerError(f"PostgreSQL did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.02)

    def _is_ready(self, pid: int) -> bool:
        """Tell whether connections are accepted: the first and eighth line of the pid file say so."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


class SharedServer:
    """One cheap server for all processes of a test run, started when the first of them asks.

    It belongs to the process that outlives the others; these get the name of a socket and call `ask_for_server`.
    """

    def __init__(self, variable: str, run: Callable[[], AbstractContextManager[str]]) -> None:
        """Use the server that a variable names, or `run` one, which gives its address."""
        self._block = ExitStack()
        self._lock = threading.Lock()
        self._url = os.environ.get(variable, "")
        self._run = run
        self._socket: str | None = None
        self._is_closing = False

    def url(self) -> str:
        """Return the address of the server, which is started if need be."""
        with self._lock:
            self._url = self._url or self._block.enter_context(self._run())
            return self._url

    def listen(self) -> str:
        """Answer other processes from now on; return the name of the socket."""
        if self._socket is None:
            directory = self._block.enter_context(temporary_directory())
            self._socket = str(directory / "socket")
            listener = self._block.enter_context(Listener(self._socket, family="AF_UNIX", backlog=64))
            thread = threading.Thread(target=self._answer, args=(listener,), daemon=True)
            thread.start()
            self._block.callback(self._hang_up, self._socket, thread)
        return self._socket

    def close(self) -> None:
        """Stop the server, if it was started."""
        self._block.close()

    def _answer(self, listener: Listener) -> None:
        while True:
            with listener.accept() as caller:
                if self._is_closing:
                    return
                try:
                    caller.send(self.url())
                except ServerError as error:
                    caller.send(error)

    def _hang_up(self, name: str, thread: threading.Thread) -> None:
        """End the thread that answers: only a call wakes it."""
        self._is_closing = True
        Client(name, family="AF_UNIX").close()
        thread.join()


class SharedPostgres(SharedServer):
    """The PostgreSQL of a test run."""

    def __init__(self) -> None:
        super().__init__(POSTGRES_ADDRESS, _run_cheap_postgres)


@contextmanager
def _run_cheap_postgres() -> Iterator[str]:
    with temporary_postgres(durable=False) as server:
        yield server.url()


def ask_for_server(name: str) -> str:
    """Return the address of the server that the process listening at a socket shares."""
    with Client(name, family="AF_UNIX") as owner:
        answer = owner.recv()
    if isinstance(answer, ServerError):
        raise answer
    return str(answer)


@contextmanager
def temporary_postgres(*, durable: bool = True, settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """Run a server with an empty cluster for the length of a block."""
    with temporary_directory() as directory:
        server = PostgresServer(directory, durable=durable, settings=settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Make a directory that is removed after the block, and also when this process is killed inside it."""
    directory = Path(mkdtemp(prefix="hyperfleet-"))
    # `cat` ends when our end of the pipe closes, whatever closes it. The second try is for a killed server's last file.
    script = 'cat; rm -rf "$0" 2>&- || { sleep 2; rm -rf "$0"; }'
    remover = subprocess.Popen(  # noqa: S603 - a constant script
        ["/bin/sh", "-c", script, str(directory)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield directory
    finally:
        remover.communicate()


@contextmanager
def temporary_database(server: str) -> Iterator[str]:
    """Make an empty database on the server with this address; return the address of the database.

    Not for coroutines: it runs an event loop of its own.
    """
    name = f"hyperfleet_test_{uuid4().hex}"
    asyncio.run(_execute(server, f"CREATE DATABASE {name} TEMPLATE template0"))
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        asyncio.run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


def find_postgres() -> Path:
    """Return the directory with the binaries of PostgreSQL, the newest if there are several."""
    if os.environ.get(POSTGRES_BINARIES):
        places = [Path(os.environ[POSTGRES_BINARIES])]
    else:
        on_path = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
        places = on_path + sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place
    raise ServerMissingError(
        "PostgreSQL is not installed; to enable: "
        f"apt-get install postgresql, or {POSTGRES_ADDRESS}=postgresql://user:password@host:port/database"
    )


def _version(place: Path) -> int:
    """Return the major version that Debian has in the path, as /usr/lib/postgresql/15/bin."""
    return int(place.parent.name) if place.parent.name.isdigit() else 0


async def _execute(url: str, statement: str) -> None:
    asyncpg = importlib.import_module("asyncpg")  # takes 0.2 s, which most test runs need not spend
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def free_port() -> int:
    """Choose a port below those that the kernel gives to clients: it must stay free while the server is down."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def _kill_tree(pid: int) -> None:
    """Kill a child of ours and its children, and return when the latter are dead: they hold shared memory."""
    os.kill(pid, signal.SIGSTOP)  # so that it neither starts another one nor lets the id of a dead one go
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    handles = [os.pidfd_open(int(child)) for child in children]
    for handle in handles:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    for handle in handles:
        select.select([handle], [], [], _PATIENCE)
        os.close(handle)


def _is_root() -> bool:
    return os.geteuid() == 0
