"""Every command and its module; listing them imports none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import click


class CommandEntry(NamedTuple):  # importing msgspec would take longer than the rest of `--help`
    """A command: its module, its help, and its section in the list."""

    place: str  # `module:attribute`, below this package
    help: str
    section: str


_LOOK: Final = "Look"
_WATCH: Final = "Watch and wait"
_CHANGE: Final = "Change"
_RUN: Final = "Run and operate"
_SETUP: Final = "Set up this program"

COMMANDS: Final = {
    "get": CommandEntry("get:get", "Show clusters, node pools and adapters.", _LOOK),
    "describe": CommandEntry("describe:describe", "Show one cluster or node pool as a tree.", _LOOK),
    "explain": CommandEntry("explain:explain", "Explain why something is not ready, and what would fix it.", _LOOK),
    "problems": CommandEntry("problems:problems", "Show what fails in the whole fleet, by cause.", _LOOK),
    "top": CommandEntry("top:top", "Show adapters: last report, lost reports, what they block.", _LOOK),
    "history": CommandEntry("history:history", "Show what changed, when and why.", _LOOK),
    "diff": CommandEntry("diff:diff", "Show differences from an earlier time, or from another resource.", _LOOK),
    "is-ready": CommandEntry("ready:is_ready", "Check whether something is ready, by the exit code.", _LOOK),
    "failed": CommandEntry("failed:failed", "Show the adapters that failed, and why.", _LOOK),
    "progress": CommandEntry("progress:progress", "Show the progress of each adapter.", _LOOK),
    "watch": CommandEntry("watch:watch", "Show resources, and each change as it happens.", _WATCH),
    "wait": CommandEntry("wait:wait", "Wait until resources reach a state.", _WATCH),
    "events": CommandEntry("events:events", "Write the log of changes.", _WATCH),
    "create": CommandEntry("create:create", "Create a cluster or a node pool.", _CHANGE),
    "apply": CommandEntry("apply:apply", "Create or update what files describe.", _CHANGE),
    "edit": CommandEntry("edit:edit", "Change a resource in your editor.", _CHANGE),
    "label": CommandEntry("label:label", "Set and remove labels.", _CHANGE),
    "reconcile": CommandEntry("reconcile:reconcile", "Ask adapters to look at clusters again.", _CHANGE),
    "delete": CommandEntry("delete:delete", "Delete clusters and node pools.", _CHANGE),
    "report": CommandEntry("report:report", "Send reports like an adapter, by hand or from a file.", _CHANGE),
    "serve": CommandEntry("serve:serve", "Run the server.", _RUN),
    "adapter": CommandEntry("adapter:adapter", "Write and check adapters that are YAML files.", _RUN),
    "sentinel": CommandEntry("sentinel:sentinel", "Ask adapters to look at what nobody looked at.", _RUN),
    "demo": CommandEntry("demo:demo", "Run a server with a simulated fleet, to try things out.", _RUN),
    "sim": CommandEntry("sim:sim", "Run simulated adapters and people against a server.", _RUN),
    "pubsub": CommandEntry("pubsub:pubsub", "Look after events: topics, subscriptions, dead letters.", _RUN),
    "db": CommandEntry("db:db", "Manage the database.", _RUN),
    "rules": CommandEntry("rules:rules", "Check policies and evaluate expressions.", _RUN),
    "webhooks": CommandEntry("webhooks:webhooks", "See and repair webhooks.", _RUN),
    "token": CommandEntry("token:token", "Create tokens for people and adapters.", _RUN),
    "config": CommandEntry("config:config", "Configure servers and tokens.", _SETUP),
    "completion": CommandEntry("completion:completion", "Set up shell completion of commands and names.", _SETUP),
    "doctor": CommandEntry("doctor:doctor", "Check configuration, connection and server.", _SETUP),
    "version": CommandEntry("version:version", "Show the versions of this program and of the server.", _SETUP),
}


class OutputClosedError(Exception):
    """The reader of stdout closed it."""


@contextmanager
def _translating_broken_pipes() -> Iterator[None]:
    """Raise `OutputClosedError` for a closed pipe: click would exit with 1, which means "no" here."""
    try:
        yield
    except BrokenPipeError:
        raise OutputClosedError from None


class LazyGroup(click.Group):
    """A group whose commands are imported when they run or show their help."""

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
        """Find a command; fail with suggestions if there is none."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=3)
            guess = f" Did you mean {' or '.join(close)}?" if close else ""
            raise click.UsageError(f"No such command '{name}'.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Parse the options before the command; `--help` writes here."""
        with _translating_broken_pipes():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        with _translating_broken_pipes():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in COMMANDS.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        for section, commands in sections.items():
            with formatter.section(section):
                formatter.write_dl(commands, col_max=12)
