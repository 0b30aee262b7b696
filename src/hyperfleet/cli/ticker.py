"""A progress line on stderr that is overwritten, and removed at the end."""

from __future__ import annotations

import sys
from typing import Self

import click

_OVER = "\r\x1b[K"  # return to the beginning of the line, and clear it


class Ticker:
    """Shows progress during a block, on a terminal only."""

    def __enter__(self) -> Self:
        """Check whether stderr is a terminal."""
        self._is_shown = sys.stderr.isatty()
        return self

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._is_shown:
            click.echo(f"{_OVER}{text}", nl=False, err=True)

    def __exit__(self, *_: object) -> None:
        """Clear the line."""
        if self._is_shown:
            click.echo(_OVER, nl=False, err=True)
