"""Console blocks of pages: the commands in them are run, and their output is put below them.

    ```console
    $ hyperfleet get clusters          a command; `> ` begins a continuation line
    NAME       PHASE   …               its output
    ```

A page is its own source: people write text and commands, `rewrite` fills in the output. A comment `<!-- … -->` on a
line of its own is a note for the program that runs the commands. `walkthrough` and tests use this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_PART = re.compile(r"^```console\n(?P<block>.*?)^```$|^<!-- (?P<note>.*?) -->$", re.DOTALL | re.MULTILINE)

Run = Callable[[str], str]


def rewrite(page: str, run: Run, take_note: Callable[[str], None] = lambda note: None) -> str:
    """Run the commands of a page in order; return the page with their output."""

    def fill_in(match: re.Match[str]) -> str:
        if match["note"] is not None:
            take_note(match["note"])
            return match[0]
        return f"```console\n{''.join(_perform(command, run) for command in commands_of(match['block']))}```"

    return _PART.sub(fill_in, page)


def commands_of(block: str) -> Iterator[str]:
    """Yield the commands of a block, each as it would be typed."""
    command: list[str] = []
    is_typed = False  # whether the previous line was a command, not output
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command)
            command, is_typed = [line[2:]], True
        elif line.startswith("> ") and is_typed:
            command.append(line[2:])
        else:
            is_typed = False
    if command:
        yield "\n".join(command)


def _perform(command: str, run: Run) -> str:
    first, *more = command.split("\n")
    typed = "".join(["$ ", first, "\n", *(f"> {line}\n" for line in more)])
    written = run(command)
    return typed + (written if not written or written.endswith("\n") else f"{written}\n")
