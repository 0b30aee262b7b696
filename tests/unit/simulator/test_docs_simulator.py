"""docs/simulator.md is true: its commands are understood, its tables are those of the program, its Python runs."""

from __future__ import annotations

import doctest
import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest

from hyperfleet.cli.demo import demo
from hyperfleet.cli.sim import sim
from hyperfleet.documents.durations import format_duration
from hyperfleet.simulator.adapters import POOL_ADAPTERS, list_adapters
from hyperfleet.simulator.faults import FAULTS, parse_faults

PAGE = Path(__file__).parents[3] / "docs/simulator.md"
TEXT = PAGE.read_text()


@pytest.mark.parametrize("line", re.findall(r"^\$ hyperfleet (.*)$", TEXT, re.MULTILINE))
def test_commands_are_understood(line: str) -> None:
    name, *arguments = shlex.split(line)
    context = {"sim": sim, "demo": demo}[name].make_context(name, arguments)
    names = [adapter.name for adapter in (*list_adapters(8), *POOL_ADAPTERS)]
    assert parse_faults(context.params.get("faults", ""), names).problems == ()


def test_the_faults_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (.*?) \| (\S*) ?\|$", TEXT.partition("## Faults")[2], re.MULTILINE)
    assert [(example, meaning) for example, meaning, _ in rows] == [(each.example, each.meaning) for each in FAULTS]
    for fault, (_, _, default) in zip(FAULTS, rows, strict=True):
        assert (fault.read(default) if default else fault.default in (None, True)) == (
            fault.default if default else True
        )


def test_the_adapters_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| `(\w+)`(?: \(of node pools\))? \| (.*?) ?\| (\w+) \|$", TEXT, re.MULTILINE)
    documented = [(name, tuple(re.findall(r"`(\w+)`", needs)), takes) for name, needs, takes in rows]
    adapters = (*list_adapters(6), *POOL_ADAPTERS)
    assert documented == [(each.name, each.needs, format_duration(timedelta(seconds=each.takes))) for each in adapters]


def test_the_python_runs() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0
