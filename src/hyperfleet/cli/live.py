"""Live views: redrawn in place on a terminal, written one after the other elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession


class Frames:
    """A sequence of frames. On a terminal each one replaces the previous one."""

    def __init__(self, session: CliSession, separator: str = "") -> None:
        """Begin without a frame; `separator` is the line between frames when they are not replaced."""
        self._session = session
        self._separator = separator
        self._live: Any = None
        self._count = 0
        self._last: Sequence[str] = ()

    def __enter__(self) -> Self:
        """Start the live display, if there is a terminal."""
        if self._session.is_terminal:
            from rich.console import Console
            from rich.live import Live

            console = Console(no_color=not self._session.has_colour, highlight=False)
            self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
        return self

    def show(self, lines: Sequence[str]) -> None:
        """Show a frame; without a terminal, a frame equal to the previous one is skipped."""
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text.from_ansi("\n".join(lines), no_wrap=True), refresh=True)
        elif lines != self._last:
            if self._count:
                self._session.write(self._separator)
            self._session.write(*lines)
        self._count += 1
        self._last = lines

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop, with the last frame left on the terminal."""
        if self._live is not None:
            self._live.stop()
