"""Long tests are left out of an ordinary run, which says so; a marker or the name of their file selects them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER, FILE = "tests/e2e", "tests/e2e/test_crash.py"
IGNORED = (
    "--ignore=tests/e2e/cli",
    "--ignore-glob=tests/e2e/test_[!c]*",
    "--ignore-glob=tests/e2e/test_c[!r]*",
)  # less to collect


def run_pytest(*arguments: str) -> str:
    """Return what pytest prints of tests whose file is about crashes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_crash", *IGNORED, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout  # noqa: S603  # ours


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "with workers"])
def test_they_are_left_out_loudly(workers: tuple[str, ...]) -> None:
    printed = run_pytest(FOLDER, *workers)
    assert "LONG TESTS WERE LEFT OUT. TO RUN THEM: make test-long" in printed
    assert "passed" not in printed


@pytest.mark.parametrize("selection", [(FOLDER, "-m", "long"), (FILE,)])
def test_they_are_selected(selection: tuple[str, ...]) -> None:
    printed = run_pytest("--collect-only", *selection)
    assert f"{FILE}::" in printed
    assert "LEFT OUT" not in printed


def test_the_docs_list_every_file_with_long_tests() -> None:
    mark = re.compile(r"^(pytestmark = |@).*pytest\.mark\.long\b", re.MULTILINE)
    marked = {path for path in (ROOT / "tests").rglob("test_*.py") if mark.search(path.read_text("utf-8"))}
    listed = re.findall(r"^\| `(tests/\S+\.py)` \|", (ROOT / "docs/quality.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path in marked)
