"""Waiting for a state of a resource: repeated `:wait` requests until the caller's timeout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypedDict

from hyperfleet.client.answers.resource import R, WaitResult
from hyperfleet.client.effects import ApiRequest, Flow, Pause, Query
from hyperfleet.client.errors import ApiError, ConnectionFailed, Forgotten, WaitTimeout
from hyperfleet.client.events import ServerEvent
from hyperfleet.client.exchange import SILENCE, Attempts, RetryPolicy, decode_part, may_repeat, requested_pause
from hyperfleet.client.query import TextList, write_seconds
from hyperfleet.client.watching import read_result

_LONGEST: Final = 3600.0  # seconds: the server's maximum for one request
_GRACE: Final = 5.0  # seconds after the timeout for the server to answer what was missing

VersionCallback: TypeAlias = Callable[[R], None]


class WaitOptions(TypedDict, total=False):
    """What to wait for, in the syntax of docs/watch.md: `condition=Ready`, `phase=Ready`, `adapter=dns`, `deleted` …"""

    for_: TextList  # all must hold at once; default: `condition=Ready`
    fail_on: TextList  # give up when one of these holds
    observed: str  # `any`: accept observations of earlier generations as well
    timeout: float  # seconds in all, over several requests if necessary


def wait(
    path: str, options: WaitOptions, shape: type[R], retry: RetryPolicy, on_version: VersionCallback[R] | None = None
) -> Flow[R | None]:
    """Return the resource at the time the awaited state was reached; None: it is gone, and the wait was for that."""
    monotonic = retry.runtime.monotonic
    limit = monotonic() + options.get("timeout", 30.0)
    attempts = retry.begin()

    def see(event: ServerEvent) -> None:
        attempts.reset(limit)
        if on_version is not None and event.name == "version":
            on_version(decode_part(shape, event.data))

    while True:
        remaining = max(limit - monotonic(), 0.001)
        request = ApiRequest("GET", f"{path}:wait", _query(options, min(remaining, _LONGEST)))
        try:
            timeout, silence = (min(each, remaining + _GRACE) for each in (retry.timeout, SILENCE))
            return _read(shape, (yield from read_result(request, timeout, see, silence)))
        except (WaitTimeout, Forgotten) as error:
            failure: ApiError | ConnectionFailed = error
            attempts.reset(limit)
        except (ConnectionFailed, ApiError) as error:
            if not may_repeat(request, error):
                raise
            failure = error
        yield from _pause_before_retry(attempts, failure, limit - monotonic())


def _pause_before_retry(attempts: Attempts, failure: ApiError | ConnectionFailed, remaining: float) -> Flow[None]:
    """Pause before the next request; raise the failure if no time is left."""
    pause = attempts.pause(requested_pause(failure))
    if pause is None or pause >= remaining:
        raise failure
    yield Pause(pause)


def _query(options: WaitOptions, seconds: float) -> Query:
    observed = options.get("observed")
    return (
        *(("for", target) for target in _each(options.get("for_", ()))),
        *(("failOn", target) for target in _each(options.get("fail_on", ()))),
        *((("observed", observed),) if observed else ()),
        ("timeout", write_seconds(seconds)),
    )


def _each(words: TextList) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _read(shape: type[R], event: ServerEvent) -> R | None:
    answer = decode_part(WaitResult, event.data)
    return decode_part(shape, answer.resource) if bytes(answer.resource) else None
