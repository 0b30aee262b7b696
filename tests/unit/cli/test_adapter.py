"""`hyperfleet adapter`: what it writes, byte by byte (the transcripts in `adapter`)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.cli.transcripts import commands_of, missing_formats, transcribe

FOLDER = Path(__file__).parent / "adapter"
DATA = Path(__file__).parents[2] / "data/adapters"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))
WRITES = os.environ.get("HYPERFLEET_TEST_WRITE_GOLDEN") == "1"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with adapter files, and go there."""
    for source, name in ((FOLDER / "files", "bad"), (DATA / "contract", "contract"), (DATA / "go", "go")):
        shutil.copytree(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_transcript(file: Path, terminal: Terminal, files: Path) -> None:
    expected = file.read_text()
    written = transcribe(terminal, commands_of(expected))
    if WRITES:
        file.write_text(written)
    assert written == expected


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_every_format_has_a_transcript(file: Path) -> None:
    assert not missing_formats(file)


def test_there_are_transcripts() -> None:
    assert [file.stem for file in TRANSCRIPTS] == ["check", "init", "schema"]


def test_what_cannot_be_written_is_a_message(terminal: Terminal, files: Path) -> None:
    (files / "file").write_text("")
    done = terminal.run("adapter", "init", "dns", "--folder", "file/below")
    assert (done.code, done.out) == (2, "")
    assert "cannot be written" in done.err
