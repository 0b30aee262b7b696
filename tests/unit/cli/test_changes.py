"""The output of changing commands, byte by byte: the transcripts in `changes`, which use the files in `manifests`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperfleet.cli import connection, exits, run
from hyperfleet.cli.session import CliSession
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal
from tests.unit.cli.transcripts import commands_of, missing_formats, transcribe

FOLDER = Path(__file__).parent
WRITES = os.environ.get("HYPERFLEET_TEST_WRITE_GOLDEN") == "1"
TRANSCRIPTS = sorted((FOLDER / "changes").glob("*.txt"))


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_transcript(file: Path, terminal: Terminal, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER / "manifests")
    expected = file.read_text()
    written = transcribe(terminal, commands_of(expected))
    if WRITES:
        file.write_text(written)
    assert "Traceback" not in written
    assert "should not have happened" not in written
    assert written == expected


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_every_format_has_a_transcript(file: Path) -> None:
    assert not missing_formats(file)


@pytest.mark.parametrize("name", ["create", "apply", "label", "delete", "report", "reconcile"])
def test_every_changing_command_has_a_transcript(name: str) -> None:
    assert FOLDER / "changes" / f"{name}.txt" in TRANSCRIPTS


@pytest.mark.parametrize(
    "line",
    [
        "create cluster x",
        "apply -f payments.yaml",
        "edit payments",
        "label cluster payments a=b",
        "delete cluster payments",
        "reconcile cluster payments",
        "reconcile --all",
        "pubsub state",
        "pubsub replay dns",
        "pubsub listen",
        "delete clusters --all --yes",
        "report payments --adapter dns --available True",
        "report -f reports.yaml",
        "rules simulate -f candidate.yaml",
        "rules apply -f candidate.yaml",
        "rules rollback 1",
        "rules versions",
        "webhooks list",
        "webhooks test ops",
        "webhooks enable ops",
    ],
)
def test_an_unreachable_server_is_reported(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER / "manifests")
    monkeypatch.setattr(connection, "RETRIES", 0)
    code = run(line.split(), CliSession({"HYPERFLEET_SERVER": "http://127.0.0.1:1", "HOME": "/nowhere"}))
    out, err = capsys.readouterr()
    assert (code, out) == (exits.UNAVAILABLE, "")
    assert err.startswith("Error: cannot connect to http://127.0.0.1:1: ")
