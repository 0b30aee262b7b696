"""Alert rules as tests see them: the files, which metrics an expression names, and promtool to try them with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.deploy.chart import ROOT, read_yaml

ALERTS: Final = ROOT / "deploy/prometheus/alerts.yaml"
RECORDING: Final = ROOT / "deploy/prometheus/recording.yaml"
DASHBOARD: Final = ROOT / "deploy/grafana/hyperfleet.json"
PROMTOOL: Final = "HYPERFLEET_TEST_PROMTOOL"  # the program to use instead of the one that is found

_NAME: Final = re.compile(r"(?<![\w:\"])(?:hyperfleet|process|python)_[a-z0-9_]+")
_RECORDED: Final = re.compile(r"(?<!\w)hyperfleet:[a-z0-9_:]+")
_SELECTOR: Final = re.compile(r"(?<![\w:\"])((?:hyperfleet|process|python)_[a-z0-9_]+)\{([^}]*)\}")


def read_rules(file: Path) -> list[dict[str, Any]]:
    """Return all rules of a file."""
    (document,) = read_yaml(file.read_text("utf-8"))
    return [dict(rule) for group in document["groups"] for rule in group["rules"]]


def metrics_in(expression: str) -> set[str]:
    """Return the metrics that an expression names."""
    return set(_NAME.findall(expression))


def recorded_in(expression: str) -> set[str]:
    """Return the recorded series that an expression names."""
    return set(_RECORDED.findall(expression))


def selectors_in(expression: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the metrics that an expression selects from, each with the labels that it looks at."""
    for name, matchers in _SELECTOR.findall(expression):
        yield name, re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)


def find_promtool() -> str | None:
    """Return the program promtool; None if there is none."""
    return os.environ.get(PROMTOOL) or shutil.which("promtool")


class Promtool:
    """Promtool, with a directory for what it is given."""

    def __init__(self, program: str, directory: Path) -> None:
        """Use a program and keep files in a directory."""
        self._program = program
        self._directory = directory

    def check(self, *files: Path) -> subprocess.CompletedProcess[str]:
        """Check files with rules."""
        return self._run("check", "rules", *map(str, files))

    def read(self, expressions: Iterable[str]) -> subprocess.CompletedProcess[str]:
        """Check expressions, as rules that record them."""
        rules = [{"record": f"expression:{number}", "expr": each} for number, each in enumerate(expressions)]
        file = self._directory / "expressions.yaml"
        file.write_bytes(msgspec.json.encode({"groups": [{"name": "expressions", "rules": rules}]}))
        return self.check(file)

    def test(self, tests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
        """Try the rules on series that are made up."""
        file = self._directory / "tests.yaml"
        document = {"rule_files": [str(RECORDING), str(ALERTS)], "evaluation_interval": "5m", "tests": tests}
        file.write_bytes(msgspec.json.encode(document))  # which is YAML
        return self._run("test", "rules", str(file))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self._program, *arguments]
        return subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603 - ours
