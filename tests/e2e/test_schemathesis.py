"""Schemathesis asks a real server everything that its OpenAPI document allows, and much that it does not.

No answer may be a server error or other than described, nothing that fits the document may be refused, nothing that
does not may be accepted. Node pools are left out here: they have the handlers of clusters, and time is short. So are
waits, which take their time and may end with a timeout; nor is anything watched, which has no end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.server import Server, run_command, running

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
PATIENCE = 600  # seconds: a minute's work on an idle machine, which a tested one seldom is


def test_the_server_does_what_its_openapi_document_says(tmp_path: Path) -> None:
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}") as server:
        examine(server, HERE / "schemathesis.toml", tmp_path, "--max-examples=4")


def test_the_server_asks_callers_as_its_openapi_document_says(tmp_path: Path) -> None:
    config, tokens = tmp_path / "schemathesis.toml", tmp_path / "tokens.yaml"
    text = (HERE / "schemathesis.toml").read_text()
    config.write_text(text.replace("ignored_auth.enabled = false", "ignored_auth.enabled = true"))
    made = run_command("token", "create", "--name", "schemathesis", "--role", "admin", "--file", str(tokens))
    with running(tmp_path, "memory:", auth_tokens=str(tokens)) as server:
        header = f"--header=Authorization: Bearer {made.stdout.strip()}"
        examine(server, config, tmp_path, "--phases=examples", header)


def examine(server: Server, config: Path, directory: Path, *more: str) -> None:
    """Let schemathesis ask a server; it must have nothing to say."""
    arguments = [
        str(Path(sys.executable).with_name("schemathesis")),
        f"--config-file={config}",
        "run",
        f"{server.url}/openapi.json",
        "--exclude-path-regex=nodepools|:wait",
        *more,
    ]
    done = subprocess.run(  # noqa: S603  # our own command
        arguments,
        cwd=directory,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(HERE / "schemathesis_checks.py")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]
    assert "Traceback" not in server.log
