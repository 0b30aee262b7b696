"""A private RabbitMQ for tests and for `bench/`: reached over loopback only, gone when its user is gone.

As `servers.py` it knows no pytest, and touches no server of others but the one that `HYPERFLEET_TEST_RABBITMQ` names.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.servers import ServerError, ServerMissingError, SharedServer, free_port, temporary_directory

RABBIT_ADDRESS: Final = "HYPERFLEET_TEST_RABBITMQ"  # a server to use instead of a private one
RABBIT_SCRIPTS: Final = "HYPERFLEET_TEST_RABBITMQ_BIN"  # the only directory to look for the scripts in

_PATIENCE: Final = 120.0  # seconds; a start takes 5, on a busy machine many more
_CONFIGURATION: Final = """\
default_user = {user}
default_pass = {password}
log.console = true
log.console.level = warning
log.file = false
# The disk of a machine for tests may be small; it is not what is tested.
disk_free_limit.absolute = 1MB
raft.wal_max_size_bytes = 16000000
"""


class RabbitServer:
    """A node in a directory of its own, with an epmd of its own. Both die with the thread that called `start`."""

    user: Final = "fleet"

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        self.port: Final = free_port()
        self.password = secrets.token_hex(16)
        self._scripts: Final = find_rabbit()
        self._epmd_port: Final = free_port()
        self._distribution_port: Final = free_port()
        self._log: Final = directory / "log"
        self._epmd: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return its address."""
        return f"amqp://{self.user}:{self.password}@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start, and return when connections are accepted."""
        if self._process is not None:
            raise ServerError("RabbitMQ is running already")
        configuration = self.directory / "rabbitmq.conf"
        if not configuration.exists():
            configuration.write_text(_CONFIGURATION.format(user=self.user, password=self.password))
            (self.directory / "enabled_plugins").write_text("[].\n")
        if self._epmd is None:
            # Without one of ours the node would leave one behind, reachable from everywhere.
            self._epmd = self._run(str(shutil.which("epmd")), "-port", str(self._epmd_port), "-address", "127.0.0.1")
        self._process = self._run(str(self._scripts / "rabbitmq-server"))
        self._await_ready(self._process)

    def stop(self) -> None:
        """Stop in good order, if it runs; clients are disconnected."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(_PATIENCE)
            self._process = None

    def kill9(self) -> None:
        """Kill the node at once: it cannot finish anything."""
        if self._process is None:
            raise ServerError("RabbitMQ is not running")
        self._process.kill()
        self._process.wait(_PATIENCE)
        self._process = None

    def close(self) -> None:
        """Stop everything."""
        self.stop()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(_PATIENCE)
            self._epmd = None

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl; return what it prints."""
        command = [str(self._scripts / "rabbitmqctl"), "--quiet", *arguments]
        done = subprocess.run(command, env=self._environment(), capture_output=True, text=True, check=False)  # noqa: S603 - as found
        if done.returncode:
            raise ServerError(f"rabbitmqctl {arguments[0]} failed:\n{done.stderr}{done.stdout}")
        return done.stdout

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - what find_rabbit found
                [str(shutil.which("setpriv")), "--pdeathsig=KILL", *command],
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which still need the server to tidy up
            )

    def _environment(self) -> dict[str, str]:
        only_loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.directory),  # the cookie is there
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",  # not that of the machine
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "enabled_plugins"),
            "RABBITMQ_NODENAME": f"fleet{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "data"),
            "RABBITMQ_LOG_BASE": str(self.directory),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": only_loopback,
            "RABBITMQ_CTL_ERL_ARGS": only_loopback,
            "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the node, so that signals reach it
        }

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        limit = time.monotonic() + _PATIENCE
        while not self._is_ready():
            if process.poll() is not None or time.monotonic() > limit:
                process.kill()
                process.wait()
                self._process = None
                raise ServerError(f"RabbitMQ did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class SharedRabbit(SharedServer):
    """The RabbitMQ of a test run."""

    def __init__(self) -> None:
        super().__init__(RABBIT_ADDRESS, _run_rabbit)


@contextmanager
def temporary_rabbit() -> Iterator[RabbitServer]:
    """Run a server with nothing in it for the length of a block."""
    with temporary_directory() as directory:
        server = RabbitServer(directory)
        try:
            server.start()
            yield server
        finally:
            server.close()


@contextmanager
def _run_rabbit() -> Iterator[str]:
    with temporary_rabbit() as server:
        yield server.url


def find_rabbit() -> Path:
    """Return the directory with the scripts of RabbitMQ. Those on the path of Debian insist on a user of theirs."""
    only = os.environ.get(RABBIT_SCRIPTS)
    found = shutil.which("rabbitmq-server")
    places = (
        [Path(only)] if only else [Path("/usr/lib/rabbitmq/bin"), *([Path(found).resolve().parent] if found else [])]
    )
    for place in places:
        if (place / "rabbitmq-server").exists() and shutil.which("epmd"):
            return place
    raise ServerMissingError(
        "RabbitMQ is not installed; to enable: "
        f"apt-get install rabbitmq-server, or {RABBIT_ADDRESS}=amqp://user:password@host:port/vhost"
    )
