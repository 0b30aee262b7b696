"""Record the answers of Go: `python -m tests.conformance.adapter.record` (needs Go, or gets it)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.adapter.template_cases import NOW, TEMPLATES, VARIABLES
from tests.conformance.expr_cases.record import find_go

PROGRAM = Path(__file__).parent / "original"
RECORDED = Path(__file__).parent / "templates.json"


def ask_original() -> str:
    """Render every template with Go and return what it writes."""
    question = json.dumps({"now": NOW.isoformat(), "variables": VARIABLES, "templates": TEMPLATES})
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "original"
        subprocess.run([find_go(), "build", "-o", program, "."], cwd=PROGRAM, check=True)  # noqa: S603
        done = subprocess.run([program], input=question, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout


def read() -> list[dict[str, Any]]:
    """Return the recorded answers."""
    answers: list[dict[str, Any]] = json.loads(RECORDED.read_text("utf-8"))
    return answers


if __name__ == "__main__":
    RECORDED.write_text(ask_original(), "utf-8")
    sys.stdout.write(f"{len(read())} answers\n")
