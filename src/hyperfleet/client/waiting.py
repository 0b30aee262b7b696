"""Waiting for a resource: asks the server to tell when it is so, again and again until our own time is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypedDict

from hyperfleet.client.answers.resource import R, WaitAnswer
from hyperfleet.client.effects import Flow, Pause, Query, Request
from hyperfleet.client.errors import ApiError, ConnectionFailed, Forgotten, WaitTimeout
from hyperfleet.client.events import ServerEvent
from hyperfleet.client.exchange import SILENCE, Attempts, Patience, decode_part, may_repeat, told_pause
from hyperfleet.client.query import Words, write_seconds
from hyperfleet.client.watching import conclude

_LONGEST: Final = 3600.0  # seconds that the server waits at most
_GRACE: Final = 5.0  # seconds after our time is up in which the server may say what was missing

Seen: TypeAlias = Callable[[R], None]


class Wishes(TypedDict, total=False):
    """What to wait for, in the words of docs/watch.md: `condition=Ready`, `phase=Ready`, `adapter=dns`, `deleted` …"""

    for_: Words  # all must hold of one version; `condition=Ready` unless told
    fail_on: Words  # one is enough to give up
    observed: str  # `any`: what was observed of an earlier generation counts as well
    timeout: float  # seconds, however long the server waits at once


def wait(
    path: str, wishes: Wishes, shape: type[R], patience: Patience, on_version: Seen[R] | None = None
) -> Flow[R | None]:
    """Return the resource as it was when what is waited for held; None: it is gone, as was waited for."""
    monotonic = patience.surroundings.monotonic
    limit = monotonic() + wishes.get("timeout", 30.0)
    attempts = patience.begin()

    def see(event: ServerEvent) -> None:
        attempts.persist(limit)
        if on_version is not None and event.name == "version":
            on_version(decode_part(shape, event.data))

    while True:
        remaining = max(limit - monotonic(), 0.001)
        request = Request("GET", f"{path}:wait", _query(wishes, min(remaining, _LONGEST)))
        try:
            timeout, silence = (min(each, remaining + _GRACE) for each in (patience.timeout, SILENCE))
            return _read(shape, (yield from conclude(request, timeout, see, silence)))
        except (WaitTimeout, Forgotten) as error:
            failure: ApiError | ConnectionFailed = error
            attempts.persist(limit)
        except (ConnectionFailed, ApiError) as error:
            if not may_repeat(request, error):
                raise
            failure = error
        yield from _rest(attempts, failure, limit - monotonic())


def _rest(attempts: Attempts, failure: ApiError | ConnectionFailed, remaining: float) -> Flow[None]:
    """Pause before asking again; raise what is in the way if there is no time left for it."""
    pause = attempts.pause(told_pause(failure))
    if pause is None or pause >= remaining:
        raise failure
    yield Pause(pause)


def _query(wishes: Wishes, seconds: float) -> Query:
    observed = wishes.get("observed")
    return (
        *(("for", wish) for wish in _each(wishes.get("for_", ()))),
        *(("failOn", wish) for wish in _each(wishes.get("fail_on", ()))),
        *((("observed", observed),) if observed else ()),
        ("timeout", write_seconds(seconds)),
    )


def _each(words: Words) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _read(shape: type[R], event: ServerEvent) -> R | None:
    answer = decode_part(WaitAnswer, event.data)
    return decode_part(shape, answer.resource) if bytes(answer.resource) else None
