"""What a command knows of where it runs: environment, clock, terminal, and the options that every command has.

One is made for each run and handed to commands by click (`pass_session`). Tests make their own, with a clock that
stands still. Every start of the program imports this, so it imports next to nothing.
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
from hyperfleet.cli.printable import tame

if TYPE_CHECKING:
    import httpx

    from hyperfleet.cli.connection import Connection
    from hyperfleet.client import Fleet


def _now() -> datetime:
    return datetime.now(UTC)


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Tell whether to colour: on a terminal that can, unless NO_COLOR is set (https://no-color.org)."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


class Session:
    """One run of the program."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], datetime] = _now,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Take the environment, the clock and sockets from the machine, unless told otherwise."""
        self.environment = environment
        self.now = clock
        self._transport = transport
        self.flags = Flags()

    @cached_property
    def connection(self) -> Connection:
        """Return which server to speak to, and how."""
        from hyperfleet.cli.connection import choose

        return choose(self.flags, self.environment)

    @property
    def has_default_server(self) -> bool:
        """Tell whether we speak, or spoke, to a server that nobody named."""
        return "connection" in self.__dict__ and self.connection.origin == "default"

    def open(self, *, is_patient: bool = False) -> Fleet:
        """Open the client (use it in a `with`). A patient one comes back for as long as the server is away."""
        from hyperfleet.cli.connection import open_fleet

        return open_fleet(self.connection, self.flags, is_patient=is_patient, transport=self._transport)

    def open_hasty(self) -> Fleet:
        """Open a client that asks once and does not wait long: for what a shell completes."""
        from hyperfleet.cli.connection import open_hasty

        return open_hasty(self.connection, self._transport)

    def read_server_clock(self) -> datetime | None:
        """Return what time it is at the server, to the second; None: it does not say."""
        from hyperfleet.cli.connection import read_server_clock

        return read_server_clock(self.connection)

    @property
    def is_terminal(self) -> bool:
        """Tell whether a person reads what we write on stdout."""
        return sys.stdout.isatty()

    @property
    def can_ask(self) -> bool:
        """Tell whether a person can answer questions."""
        return sys.stdin is not None and sys.stdin.isatty()

    @property
    def width(self) -> int | None:
        """Return how wide the terminal is; None: there is none."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def has_colour(self) -> bool:
        """Tell whether stdout gets colours."""
        return wants_colour(self.is_terminal, self.environment)

    def write(self, *lines: str) -> None:
        """Write lines of data on stdout, at once."""
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def write_all(self, lines: Iterable[str]) -> None:
        """Write many lines of data."""
        self.write(*lines)

    def say(self, sentence: str) -> None:
        """Say something to a person, on stderr; a part of it may be somebody else's."""
        click.echo("\n".join(map(tame, sentence.split("\n"))), err=True)


pass_session = click.make_pass_decorator(Session, ensure=True)
