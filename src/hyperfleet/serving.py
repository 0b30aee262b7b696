"""Running the server: sockets, signals, the log, and stopping without losing anything.

One worker serves from this very process; several are processes that share one socket, looked after by granian.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from datetime import timedelta
from functools import partial
from typing import Final

import uvloop
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server
from msgspec.structs import replace
from starlette.types import ASGIApp

from hyperfleet.bootstrap import System, build_app
from hyperfleet.documents.durations import format_duration
from hyperfleet.settings import Address, Settings, parse_address

_LOG: Final = logging.getLogger(__name__)
_BACKLOG: Final = 1024  # connections that wait to be taken


def serve(settings: Settings) -> int:
    """Serve until told to stop; return the exit code."""
    _configure_log(settings)
    settings = replace(settings, listen=str(_find_address(parse_address(settings.listen))))
    if settings.workers > 1:
        return _serve_from_many(settings)
    return uvloop.run(_serve_from_here(settings))


async def _serve_from_here(settings: Settings) -> int:
    system = System(settings)
    await system.start()
    _collect_less_often()
    address = parse_address(settings.listen)
    server = Server(
        system.app,
        address.host,
        address.port,
        interface=Interfaces.ASGINL,
        backlog=_BACKLOG,
        backpressure=settings.limits.max_connections,
        log_enabled=False,
        websockets=False,
    )
    server.on_startup(partial(_announce, address))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(_reload(system)))
    serving = asyncio.create_task(server.serve())
    await asyncio.wait({serving, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    _LOG.info("stopping: finishing what was begun")
    server.stop()  # type: ignore[no-untyped-call]  # granian gives it no types
    await _drain(serving, settings.drain_timeout)
    await system.stop()
    return 0


async def _drain(serving: asyncio.Task[None], patience: timedelta) -> None:
    """Wait until the requests that were begun are answered; those who take too long to send theirs are left behind.

    A server that was told to stop takes no more connections, closes those that are idle, and ends after the last one.
    """
    try:
        async with asyncio.timeout(patience.total_seconds()):
            await serving
    except TimeoutError:
        _LOG.warning("some requests were not complete after %s: their connections are cut", format_duration(patience))


async def _reload(system: System) -> None:
    try:
        version = await system.policies.activate()
    except Exception as error:  # noqa: BLE001  # whatever is wrong with the file, the policy in force stays
        _LOG.error("the policy was not reloaded: %s", error)
    else:
        _LOG.info("policy version %s is in force", version.version)


def _serve_from_many(settings: Settings) -> int:
    address = parse_address(settings.listen)
    server = Granian(
        "hyperfleet",  # the name of the worker processes; what they run is loaded below
        address.host,
        address.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        backlog=_BACKLOG,
        backpressure=settings.limits.max_connections,
        log_level=LogLevels.warning,
        websockets=False,
        respawn_failed_workers=True,
        workers_kill_timeout=max(int(settings.drain_timeout.total_seconds()), 1),
    )
    _announce(address)
    server.serve(target_loader=partial(_build_worker, settings), wrap_loader=False)
    return 0


def _build_worker(settings: Settings) -> ASGIApp:
    _collect_less_often()
    return build_app(settings)


def _collect_less_often() -> None:
    """Leave out of garbage collection what was loaded at the start, and collect the rest less often: 10 % of a write."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _find_address(address: Address) -> Address:
    """Return the address with a port that is free; raise the system's error if it cannot be had."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((address.host, address.port))
        return Address(address.host, probe.getsockname()[1])


def _announce(address: Address) -> None:
    print(f"Listening on http://{address}", file=sys.stderr, flush=True)


def _configure_log(settings: Settings) -> None:
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
