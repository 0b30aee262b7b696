"""Where the time goes: the server's own application under a synthetic load in this process, watched by cProfile.

It leaves out HTTP itself (granian is not Python) and exaggerates small functions; what matters is the order of things.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from cProfile import Profile
from pathlib import Path
from types import CodeType
from typing import Any, Final

import msgspec
import uvloop
from msgspec import Struct

from bench.load.filling import fill
from bench.load.fleet import ADAPTERS, cluster_id, report_of
from bench.load.sheet import HEARTBEATS, MANY, MOVING
from bench.load.subject import Database
from hyperfleet.api.wire import BASE
from hyperfleet.bootstrap import System
from hyperfleet.settings import Settings

_CLUSTERS: Final = 1_000
_REQUESTS: Final = 4_000
_ROUNDS: Final = 3  # without a profile; the fastest counts
_LOOP: Final = "of the event loop"
_SHOWN: Final = 30  # functions of each thread
_WAITS: Final = ("'poll' of 'select.epoll'", "SimpleQueue", "'acquire' of '_thread.lock'")  # no work
_NEGLIGIBLE: Final = 2e-5  # seconds of a request; a thread that takes less is not shown


class Request(Struct, frozen=True):
    """One request to the application."""

    method: str
    path: str
    body: bytes = b""

    def scope(self) -> dict[str, Any]:
        """Return it as the application gets it from its server."""
        headers = [(b"host", b"bench"), (b"content-length", str(len(self.body)).encode())]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [*headers, (b"content-type", b"application/json")] if self.body else headers,
        }


def read_one() -> Request:
    """Read any cluster."""
    return Request("GET", _path_of_any())


def report_again() -> Request:
    """Say of any cluster what one of its adapters said before."""
    body = msgspec.json.encode(report_of(random.choice(ADAPTERS)))
    return Request("POST", f"{_path_of_any()}/statuses", body)


def report_news() -> Request:
    """Say something new of any cluster."""
    counter, is_available = f"{random.randrange(10**8):08}", random.random() >= 0.05
    body = msgspec.json.encode(report_of(random.choice(ADAPTERS), is_available=is_available, counter=counter))
    return Request("POST", f"{_path_of_any()}/statuses", body)


LOADS: Final[Mapping[str, Callable[[], Request]]] = {
    "GET one": read_one,
    f"POST, {HEARTBEATS}": report_again,
    f"POST, {MOVING}": report_news,
}


def show(database: Database, policy: Path) -> None:
    """Print what each load costs, first undisturbed and then function by function."""
    fill(database.url, str(policy), range(_CLUSTERS))
    settings = Settings(database=database.url, policy=str(policy))
    for name, make in LOADS.items():
        requests = [make() for _ in range(_REQUESTS)]
        took, used = min(uvloop.run(_run(settings, requests)) for _ in range(_ROUNDS))
        print(f"\n## {database.name}, {name}: {took:.0f} µs each, {used:.0f} µs of processor time\n")
        for thread, profile in _profile(settings, requests).items():
            _show_thread(thread, profile)


def _show_thread(thread: str, profile: Profile) -> None:
    """Print the functions that took most, if they took anything; times are those of one request."""
    working = [entry for entry in profile.getstats() if not any(wait in _name_of(entry.code) for wait in _WAITS)]
    entries = sorted(working, key=lambda entry: -entry.inlinetime)
    if sum(entry.inlinetime for entry in entries) / _REQUESTS < _NEGLIGIBLE:
        return
    print(f"    own µs  with callees  calls  in thread {thread}")
    for entry in entries[:_SHOWN]:
        own, total = (time / _REQUESTS * 1e6 for time in (entry.inlinetime, entry.totaltime))
        print(f"{own:10.2f} {total:13.2f} {entry.callcount / _REQUESTS:6.2f}  {_name_of(entry.code)}")
    print()


def _name_of(code: CodeType | str) -> str:
    """Return where a function is; what is written in C has a description instead."""
    if isinstance(code, str):
        return code
    return f"{'/'.join(Path(code.co_filename).parts[-3:])}:{code.co_firstlineno} {code.co_name}"


def _profile(settings: Settings, requests: list[Request]) -> Mapping[str, Profile]:
    """Run requests with a profile of each thread that takes part."""
    profiles = {_LOOP: Profile()}

    def watch(*_: object) -> None:
        """Give a new thread a profile; this is the first function that it calls."""
        profile = profiles[threading.current_thread().name] = Profile()
        profile.enable()

    threading.setprofile(watch)
    try:
        uvloop.run(_run(settings, requests, profiles[_LOOP]))
    finally:
        threading.setprofile(None)
    return profiles


async def _run(settings: Settings, requests: list[Request], profile: Profile | None = None) -> tuple[float, float]:
    """Send requests over many connections; return the microseconds that one took, and what it took of processors."""
    system = System(settings)
    await system.start()
    waiting = list(requests)
    try:
        with profile or nullcontext():
            start, used = time.perf_counter(), time.process_time()
            await asyncio.gather(*(_send_all(system, waiting) for _ in range(MANY)))
            took, used = time.perf_counter() - start, time.process_time() - used
    finally:
        await system.stop()
    return took / len(requests) * 1e6, used / len(requests) * 1e6


async def _send_all(system: System, waiting: list[Request]) -> None:
    while waiting:
        request = waiting.pop()
        status = await _send(system, request)
        if status >= 300:
            raise ValueError(f"{request.method} {request.path} was answered {status}")


async def _send(system: System, request: Request) -> int:
    answers: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    await system.app(request.scope(), receive, send)
    return answers[0]


def _path_of_any() -> str:
    return f"{BASE}/clusters/{cluster_id(random.randrange(_CLUSTERS))}"
