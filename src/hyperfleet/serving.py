"""Running the server: the address, signals, the log, and stopping without losing anything.

One worker serves from this very process; several are copies of it that share the address (`supervision`).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import uvloop
from granian.constants import Interfaces, SSLProtocols
from granian.server.embed import Server
from msgspec.structs import replace

from hyperfleet import logs
from hyperfleet.bootstrap import System, check_tls, make_board
from hyperfleet.documents.durations import format_duration
from hyperfleet.services.tallies import Board
from hyperfleet.settings import Address, Settings, parse_address

_LOG: Final = logging.getLogger(__name__)
_BACKLOG: Final = 1024  # connections that wait to be taken


def serve(settings: Settings) -> int:
    """Serve until told to stop; return the exit code."""
    logs.configure(settings.log_level, settings.log_format)
    _tell_risks(settings)
    with _hold(parse_address(settings.listen)) as address:
        settings = replace(settings, listen=str(address))
        announce = partial(_announce, address, settings)
        if settings.workers == 1:
            return uvloop.run(_serve_from_here(settings, announce))
        from hyperfleet.supervision import Post, supervise  # needs Linux, as one worker does not

        board = make_board(settings.workers)
        role = supervise(settings.workers, settings.drain_timeout, announce)
        if isinstance(role, Post):
            place = board.seat(role.place)
            return uvloop.run(_serve_from_here(settings, role.tell_ready, place, is_replacement=role.is_replacement))
        return role


async def _serve_from_here(
    settings: Settings, on_ready: Callable[[], None], board: Board | None = None, *, is_replacement: bool = False
) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is a policy to read again
    system = System(settings, board)
    await system.start(adopts_policy=is_replacement)
    _collect_less_often()
    server = _create_server(system, settings)
    server.on_startup(partial(_tell_listening, settings.listen))
    server.on_startup(on_ready)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(_reload(system)))
    serving = asyncio.create_task(server.serve())
    await asyncio.wait({serving, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    _LOG.info("stopping: finishing what was begun")
    system.tail.close()  # streams have no end of their own
    server.stop()  # type: ignore[no-untyped-call]  # granian gives it no types
    await _drain(serving, settings.drain_timeout)
    await system.stop()
    _LOG.info("stopped: everything that was accepted is written")
    return 0


def _create_server(system: System, settings: Settings) -> Server:
    address, tls = parse_address(settings.listen), settings.tls
    return Server(
        system.app,
        address.host,
        address.port,
        interface=Interfaces.ASGINL,
        backlog=_BACKLOG,
        backpressure=settings.limits.max_connections + settings.limits.max_watches,
        log_enabled=False,
        websockets=False,
        ssl_cert=_to_path(tls.certificate),
        ssl_key=_to_path(tls.key),
        ssl_ca=_to_path(tls.client_ca),
        ssl_client_verify=tls.client_ca is not None,
        ssl_protocol_min=SSLProtocols(tls.min_version),
    )


def _to_path(file: str | None) -> Path | None:
    return None if file is None else Path(file)


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
    system.reload_access()
    system.reopen_journal()
    try:
        version = await system.policies.activate()
    except Exception as error:  # noqa: BLE001  # whatever is wrong with the file, the policy in force stays
        _LOG.error("the policy was not reloaded: %s", error)
        system.record_event("reload", is_done=False)
    else:
        _LOG.info("the policy was read again: version %s is in force", version.version)
        system.record_event("reload", is_done=True)
        system.policies.look_for_warnings()


def _collect_less_often() -> None:
    """Leave what was loaded at the start out of garbage collection, and collect the rest less often: 10 % faster."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@contextmanager
def _hold(address: Address) -> Iterator[Address]:
    """Keep an address for us alone, and find a port if none is given; raise the system's error if it cannot be had.

    The workers open sockets of their own. They are let in only after nobody else was found there, for at an address
    that is shared from the beginning two servers would take each other's requests.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier server may linger
        holder.bind((address.host, address.port))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        host, port, *_ = holder.getsockname()  # granian takes no names
        yield Address(host, port)


def _tell_risks(settings: Settings) -> None:
    """Say, before anything listens, what an operator may not have thought of; bad files of TLS end it here."""
    for problem in check_tls(settings):
        _LOG.warning("%s", problem)
    address = parse_address(settings.listen)
    if address.is_loopback:
        return
    if not settings.auth.is_enabled:
        _LOG.warning(
            "%s can be reached from other machines, and nobody is asked who they are (insecureListen)", address
        )
    elif settings.tls.certificate is None:
        _LOG.warning("tokens travel in the clear to %s: set tls.certificate, unless a proxy adds TLS", address)


def _tell_listening(address: str) -> None:
    _LOG.info("process %s takes requests at %s", os.getpid(), address)


def _announce(address: Address, settings: Settings) -> None:
    said = f"Listening on {'https' if settings.tls.certificate else 'http'}://{address}"
    if settings.log_format == "json":  # where every line is an object
        _LOG.info(said)
    else:
        print(said, file=sys.stderr, flush=True)
