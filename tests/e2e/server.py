"""A real `hyperfleet serve` for tests and for `bench/`: a process of its own, on a port of its own, with its log kept.

It can be started again after it stopped or was killed; each start gets another port. Nothing here knows pytest.
"""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import httpx

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 60.0  # seconds until something that must happen counts as not happening; machines may be busy

_LISTENING: Final = re.compile(r"\bListening on (https?)://127\.0\.0\.1:(\d+)\b")  # in whatever form the log has
# Where servers keep their bytecode, whatever the environment says of it: they are started many times.
_BYTECODE: Final = ROOT / ".pytest_cache" / "bytecode"

T = TypeVar("T")


class ServerGoneError(Exception):
    """The server ended while something was expected of it; the message is the end of its log."""


class Server:
    """One replica. It dies with the thread that called `start`."""

    def __init__(self, directory: Path, database: str, **settings: str) -> None:
        """Keep the log in `directory`; settings are named as environment variables are: `limits_max_depth="9"`."""
        self._directory = directory
        self._environment = _environment({"database": database, "listen": "127.0.0.1:0", **settings})
        self._log = directory / f"server-{id(self):x}.log"
        self._log_start = 0  # where the log of the present process begins
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.scheme = "http"
        self.tls: ssl.SSLContext | bool = True  # what clients know of certificates
        self.http = httpx.Client()  # for requests below `api`; a new one with each start

    @property
    def url(self) -> str:
        """Return the address of the process that runs now, or ran last."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        """Return the address below which the fleet is."""
        return f"{self.url}/api/hyperfleet/v1"

    @property
    def pid(self) -> int:
        """Return the number of the process that runs now."""
        return self._running().pid

    @property
    def log(self) -> str:
        """Return what the present process, or the last one, has said."""
        return self._log.read_bytes()[self._log_start :].decode() if self._log.exists() else ""

    def start(self) -> None:
        """Start, and return when it is ready for requests."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start without waiting."""
        if self._process is not None:
            raise RuntimeError("the server is running already")
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own command
                ["/usr/bin/env", "setpriv", "--pdeathsig=KILL", *command("serve")],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests
            )

    def await_ready(self) -> None:
        """Return when it is ready for requests."""
        self.port = self._await(self._find_port)
        self.http.close()
        self.http = httpx.Client(base_url=self.api, timeout=PATIENCE, verify=self.tls)
        self._await(self.is_ready)

    def is_ready(self) -> bool:
        """Tell whether it says that it can do its work."""
        try:
            return self.http.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def is_running(self) -> bool:
        """Tell whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def terminate(self) -> None:
        """Ask it to stop, as an orchestrator does; it has its time to finish."""
        self._running().terminate()

    def reload(self) -> None:
        """Ask it to read its policy again."""
        self._running().send_signal(signal.SIGHUP)

    def wait(self) -> int:
        """Wait until it has ended; return the exit code."""
        code = self._running().wait(PATIENCE)
        self._process = None
        self.http.close()
        return code

    def stop(self) -> int:
        """Stop in good order; return the exit code."""
        self.terminate()
        return self.wait()

    def kill9(self) -> None:
        """Kill it: nothing of it can finish anything."""
        self._running().kill()
        self.wait()

    def _find_port(self) -> int:
        said = _LISTENING.search(self.log)
        if said is None:
            return 0
        self.scheme = said[1]
        return int(said[2])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process

    def _await(self, look: Callable[[], T]) -> T:
        def look_at_the_living() -> T:
            found = look()
            if not found and not self.is_running():
                raise ServerGoneError(self.log[-4000:])
            return found

        return await_state(look_at_the_living)


@contextmanager
def running(directory: Path, database: str, **settings: str) -> Iterator[Server]:
    """Run a server for the length of a block, whatever becomes of it there."""
    server = Server(directory, database, **settings)
    try:
        server.start()
        yield server
    finally:
        if server.is_running():
            server.kill9()
        server.http.close()  # also if it was gone by itself, as with the thread that started it


def await_state(look: Callable[[], T]) -> T:
    """Return what `look` finds, as soon as it finds something."""
    limit = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > limit:
            raise TimeoutError(f"what was waited for did not happen; the last look found {found!r}")
        time.sleep(0.02)
    return found


def run_command(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `hyperfleet` with these arguments to its end."""
    return subprocess.run(  # noqa: S603  # our own command
        command(*arguments),
        env=_environment(settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def migrated(database: str) -> str:
    """Create the tables of a database; return its address."""
    done = run_command("db", "migrate", database=database)
    assert done.returncode == 0, done.stderr
    return database


def command(*arguments: str) -> list[str]:
    """Return the command line of `hyperfleet` in the environment that the tests run in."""
    return [str(Path(sys.executable).with_name("hyperfleet")), *arguments]


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return our environment with no settings of HyperFleet but these."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HYPERFLEET_")}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    given = {f"HYPERFLEET_{name.upper()}": value for name, value in settings.items()}
    return {**ours, "PYTHONPYCACHEPREFIX": str(_BYTECODE), **given}
