"""The command `hyperfleet`: verbs and nouns, data on stdout, messages for people on stderr.

Commands are listed in `table` and loaded when they run, so that `--help` stays fast. The rest, in reading order:
`session` is the environment of a command, `command` how one is declared, `options` has shared options, `connection` and
`contexts` choose the server, `resources` resolves names, `output` formats results, `failures` reports errors, and
`exits` has every exit code.
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
from hyperfleet.cli.session import CliSession
from hyperfleet.cli.table import LazyGroup, OutputClosedError


@click.command(cls=LazyGroup, context_settings=dict(HELP))
@click.version_option(__version__, prog_name="hyperfleet")
@connected
def command() -> None:
    """Show and manage the status of a fleet of Kubernetes clusters."""


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:], CliSession()))


def run(arguments: Sequence[str], session: CliSession) -> int:
    """Run a command line; return the exit code. No traceback reaches a person."""
    _prepare_streams()
    try:
        command.main(list(arguments), prog_name="hyperfleet", standalone_mode=False, obj=session)
        sys.stdout.flush()
    except (OutputClosedError, BrokenPipeError):
        _drop(sys.stdout)
        return UNREAD
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else OK
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the outermost edge: every error becomes a message
        if isinstance(error, OSError):
            _drop(sys.stdout)  # stdout may be what could not be written
        return _report(error, session)
    return OK


def _report(error: BaseException, session: CliSession) -> int:
    """Report an error; return the exit code."""
    try:
        code = failures.report(error, debug=session.flags.debug)
        if code == UNAVAILABLE and session.has_default_server:
            session.message(
                "This is the default server; start it with `hyperfleet serve`, or choose another with --server."
            )
    except OSError:  # stderr is closed, too
        _drop(sys.stderr)
        return UNREAD
    return code


def _prepare_streams() -> None:
    """Replace characters that the terminal cannot show; discard output to a closed stream."""
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _drop(stream: TextIO) -> None:
    """Discard buffered output: Python would flush it at exit, and print an error of its own."""
    with contextlib.suppress(ValueError):  # it may not be a file
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
