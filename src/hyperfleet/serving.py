"""Running the server: the address, signals, the log, and a graceful stop.

One worker serves in this process; several are forks of it that share the address (`supervision`).
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
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.server.embed import Server
from msgspec.structs import replace

from hyperfleet import logs
from hyperfleet.bootstrap import System, check_tls, make_board
from hyperfleet.documents.durations import format_duration
from hyperfleet.services.worker_totals import MetricsBoard
from hyperfleet.settings import Address, Settings, parse_address

_LOG: Final = logging.getLogger(__name__)
_HEADER_TIMEOUT: Final = 30_000  # ms for the headers of a request, also until its first byte
_BACKLOG: Final = 1024  # connections waiting to be accepted


def serve(settings: Settings) -> int:
    """Serve until stopped; return the exit code."""
    logs.configure(settings.log_level, settings.log_format)
    _warn_of_risks(settings)
    with _reserve(parse_address(settings.listen)) as address:
        settings = replace(settings, listen=str(address))
        announce = partial(_announce, address, settings)
        if settings.workers == 1:
            return uvloop.run(_serve_from_here(settings, announce))
        from hyperfleet.supervision import WorkerRole, supervise  # Linux only, unlike a single worker

        board = make_board(settings.workers)
        role = supervise(settings.workers, settings.drain_timeout, announce)
        if isinstance(role, WorkerRole):
            own = board.take(role.index)
            return uvloop.run(_serve_from_here(settings, role.notify_ready, own, is_replacement=role.is_replacement))
        return role


async def _serve_from_here(
    settings: Settings, on_ready: Callable[[], None], board: MetricsBoard | None = None, *, is_replacement: bool = False
) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is a policy to reload
    system = System(settings, board)
    await system.start(adopts_policy=is_replacement)
    _tune_garbage_collection()
    server = _create_server(system, settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(_reload(system)))
    serving = asyncio.create_task(server.serve())
    if await _is_listening(parse_address(settings.listen), serving):
        _LOG.info("process %s accepts requests on %s", os.getpid(), settings.listen)
        on_ready()
    await asyncio.wait({serving, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    _LOG.info("stopping: finishing open requests")
    system.tail.close()  # streams do not end by themselves
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
        http=HTTPModes.http1,  # otherwise granian waits for ever for the first byte, which tells the version
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_TIMEOUT),
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


async def _drain(serving: asyncio.Task[None], drain_timeout: timedelta) -> None:
    """Wait until open requests are answered, but not for clients that take too long to send theirs.

    After `stop` the server accepts no connections, closes idle ones, and ends after the last one.
    """
    try:
        async with asyncio.timeout(drain_timeout.total_seconds()):
            await serving
    except TimeoutError:
        _LOG.warning(
            "some requests were not complete after %s: their connections are closed", format_duration(drain_timeout)
        )


async def _reload(system: System) -> None:
    system.reload_access()
    system.reopen_journal()
    try:
        version = await system.policies.activate()
    except Exception as error:  # noqa: BLE001  # on any error the policy in force stays
        _LOG.error("the policy was not reloaded: %s", error)
        system.record_event("reload", is_done=False)
    else:
        _LOG.info("the policy was reloaded: version %s is in force", version.version)
        system.record_event("reload", is_done=True)
        system.policies.look_for_warnings()


def _tune_garbage_collection() -> None:
    """Exclude what was loaded at the start from garbage collection, and collect the rest less often: 10 % faster."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@contextmanager
def _reserve(address: Address) -> Iterator[Address]:
    """Reserve an address, and choose a port if it is 0; raise the system's error if it is not available.

    Workers open sockets of their own with SO_REUSEPORT. The first bind is exclusive, because with SO_REUSEPORT from the
    beginning two servers could share the address and take each other's requests.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as reservation:
        reservation.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # connections of an earlier server may be in TIME_WAIT
        reservation.bind((address.host, address.port))
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        host, port, *_ = reservation.getsockname()  # granian does not accept names
        yield Address(host, port)


def _warn_of_risks(settings: Settings) -> None:
    """Log risks before anything listens; raise if TLS files are invalid."""
    for problem in check_tls(settings):
        _LOG.warning("%s", problem)
    address = parse_address(settings.listen)
    if address.is_loopback:
        return
    if not settings.auth.is_enabled:
        _LOG.warning(
            "%s can be reached from other machines, and callers are not authenticated (insecureListen)", address
        )
    elif settings.tls.certificate is None:
        _LOG.warning("tokens are sent unencrypted to %s: set tls.certificate, unless a proxy adds TLS", address)


async def _is_listening(address: Address, serving: asyncio.Task[None]) -> bool:
    """Wait until connections are accepted; False: it ended before. The hook of granian runs before it listens."""
    while not serving.done():
        try:
            _, writer = await asyncio.open_connection(address.host, address.port)
        except OSError:
            await asyncio.sleep(0.005)  # a fraction of the time that a start takes
        else:
            writer.close()
            return True
    return False


def _announce(address: Address, settings: Settings) -> None:
    text = f"Listening on {'https' if settings.tls.certificate else 'http'}://{address}"
    if settings.log_format == "json":  # where every line is an object
        _LOG.info(text)
    else:
        print(text, file=sys.stderr, flush=True)
