"""Several workers: copies of this process that are kept at work until we are told to stop.

`serving.serve` calls `supervise` when more than one worker is wanted. Nothing here knows what a worker does: it tells
when it is ready, stops in good order on SIGTERM and reads its policy again on SIGHUP. Workers die with us, however we
die. A copy is made by `os.fork`, so no thread may have been started before.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from msgspec import Struct

from hyperfleet.documents.durations import format_duration

_LOG: Final = logging.getLogger(__name__)
_STOPS: Final = frozenset({signal.SIGTERM, signal.SIGINT})
_READY: Final = signal.SIGRTMIN  # from a worker; unlike an ordinary signal it is queued, so no worker's is lost
_SIGNALS: Final = _STOPS | {signal.SIGHUP, signal.SIGCHLD, _READY}
_PR_SET_PDEATHSIG: Final = 1  # of prctl(2): the signal that a process gets when its parent dies

_FIRST_PAUSE: Final = 0.5  # seconds before a worker that died is replaced; each time twice as long …
_LONGEST_PAUSE: Final = 30.0  # … up to this
_STEADY: Final = 60.0  # seconds of life after which the pauses begin anew
_LAST_WORDS: Final = timedelta(seconds=5)  # what a worker has after its own drain timeout to write what it accepted
_NEVER: Final = float("inf")


class Post(Struct, frozen=True):
    """What a copy learns of itself: it is a worker."""

    supervisor: int  # the process that looks after it
    is_replacement: bool  # others are at work already, or another one was before
    place: int = 0  # which of them it is; who takes the place of another one has its

    def tell_ready(self) -> None:
        """Tell that requests are taken from now on."""
        if os.getppid() == self.supervisor:
            os.kill(self.supervisor, _READY)


class _Worker(Struct):
    number: int
    due: float  # when it is to be started
    pid: int = 0  # 0: there is no process now
    born: float = 0.0
    is_ready: bool = False
    deaths: int = 0  # in short succession

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.pid})"


def supervise(count: int, drain_timeout: timedelta, on_ready: Callable[[], None]) -> int | Post:
    """Keep `count` workers at work; return the exit code, and in each of the copies its post.

    The first worker goes ahead, so that what is wrong with the settings or the database is told once. Until all are
    ready, which `on_ready` is told, one that ends ends everything, with its exit code; afterwards it is replaced.
    """
    return _Supervisor(count, drain_timeout + _LAST_WORDS, on_ready).run()


class _Supervisor:
    def __init__(self, count: int, patience: timedelta, on_ready: Callable[[], None]) -> None:
        self._pid = os.getpid()
        self._workers = [_Worker(number + 1, _NEVER if number else 0.0) for number in range(count)]
        self._patience = patience
        self._on_ready = on_ready
        self._is_established = False  # all were ready once
        self._exit_code: int | None = None  # known: stop

    def run(self) -> int | Post:
        # Nothing interrupts us: signals are taken one by one where we wait for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        while self._exit_code is None:
            for worker in self._workers:
                if not worker.pid and worker.due <= time.monotonic() and self._start(worker):
                    return Post(self._pid, self._is_established or worker.number > 1, worker.number - 1)
            self._heed(signal.sigtimedwait(_SIGNALS, self._find_pause()))
        return self._stop(self._exit_code)

    def _start(self, worker: _Worker) -> bool:
        """Make the copy; tell whether we are it."""
        worker.born, worker.is_ready, worker.pid = time.monotonic(), False, os.fork()
        if worker.pid:
            _LOG.info("%s started", worker)
            return False
        _die_with(self._pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return True

    def _find_pause(self) -> float:
        """Return for how many seconds nobody is to be started."""
        due = min((worker.due for worker in self._workers if not worker.pid), default=_NEVER)
        return min(max(due - time.monotonic(), 0.0), _LONGEST_PAUSE)

    def _heed(self, info: signal.struct_siginfo | None) -> None:
        match info and info.si_signo:
            case signal.SIGHUP:
                self._reload()
            case signal.SIGCHLD:
                for worker, status in self._bury():
                    self._mourn(worker, os.waitstatus_to_exitcode(status))
            case signo if signo == _READY and info is not None:
                self._welcome(info.si_pid)
            case signo if signo in _STOPS:
                _LOG.info("stopping %s workers", len(self._workers))
                self._exit_code = 0

    def _reload(self) -> None:
        """Let one worker read the policy again; it reaches the others through the store."""
        ready = next((worker for worker in self._workers if worker.pid and worker.is_ready), None)
        if ready is None:
            _LOG.error("the policy was not reloaded: no worker is ready")
        else:
            os.kill(ready.pid, signal.SIGHUP)

    def _welcome(self, pid: int) -> None:
        for worker in self._workers:
            worker.is_ready |= worker.pid == pid
            worker.due = 0.0 if worker.due == _NEVER else worker.due  # the first one did well: the others may follow
        if not self._is_established and all(worker.is_ready for worker in self._workers):
            self._is_established = True
            self._on_ready()

    def _bury(self) -> Iterator[tuple[_Worker, int]]:
        """Yield every worker that ended and has not been asked for yet, with how it ended."""
        living = {worker.pid: worker for worker in self._workers if worker.pid}
        for pid, worker in living.items():
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                yield worker, status
                worker.pid = 0

    def _mourn(self, worker: _Worker, code: int) -> None:
        """Replace a worker that ended without being told to, or end if it never could do its work."""
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if not self._is_established:
            _LOG.info("%s %s before all were ready: stopping", worker, how)  # it has said what was wrong
            self._exit_code = 128 - code if code < 0 else code or 1
            return
        is_steady = time.monotonic() - worker.born > _STEADY
        worker.deaths = 1 if is_steady else worker.deaths + 1
        pause = min(_FIRST_PAUSE * 2 ** min(worker.deaths - 1, 10), _LONGEST_PAUSE)
        worker.due = time.monotonic() + pause
        _LOG.error("%s %s: another one takes its place in %gs", worker, how, pause)

    def _stop(self, code: int) -> int:
        """Let the workers finish; kill those that do not in time, which makes it a failure."""
        self._send(signal.SIGTERM)
        limit = time.monotonic() + self._patience.total_seconds()
        while any(worker.pid for worker in self._workers) and (pause := limit - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, pause)
            for worker, status in self._bury():
                _LOG.info("%s stopped", worker)
                code = code or int(worker.is_ready and status != 0)  # one that was starting could not do it in order
        for worker in self._send(signal.SIGKILL):
            _LOG.error("%s did not stop within %s: it was killed", worker, format_duration(self._patience))
            os.waitpid(worker.pid, 0)
            code = code or 1
        _LOG.info("stopped")
        return code

    def _send(self, signo: signal.Signals) -> list[_Worker]:
        """Send a signal to all workers that are there, and return them."""
        living = [worker for worker in self._workers if worker.pid]
        for worker in living:
            os.kill(worker.pid, signo)
        return living


def _die_with(supervisor: int) -> None:
    """Have the system send us SIGTERM when the supervisor dies, be it by SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != supervisor:  # it died before we could ask for that
        raise SystemExit(1)
