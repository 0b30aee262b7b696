"""Transcripts: command lines and exactly what they write, kept in files and run again by tests.

    $ hyperfleet get clusters        what was typed
    NAME …                           what came on stdout
    ! No clusters found.             what came on stderr
    [exit 4]                         the exit code, if it is not 0

Write them anew with `HYPERFLEET_TEST_WRITE_GOLDEN=1 pytest tests/unit/cli/test_golden.py`, and read the difference.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from docs.cli_pages import walk_commands
from hyperfleet.cli.options import FormatType
from tests.unit.cli.terminal import Terminal

GOLDEN = Path(__file__).parent / "golden"
_PROMPT = "$ hyperfleet"


def commands_of(text: str) -> list[str]:
    """Return the command lines of a transcript."""
    return [line[2:] for line in text.splitlines() if line.startswith(_PROMPT)]


def transcribe(terminal: Terminal, commands: list[str]) -> str:
    """Run command lines, one after the other, and write down what happens."""
    return "\n".join(_transcribe(terminal, command) for command in commands)


def _transcribe(terminal: Terminal, command: str) -> str:
    done = terminal.run(*shlex.split(command)[1:])
    said = "".join(f"! {line}\n" for line in done.err.splitlines())
    ended = f"[exit {done.code}]\n" if done.code else ""
    return f"$ {command}\n{_complete(done.out)}{said}{ended}"


def _complete(text: str) -> str:
    """Mark an end without the end of a line, so that it can be seen."""
    return text if not text or text.endswith("\n") else f"{text}⏎ missing\n"


def missing_formats(file: Path) -> set[str]:
    """Return the formats of a command that its transcript does not show; the first is that without -o."""
    parameters = [
        each for path, command in walk_commands() if path.rpartition(" ")[2] == file.stem for each in command.params
    ]
    formats = [each.type.names for each in parameters if isinstance(each.type, FormatType)]
    shown = set(re.findall(r" -o ([a-z-]+)", "\n".join(commands_of(file.read_text()))))
    return {name for names in formats for name in names[1:]} - shown
