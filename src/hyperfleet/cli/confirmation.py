"""Confirmation of actions that cannot be undone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hyperfleet.cli.failures import Misuse

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession


def confirm(session: CliSession, question: str) -> bool:
    """Ask on stderr; without a terminal, fail and mention --yes."""
    if not session.can_ask:
        raise Misuse(f"{question} There is no terminal to ask; confirm with --yes")
    click.echo(f"{question} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
