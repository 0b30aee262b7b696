"""Several workers: forks of this process that are kept running until the supervisor is stopped.

`serving.serve` calls `supervise` for more than one worker. Nothing here knows what a worker does: it signals when it is
ready, stops gracefully on SIGTERM, and reloads its policy on SIGHUP. Workers end with the supervisor, however it ends.
Workers are made by `os.fork`, so no thread may have been started before.
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
_READY: Final = signal.SIGRTMIN  # from a worker; real-time signals are queued, so none is lost
_SIGNALS: Final = _STOPS | {signal.SIGHUP, signal.SIGCHLD, _READY}
_PR_SET_PDEATHSIG: Final = 1  # of prctl(2): send a signal to this process when its parent dies

_FIRST_PAUSE: Final = 0.5  # seconds before a worker that ended is replaced; doubled each time …
_LONGEST_PAUSE: Final = 30.0  # … up to this
_STABLE: Final = 60.0  # seconds after which the pauses start over
_EXTRA_DRAIN: Final = timedelta(seconds=5)  # added to the drain timeout, for a worker to write what it accepted
_NEVER: Final = float("inf")


class WorkerRole(Struct, frozen=True):
    """Returned in a forked worker: its supervisor and its index."""

    supervisor: int  # process id
    is_replacement: bool  # other workers are running, or it replaces one
    index: int = 0  # a replacement has the index of the worker it replaces

    def notify_ready(self) -> None:
        """Signal the supervisor that this worker accepts requests."""
        if os.getppid() == self.supervisor:
            os.kill(self.supervisor, _READY)


class _Worker(Struct):
    number: int
    due: float  # when it is to be started
    pid: int = 0  # 0: not running
    started_at: float = 0.0
    is_ready: bool = False
    failures: int = 0  # in short succession

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.pid})"


def supervise(count: int, drain_timeout: timedelta, on_ready: Callable[[], None]) -> int | WorkerRole:
    """Keep `count` workers running; return the exit code, and in each worker its role.

    The first worker starts alone, so that errors in settings or database are reported once. Until all are ready, which
    calls `on_ready`, a worker that ends stops everything, with its exit code; afterwards it is replaced.
    """
    return _Supervisor(count, drain_timeout + _EXTRA_DRAIN, on_ready).run()


class _Supervisor:
    def __init__(self, count: int, stop_timeout: timedelta, on_ready: Callable[[], None]) -> None:
        self._pid = os.getpid()
        self._workers = [_Worker(number + 1, _NEVER if number else 0.0) for number in range(count)]
        self._stop_timeout = stop_timeout
        self._on_ready = on_ready
        self._is_established = False  # all were ready once
        self._exit_code: int | None = None  # known: stop

    def run(self) -> int | WorkerRole:
        # Signals are blocked and taken one by one with sigtimedwait, so nothing is interrupted.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        while self._exit_code is None:
            for worker in self._workers:
                if not worker.pid and worker.due <= time.monotonic() and self._start(worker):
                    return WorkerRole(self._pid, self._is_established or worker.number > 1, worker.number - 1)
            self._handle(signal.sigtimedwait(_SIGNALS, self._find_pause()))
        return self._stop(self._exit_code)

    def _start(self, worker: _Worker) -> bool:
        """Fork a worker; return True in the worker."""
        worker.started_at, worker.is_ready, worker.pid = time.monotonic(), False, os.fork()
        if worker.pid:
            _LOG.info("%s started", worker)
            return False
        _terminate_with(self._pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return True

    def _find_pause(self) -> float:
        """Return the seconds until the next start."""
        due = min((worker.due for worker in self._workers if not worker.pid), default=_NEVER)
        return min(max(due - time.monotonic(), 0.0), _LONGEST_PAUSE)

    def _handle(self, info: signal.struct_siginfo | None) -> None:
        match info and info.si_signo:
            case signal.SIGHUP:
                self._reload()
            case signal.SIGCHLD:
                for worker, status in self._reap():
                    self._replace(worker, os.waitstatus_to_exitcode(status))
            case signo if signo == _READY and info is not None:
                self._mark_ready(info.si_pid)
            case signo if signo in _STOPS:
                _LOG.info("stopping %s workers", len(self._workers))
                self._exit_code = 0

    def _reload(self) -> None:
        """Let one worker reload the policy; the others get it through the store."""
        ready = next((worker for worker in self._workers if worker.pid and worker.is_ready), None)
        if ready is None:
            _LOG.error("the policy was not reloaded: no worker is ready")
        else:
            os.kill(ready.pid, signal.SIGHUP)

    def _mark_ready(self, pid: int) -> None:
        for worker in self._workers:
            worker.is_ready |= worker.pid == pid
            worker.due = 0.0 if worker.due == _NEVER else worker.due  # the first one is ready: start the others
        if not self._is_established and all(worker.is_ready for worker in self._workers):
            self._is_established = True
            self._on_ready()

    def _reap(self) -> Iterator[tuple[_Worker, int]]:
        """Yield every worker that has ended, with its wait status."""
        running = {worker.pid: worker for worker in self._workers if worker.pid}
        for pid, worker in running.items():
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                yield worker, status
                worker.pid = 0

    def _replace(self, worker: _Worker, code: int) -> None:
        """Schedule the replacement of a worker that ended, or stop if not all were ready yet."""
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if not self._is_established:
            _LOG.info("%s %s before all were ready: stopping", worker, how)  # the worker has logged why
            self._exit_code = 128 - code if code < 0 else code or 1
            return
        is_stable = time.monotonic() - worker.started_at > _STABLE
        worker.failures = 1 if is_stable else worker.failures + 1
        pause = min(_FIRST_PAUSE * 2 ** min(worker.failures - 1, 10), _LONGEST_PAUSE)
        worker.due = time.monotonic() + pause
        _LOG.error("%s %s: it is replaced in %gs", worker, how, pause)

    def _stop(self, code: int) -> int:
        """Stop the workers; kill those that do not stop in time, which makes it a failure."""
        self._send(signal.SIGTERM)
        limit = time.monotonic() + self._stop_timeout.total_seconds()
        while any(worker.pid for worker in self._workers) and (pause := limit - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, pause)
            for worker, status in self._reap():
                _LOG.info("%s stopped", worker)
                code = code or int(
                    worker.is_ready and status != 0
                )  # one that was still starting cannot stop gracefully
        for worker in self._send(signal.SIGKILL):
            _LOG.error("%s did not stop within %s: it was killed", worker, format_duration(self._stop_timeout))
            os.waitpid(worker.pid, 0)
            code = code or 1
        _LOG.info("stopped")
        return code

    def _send(self, signo: signal.Signals) -> list[_Worker]:
        """Send a signal to all running workers, and return them."""
        running = [worker for worker in self._workers if worker.pid]
        for worker in running:
            os.kill(worker.pid, signo)
        return running


def _terminate_with(supervisor: int) -> None:
    """Let the system send SIGTERM to this worker when the supervisor ends, even by SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != supervisor:  # it ended before the prctl call
        raise SystemExit(1)
