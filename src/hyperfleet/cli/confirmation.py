"""Questions that want a yes before something is done that cannot be undone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hyperfleet.cli.failures import Misuse

if TYPE_CHECKING:
    from hyperfleet.cli.session import Session


def confirm(session: Session, question: str) -> bool:
    """Ask on stderr; where nobody can answer, say how to go on without."""
    if not session.can_ask:
        raise Misuse(f"{question} Nobody is there to answer; say yes beforehand with --yes")
    click.echo(f"{question} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
