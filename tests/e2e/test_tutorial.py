"""The tutorial, as a newcomer would follow it: a real server, a real bash, and what stands on the page.

`HYPERFLEET_TEST_WRITE_GOLDEN=1` writes the page anew from what the commands wrote; read the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from docs.consoles import rewrite
from tests.e2e.server import ROOT, Server, command, running

PAGE = ROOT / "docs/tutorial.md"
WRITES = os.environ.get("HYPERFLEET_TEST_WRITE_GOLDEN") == "1"
ADDRESS = "http://127.0.0.1:8000"
# What differs in each run: ids, times, ages, versions, sizes, and the width of columns because of them.
CHANGING = (
    (re.compile(r"\b(cls|np|rpt)-[0-9a-z]{20,}"), r"\1-…"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s|m\d+s|m)\b"), "AGE"),
    (re.compile(r"\d+\.\d+\.\d+\S*, the same as here"), "VERSION, the same as here"),
    (re.compile(r"\d+\.\d MB"), "SIZE"),
    (re.compile(r"position \d+"), "position N"),
    (re.compile(r"\(in less than 100 ms\)|\(after AGE\)|\(after \d+ ms\)"), "(SOON)"),
    (re.compile(r" {2,}"), "  "),
)


def normalise(page: str) -> str:
    for pattern, instead in CHANGING:
        page = pattern.sub(instead, page)
    return page


class Newcomer:
    """Runs the commands of the page in bash, in a directory of its own."""

    def __init__(self, server: Server, directory: Path) -> None:
        self._server = server
        self._directory = directory
        self._environment = {
            "PATH": f"{Path(command()[0]).parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }

    def run(self, line: str) -> str:
        """Run a command; return what the terminal shows, with the address as the page has it."""
        done = subprocess.run(  # noqa: S603  # what stands on our page
            ["/usr/bin/env", "bash", "-c", line.replace(ADDRESS, self._server.url)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._directory,
            env=self._environment,
            timeout=120,
            check=False,
        )
        shown = done.stdout.replace(self._server.url, ADDRESS).replace(str(self._directory), "/home/you")
        assert "Traceback" not in shown
        return shown


def test_the_tutorial(tmp_path: Path) -> None:
    page = PAGE.read_text()
    with running(tmp_path, "sqlite:hyperfleet.db") as server:
        written = rewrite(page, Newcomer(server, tmp_path).run)
    if WRITES:
        PAGE.write_text(written)
    assert normalise(written) == normalise(page)


def test_only_the_server_is_started_elsewhere() -> None:
    assert re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE) == ["hyperfleet serve\n"]


def test_the_commands_of_the_quick_start_do_what_they_say(tmp_path: Path) -> None:
    """The commands of the page one after the other, then each of the questions at 3 a.m."""
    page = (ROOT / "docs/quickstart.md").read_text()
    start = re.findall(r"^\$ hyperfleet (.*)$", page, re.MULTILINE)
    questions = re.findall(r"^\| .*? \| `(.*?)` \| `(?:GET|POST) ", page, re.MULTILINE)
    assert len(start) >= 4
    assert len(questions) >= 10
    # No past there yet, nothing that would be ready, and no end: of these only how they begin is looked at.
    codes = {"get cluster payments --at 1h": 4, "diff payments --from 1h": 4}
    with running(tmp_path, "memory:") as server:
        environment = {**os.environ, "HYPERFLEET_SERVER": server.url, "HOME": str(tmp_path)}
        for line in (*start, *questions):
            arguments = shlex.split(line.replace("--timeout 30m", "--timeout 1s"))
            if arguments[0] == "watch":
                continue  # `test_following` tells
            done = subprocess.run(  # noqa: S603  # our own command
                command(*arguments), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == codes.get(line, 124 if arguments[0] == "wait" else 0), (line, done.stderr)
            assert "Traceback" not in done.stderr
