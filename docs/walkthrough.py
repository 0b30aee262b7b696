"""Record docs/walkthrough.md: its commands are run against a server whose clock is set by hand, the same every time.

Notes of the page for us: `pass 3m` lets time pass; `meanwhile COMMAND` is what somebody else does while the next
command watches, one for each; the last of them ends it with Ctrl-C.
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
_EVENTS = ("event: synced", "event: modified")  # of a watch: that it shows everything, and what comes after


def walkthrough_text() -> str:
    """Return the page with everything that its commands write."""
    with open_terminal() as terminal:
        recorder = _Recorder(terminal)
        return rewrite(PAGE.read_text(), recorder.run, recorder.take_note)


class _Recorder:
    """Somebody who types what stands on the page."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._meanwhile: list[str] = []

    def take_note(self, note: str) -> None:
        """Let time pass, or remember what somebody else will do."""
        word, _, rest = note.partition(" ")
        if word == "pass":
            self._terminal.pass_time(seconds=parse_duration(rest).total_seconds())
        elif word == "meanwhile":
            self._meanwhile.append(rest)

    def run(self, command: str) -> str:
        """Run a command; return what a terminal would show."""
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
        steps = [(_EVENTS[bool(index)], partial(self._meddle, each)) for index, each in enumerate(meanwhile)]
        return [*steps, (_EVENTS[1], nothing)]

    def _meddle(self, command: str) -> None:
        """Do what somebody else does, unseen; a while has passed since the last one."""
        self.take_note("pass 20s")
        self.run(command)
