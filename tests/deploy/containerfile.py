"""The Containerfile as a list of instructions, for the tests of the image and for what must agree with it."""

from __future__ import annotations

import re
from typing import Final

from tests.deploy.chart import ROOT

FILE: Final = ROOT / "deploy/Containerfile"


def read_stages() -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage, one line each."""
    lines = re.sub(r"^\s*#.*\n", "", FILE.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    stages: list[list[tuple[str, str]]] = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append((name, rest.strip()))
    return stages


def texts(instruction: str, stage: int = -1) -> list[str]:
    """Return the arguments of one kind of instruction."""
    return [rest for name, rest in read_stages()[stage] if name == instruction]
