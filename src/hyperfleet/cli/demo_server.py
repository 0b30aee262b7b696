"""The server of the demo: a child process that ends with this one, however this one ends."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from hyperfleet.cli import exits
from hyperfleet.cli.failures import CommandFailure
from hyperfleet.settings import Address

# Files of a demo: its data, its policy, and another policy to try.
DATABASE: Final = "fleet.db"
POLICY: Final = "policy.yaml"
OTHER_POLICY: Final = "without-hypershift.yaml"

_ANNOUNCEMENT: Final = "Listening on "
_NEIGHBOURS: Final = 50  # ports to try if the first one is taken
_LOG_TAIL: Final = 20  # lines of the log that are shown when it does not start
_PR_SET_PDEATHSIG: Final = 1  # of prctl(2): send a signal to this process when its parent dies


@asynccontextmanager
async def serving(directory: Path, address: Address, environment: Mapping[str, str]) -> AsyncIterator[str]:
    """Serve the database of a directory; yield the URL once it accepts requests."""
    flags = ["--listen", str(address), "--database", f"sqlite:{directory / DATABASE}"]
    ours = {name: value for name, value in environment.items() if not name.startswith("HYPERFLEET_")}
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperfleet", "serve", *flags),
        *("--policy", str(directory / POLICY), "--log-level", "warning"),
        cwd=directory,
        env=ours,
        stdin=DEVNULL,
        stderr=PIPE,
        start_new_session=True,  # Ctrl-C is handled here, which stops the server gracefully
        preexec_fn=_die_with_parent,
    )
    try:
        url = await _await_announcement(server)
        reading = asyncio.create_task(_pass_on(server))
        try:
            yield url
        finally:
            reading.cancel()
    finally:
        await _stop(server)


def choose_address(wanted: Address) -> Address:
    """Return the address, or if it is taken, the one with the next free port."""
    ports = [0] if wanted.port == 0 else range(wanted.port, min(wanted.port + _NEIGHBOURS, 65536))
    for port in ports:
        with socket.socket(socket.AF_INET6 if ":" in wanted.host else socket.AF_INET) as probe:
            probe.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # connections of an earlier demo may be in TIME_WAIT
            try:
                probe.bind((wanted.host, port))
            except PermissionError:
                break
            except OSError:
                continue
            host, chosen = probe.getsockname()[:2]  # an IP address, because the server does not accept names
            return Address(host, chosen)
    raise CommandFailure(
        f"cannot listen on {wanted}, nor on the ports after it; choose another --listen", exits.UNAVAILABLE
    )


def _die_with_parent() -> None:
    """Let the system stop the server if this process is killed; only on Linux."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def _await_announcement(server: Process) -> str:
    """Read the server's log until it announces its address."""
    log: list[str] = []
    while line := await _read(server):
        if line.startswith(_ANNOUNCEMENT):
            return line.removeprefix(_ANNOUNCEMENT).strip()
        log.append(line.rstrip())
    reason = "\n  ".join(("the demo's server did not start", *log[-_LOG_TAIL:]))
    raise CommandFailure(reason, exits.UNAVAILABLE)


async def _pass_on(server: Process) -> None:
    """Copy the server's warnings to stderr; without a reader it would block once the pipe is full."""
    while line := await _read(server):
        sys.stderr.write(line)


async def _read(server: Process) -> str:
    return (await server.stderr.readline()).decode(errors="replace") if server.stderr else ""


async def _stop(server: Process) -> None:
    """Stop the server gracefully."""
    if server.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            server.terminate()
        await asyncio.shield(server.communicate())


def program(environment: Mapping[str, str]) -> str:
    """Return the command that runs this program from the present directory."""
    own = Path(sys.executable).with_name("hyperfleet")
    found = shutil.which("hyperfleet", path=environment.get("PATH", ""))
    if not own.exists():
        return f"{shlex.quote(sys.executable)} -m hyperfleet"
    is_ours = found is not None and Path(found).resolve() == own.resolve()
    return "hyperfleet" if is_ours else shlex.quote(os.path.relpath(own))
