"""`hyperfleet adapter dry-run`, byte by byte: the transcript beside the files that it uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.cli.transcripts import commands_of, transcribe

FOLDER = Path(__file__).parent / "adapters"
WRITES = os.environ.get("HYPERFLEET_TEST_WRITE_GOLDEN") == "1"
SECRETS = ("very-secret-token", "dmVyeS1zZWNyZXQtdG9rZW4=")


def test_transcript(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    file = FOLDER / "dry-run.txt"
    expected = file.read_text("utf-8")
    written = transcribe(terminal, commands_of(expected))
    if WRITES:
        file.write_text(written, "utf-8")
    assert "Traceback" not in written
    assert "should not have happened" not in written
    assert not [each for each in SECRETS if each in written]
    assert written == expected
