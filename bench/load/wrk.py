"""Load from wrk, a generator in a process of its own: a Python client would be slower than the server."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

_SCRIPTS: Final = Path(__file__).parent


class LoadError(Exception):
    """The load could not be brought, or was not answered as it should have been."""


class Load(Struct, frozen=True):
    """What to ask of a server: a script beside this file with its arguments, over so many connections."""

    script: str
    arguments: tuple[str, ...] = ()
    connections: int = 64


class Figures(Struct, frozen=True):
    """What came of it; times are microseconds."""

    requests: int
    duration: int
    p50: float
    p99: float
    refused: int = 0  # answered, but neither with 2xx nor with 3xx
    broken: int = 0  # connections that failed, and requests that nobody answered

    @property
    def rate(self) -> float:
        """Return the requests of a second."""
        return self.requests / self.duration * 1e6


def install() -> None:
    """Install wrk if it is missing and we may; raise if it stays missing."""
    if shutil.which("wrk"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("Installing wrk …", flush=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "wrk"], stdout=subprocess.DEVNULL, check=False)  # noqa: S607
    if not shutil.which("wrk"):
        raise LoadError("wrk is not installed, and nothing can be measured without it; to enable: apt-get install wrk")


def run(url: str, load: Load, clusters: int, seconds: int) -> Figures:
    """Bring a load to bear on the server at a URL, and return the figures if everything was answered well."""
    figures = _run(url, load, clusters, seconds)
    if figures.refused or figures.broken:
        raise LoadError(f"{load.script} {load.arguments}: {figures.refused} refused, {figures.broken} broken")
    return figures


def _run(url: str, load: Load, clusters: int, seconds: int) -> Figures:
    script: Sequence[str] = ["--script", str(_SCRIPTS / load.script), url, "--"]
    arguments = [str(clusters), str(random.getrandbits(31)), *load.arguments]
    # One thread: it asks faster than a server answers, and more of them would take processors away from it.
    options = ["--threads=1", f"--connections={load.connections}", f"--duration={seconds}s"]
    done = subprocess.run(  # noqa: S603  # wrk with our own script
        ["wrk", *options, "--timeout=10s", *script, *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=Figures)
    except (IndexError, msgspec.DecodeError) as error:
        raise LoadError(f"wrk failed: {(done.stderr or done.stdout)[-500:]}") from error
