"""The output of commands in every format, byte by byte: the transcripts in `golden`, with a fixed clock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperfleet.cli.table import COMMANDS
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal
from tests.unit.cli.transcripts import GOLDEN, commands_of, missing_formats, transcribe

WRITES = os.environ.get("HYPERFLEET_TEST_WRITE_GOLDEN") == "1"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.txt")), ids=lambda file: file.stem)
def test_transcript(file: Path, terminal: Terminal, scene: Scene) -> None:
    expected = file.read_text()
    written = transcribe(terminal, commands_of(expected))
    if WRITES:
        file.write_text(written)
    assert written == expected


@pytest.mark.parametrize(
    "name", ["get", "describe", "explain", "problems", "top", "history", "diff", "failed", "progress"]
)
def test_every_reading_command_has_a_transcript(name: str) -> None:
    assert (GOLDEN / f"{name}.txt").exists()
    assert name in COMMANDS


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.txt")), ids=lambda file: file.stem)
def test_every_format_has_a_transcript(file: Path) -> None:
    assert not missing_formats(file)


def test_there_are_no_colours_in_a_pipe() -> None:
    assert not [file.name for file in GOLDEN.glob("*.txt") if "\x1b" in file.read_text()]
