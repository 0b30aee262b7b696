"""The command `hyperfleet`: nouns and verbs, data on stdout, words for people on stderr.

Commands are listed here and loaded when they run, so that `--help` stays fast. `exits` has every exit code.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Final

import click

from hyperfleet import __version__
from hyperfleet.cli.exits import INTERRUPTED, UNREAD, USAGE
from hyperfleet.errors import HyperFleetError

# name → (module, attribute, help); the help stands here so that listing loads nothing.
_COMMANDS: Final = {
    "serve": ("hyperfleet.cli.serve", "serve", "Run the server."),
    "db": ("hyperfleet.cli.db", "db", "Look after the database."),
    "token": ("hyperfleet.cli.token", "token", "Make tokens for callers."),
    "rules": ("hyperfleet.cli.rules", "rules", "Check policies and try out expressions."),
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when somebody runs them or asks for their help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; click itself would end a closed pipe with the code that means "no" here."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            raise click.exceptions.Exit(UNREAD) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in _COMMANDS.items()])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hyperfleet")
def command() -> None:
    """Know and tell the status of a fleet of Kubernetes clusters."""


def main() -> None:
    """Run the command; no traceback reaches a person for what a person can cause."""
    try:
        sys.exit(command.main(standalone_mode=False))
    except click.ClickException as error:
        error.show(sys.stderr)
        sys.exit(error.exit_code)
    except HyperFleetError as error:
        for each in (error, *getattr(error, "others", ())):
            click.echo(f"Error: {each}", err=True)
        sys.exit(USAGE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except OSError as error:
        _drop_output()
        click.echo(f"Error: {error.strerror or error}", err=True)
        sys.exit(USAGE)


def _drop_output() -> None:
    """Send what is still to be written nowhere: Python would try again at the end, and complain on its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
