"""The command `hyperfleet`: nouns and verbs, data on stdout, words for people on stderr.

Commands are listed in `table` and loaded when they run, so that `--help` stays fast. In the order a newcomer meets the
rest: `session` is what a command knows of where it runs, `command` how one is declared, `options` what several of them
take, `connection` and `contexts` find the server, `resources` finds what is meant by a name, `output` writes what was
found, `failures` says what went wrong, and `exits` has every exit code.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from hyperfleet import __version__
from hyperfleet.cli import failures
from hyperfleet.cli.command import HELP, connected
from hyperfleet.cli.exits import OK, UNAVAILABLE, UNREAD
from hyperfleet.cli.session import Session
from hyperfleet.cli.table import LazyGroup, UnreadError


@click.command(cls=LazyGroup, context_settings=dict(HELP))
@click.version_option(__version__, prog_name="hyperfleet")
@connected
def command() -> None:
    """Know and tell the status of a fleet of Kubernetes clusters."""


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:], Session()))


def run(arguments: Sequence[str], session: Session) -> int:
    """Run a command line; return the exit code. No traceback reaches a person."""
    _prepare_streams()
    try:
        command.main(list(arguments), prog_name="hyperfleet", standalone_mode=False, obj=session)
        sys.stdout.flush()
    except (UnreadError, BrokenPipeError):
        _drop(sys.stdout)
        return UNREAD
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else OK
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the outermost edge: everything ends as a sentence
        if isinstance(error, OSError):
            _drop(sys.stdout)  # it may be what could not be written
        return _tell(error, session)
    return OK


def _tell(error: BaseException, session: Session) -> int:
    """Say what went wrong; return the exit code."""
    try:
        code = failures.tell(error, debug=session.flags.debug)
        if code == UNAVAILABLE and session.has_default_server:
            session.say(
                "No server was named, so this one was tried; start it with `hyperfleet serve`, or use --server."
            )
    except OSError:  # nobody reads that either
        _drop(sys.stderr)
        return UNREAD
    return code


def _prepare_streams() -> None:
    """Write a question mark for what a terminal has no character for; write nowhere if a stream is closed."""
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _drop(stream: TextIO) -> None:
    """Send what is still to be written nowhere: Python would try again at the end, and complain on its own."""
    with contextlib.suppress(ValueError):  # it may be no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
