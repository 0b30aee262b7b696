"""Console blocks of pages: the commands in them are run, and what they wrote stands below them.

    ```console
    $ hyperfleet get clusters          a command; `> ` begins a line that goes on with it
    NAME       PHASE   …               what it wrote
    ```

A page is its own source: people write text and commands, `rewrite` fills in the rest. A comment `<!-- … -->` of its own
line may tell the one who runs the commands something that readers need not see. `walkthrough` and tests use this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_PART = re.compile(r"^```console\n(?P<block>.*?)^```$|^<!-- (?P<note>.*?) -->$", re.DOTALL | re.MULTILINE)

Run = Callable[[str], str]


def rewrite(page: str, run: Run, take_note: Callable[[str], None] = lambda note: None) -> str:
    """Return a page with what its commands write now, run in the order in which they stand."""

    def fill_in(match: re.Match[str]) -> str:
        if match["note"] is not None:
            take_note(match["note"])
            return match[0]
        return f"```console\n{''.join(_perform(command, run) for command in commands_of(match['block']))}```"

    return _PART.sub(fill_in, page)


def commands_of(block: str) -> Iterator[str]:
    """Yield the commands of a block, each as it would be typed."""
    command: list[str] = []
    is_typed = False  # whether the line before was typed, and not written
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
