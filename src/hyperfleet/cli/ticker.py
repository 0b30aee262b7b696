"""A line on the terminal that says how far something is: written over itself on stderr, and gone in the end."""

from __future__ import annotations

import sys
from typing import Self

import click

_OVER = "\r\x1b[K"  # go to the beginning of the line, and wipe it


class Ticker:
    """Shows how far something is, while a block lasts; nothing where nobody would see it."""

    def __enter__(self) -> Self:
        """Look whether somebody would."""
        self._is_shown = sys.stderr.isatty()
        return self

    def show(self, text: str) -> None:
        """Write over what stood there."""
        if self._is_shown:
            click.echo(f"{_OVER}{text}", nl=False, err=True)

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        if self._is_shown:
            click.echo(_OVER, nl=False, err=True)
