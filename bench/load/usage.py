"""What processes use, told by the kernel: time of the processor and memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_UTIME: Final = 11  # places in /proc/PID/stat, counted after the name; then come stime, cutime, cstime


class Memory(Struct, frozen=True):
    """What a process has in memory, in MB; `anonymous` is what no file could give back."""

    resident: float
    anonymous: float


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    with suppress(FileNotFoundError, ProcessLookupError):  # it may end while we look
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
        return [pid, *(descendant for child in children for descendant in family(child))]
    return []


def processor_time(pids: Iterable[int]) -> float:
    """Return the seconds of processor time that processes have used, with children of theirs that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[_UTIME : _UTIME + 4])
    return ticks / _TICKS


def memory(pid: int) -> Memory:
    """Return what a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines) if rest.strip()}
    return Memory(*(int(values[name]) * 1024 / 1e6 for name in ("VmRSS", "RssAnon")))
