"""Record docs/walkthrough.md: its commands are run against a server with a manual clock, so the output is repeatable.

Notes on the page: `pass 3m` advances the clock; `meanwhile COMMAND` is run by another user while the next command
watches, one per event; Ctrl-C follows the last one.
"""

from __future__ import annotations

import contextlib
import shlex
from functools import partial
from pathlib import Path

from docs.consoles import rewrite
from hyperfleet.documents.durations import parse_duration
from tests.unit.cli.terminal import Step, Terminal, nothing, open_terminal

PAGE = Path(__file__).parent / "walkthrough.md"
_ROOT = Path(__file__).parent.parent
_EVENTS = ("event: synced", "event: modified")  # of a watch: the end of the list, and a change


def walkthrough_text() -> str:
    """Return the page with the output of its commands."""
    with open_terminal() as terminal:
        recorder = _Recorder(terminal)
        return rewrite(PAGE.read_text(), recorder.run, recorder.take_note)


class _Recorder:
    """Runs the commands of the page."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._meanwhile: list[str] = []

    def take_note(self, note: str) -> None:
        """Advance the clock, or remember a command of another user."""
        word, _, rest = note.partition(" ")
        if word == "pass":
            self._terminal.pass_time(seconds=parse_duration(rest).total_seconds())
        elif word == "meanwhile":
            self._meanwhile.append(rest)

    def run(self, command: str) -> str:
        """Run a command; return its output."""
        program, *arguments = shlex.split(command, comments=True)
        if program == "cat":
            return (_ROOT / arguments[0]).read_text()
        with contextlib.chdir(_ROOT):
            done = self._terminal.run(*arguments, then=self._steps())
        return done.out + done.err.removeprefix("\n")

    def _steps(self) -> list[Step]:
        meanwhile, self._meanwhile = self._meanwhile, []
        if not meanwhile:
            return []
        steps = [(_EVENTS[bool(index)], partial(self._run_meanwhile, each)) for index, each in enumerate(meanwhile)]
        return [*steps, (_EVENTS[1], nothing)]

    def _run_meanwhile(self, command: str) -> None:
        """Run a command of another user, 20 s after the previous one."""
        self.take_note("pass 20s")
        self.run(command)
