"""The environment of a command: variables, clock, terminal, and the global options.

There is one per run; click passes it to commands (`pass_session`). Tests make their own, with a fixed clock. Every
start of the program imports this module, so it imports little.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import click

from hyperfleet.cli.flags import Flags
from hyperfleet.cli.sanitizing import sanitize

if TYPE_CHECKING:
    import httpx

    from hyperfleet.cli.connection import ServerConnection
    from hyperfleet.client import Fleet


def _now() -> datetime:
    return datetime.now(UTC)


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Tell whether to colour: on a terminal that can, unless NO_COLOR is set (https://no-color.org)."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


class CliSession:
    """One run of the program."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], datetime] = _now,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Use the machine's environment, clock and sockets by default."""
        self.environment = environment
        self.now = clock
        self._transport = transport
        self.flags = Flags()

    @cached_property
    def connection(self) -> ServerConnection:
        """Return the server to connect to, and how."""
        from hyperfleet.cli.connection import choose

        return choose(self.flags, self.environment)

    @property
    def has_default_server(self) -> bool:
        """Return whether the server is the default one, which nobody named."""
        return "connection" in self.__dict__ and self.connection.origin == "default"

    def open(self, *, is_persistent: bool = False) -> Fleet:
        """Open the client (use it in a `with`). A persistent one retries for as long as the server is away."""
        from hyperfleet.cli.connection import open_fleet

        return open_fleet(self.connection, self.flags, is_persistent=is_persistent, transport=self._transport)

    def open_for_completion(self) -> Fleet:
        """Open a client with a short timeout and no retries, for shell completion."""
        from hyperfleet.cli.connection import open_for_completion

        return open_for_completion(self.connection, self._transport)

    def read_server_clock(self) -> datetime | None:
        """Return the server's time, to the second; None: unknown."""
        from hyperfleet.cli.connection import read_server_clock

        return read_server_clock(self.connection)

    @property
    def is_terminal(self) -> bool:
        """Return whether stdout is a terminal."""
        return sys.stdout.isatty()

    @property
    def can_ask(self) -> bool:
        """Return whether a person can answer questions."""
        return sys.stdin is not None and sys.stdin.isatty()

    @property
    def width(self) -> int | None:
        """Return the width of the terminal; None: there is none."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def has_colour(self) -> bool:
        """Tell whether stdout gets colours."""
        return wants_colour(self.is_terminal, self.environment)

    def write(self, *lines: str) -> None:
        """Write lines of data to stdout, and flush."""
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def write_all(self, lines: Iterable[str]) -> None:
        """Write many lines of data."""
        self.write(*lines)

    def message(self, sentence: str) -> None:
        """Print a message for a person on stderr; parts of it may come from the server, so it is sanitized."""
        click.echo("\n".join(map(sanitize, sentence.split("\n"))), err=True)


pass_session = click.make_pass_decorator(CliSession, ensure=True)
