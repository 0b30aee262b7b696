"""Google Pub/Sub for tests: Google's own in-memory server, which `.ci/servers` builds. Nothing here knows pytest."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.programs import find_program
from tests.servers import ServerError, ServerMissingError, free_port

PUBSUB_ADDRESS: Final = "HYPERFLEET_TEST_PUBSUB"  # HOST:PORT of an emulator to use instead of a private one
_PROGRAM: Final = "HYPERFLEET_TEST_PSTEST"


class PubSubServer:
    """A private server on a loopback port, which it keeps. What is in it is lost when it stops."""

    def __init__(self) -> None:
        self._program: Final = find_pstest()
        self._process: subprocess.Popen[str] | None = None
        self._port: Final = free_port()

    @property
    def address(self) -> str:
        """Return HOST:PORT."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start, and return when connections are accepted."""
        self._process = subprocess.Popen(  # noqa: S603 - the program that find_pstest found
            [self._program, str(self._port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.stop()
            raise ServerError("pstest did not start")

    def stop(self) -> None:
        """Stop, if it runs; connections break."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


@contextmanager
def temporary_pubsub() -> Iterator[PubSubServer]:
    """Run a server for the length of a block. It ends with this process in any case: its standard input ends then."""
    server = PubSubServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def find_pstest() -> str:
    """Return the program."""
    program = find_program("pstest", _PROGRAM)
    if program is None:
        raise ServerMissingError(
            f"pstest was not found; to enable: .ci/servers, or name an emulator of Google Pub/Sub in {PUBSUB_ADDRESS}"
        )
    return program


def named_address() -> str | None:
    """Return the address of the server that the environment names."""
    return os.environ.get(PUBSUB_ADDRESS) or None
