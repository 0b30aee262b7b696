"""Every command and where it is; listing them loads none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import click


class Entry(NamedTuple):  # importing a library for structs would take longer than all the rest of `--help`
    """A command: where it is, what it does, and with which others it is listed."""

    place: str  # `module:attribute`, below this package
    help: str
    section: str


_LOOK: Final = "Look"
_WATCH: Final = "Watch and wait"
_CHANGE: Final = "Change"
_RUN: Final = "Run and operate"
_SETUP: Final = "Set up this program"

COMMANDS: Final = {
    "get": Entry("get:get", "Show clusters, node pools and adapters.", _LOOK),
    "describe": Entry("describe:describe", "Show one cluster or node pool as a tree.", _LOOK),
    "explain": Entry("explain:explain", "Say why something is not ready, and what would help.", _LOOK),
    "problems": Entry("problems:problems", "Show what fails over the whole fleet, by cause.", _LOOK),
    "top": Entry("top:top", "Show adapters: when seen, what is lost, what they block.", _LOOK),
    "history": Entry("history:history", "Show what changed, when and why.", _LOOK),
    "diff": Entry("diff:diff", "Show what is different from before, or from another one.", _LOOK),
    "is-ready": Entry("ready:is_ready", "Tell whether something is ready, by the exit code.", _LOOK),
    "failed": Entry("failed:failed", "Show the adapters that failed, and why.", _LOOK),
    "progress": Entry("progress:progress", "Show how far each adapter is.", _LOOK),
    "watch": Entry("watch:watch", "Show resources, and each change as it comes.", _WATCH),
    "wait": Entry("wait:wait", "Wait until something is as you want it.", _WATCH),
    "events": Entry("events:events", "Write the log of everything that happens.", _WATCH),
    "create": Entry("create:create", "Create a cluster or a node pool.", _CHANGE),
    "apply": Entry("apply:apply", "Create or change what files describe.", _CHANGE),
    "edit": Entry("edit:edit", "Change something in your editor.", _CHANGE),
    "label": Entry("label:label", "Set and remove labels.", _CHANGE),
    "delete": Entry("delete:delete", "Delete clusters and node pools.", _CHANGE),
    "report": Entry("report:report", "Report as an adapter does, by hand or from a file.", _CHANGE),
    "serve": Entry("serve:serve", "Run the server.", _RUN),
    "demo": Entry("demo:demo", "Run a server with a fleet that lives, to try things out.", _RUN),
    "sim": Entry("sim:sim", "Let simulated adapters work on a fleet.", _RUN),
    "db": Entry("db:db", "Look after the database.", _RUN),
    "rules": Entry("rules:rules", "Check policies and try out expressions.", _RUN),
    "token": Entry("token:token", "Make tokens for people and adapters.", _RUN),
    "config": Entry("config:config", "Set up servers to speak to, and tokens.", _SETUP),
    "completion": Entry("completion:completion", "Let your shell complete commands and names.", _SETUP),
    "doctor": Entry("doctor:doctor", "Check that everything is well between here and the server.", _SETUP),
    "version": Entry("version:version", "Show the versions of this program and of the server.", _SETUP),
}


class UnreadError(Exception):
    """Whoever read our output stopped."""


@contextmanager
def _telling_pipes() -> Iterator[None]:
    """Raise an error of our own for a closed pipe: click would end with the code that means "no" here."""
    try:
        yield
    except BrokenPipeError:
        raise UnreadError from None


class LazyGroup(click.Group):
    """A group whose commands are imported when somebody runs them or asks for their help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(importlib.import_module(f"hyperfleet.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant; say what may be meant if there is none."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=3)
            guess = f" Did you mean {' or '.join(close)}?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Read the options before the command; `--help` writes at once."""
        with _telling_pipes():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        with _telling_pipes():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in COMMANDS.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        for section, commands in sections.items():
            with formatter.section(section):
                formatter.write_dl(commands, col_max=12)
