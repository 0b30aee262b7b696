"""The guide's four recipes, as one flow each: wait for an adapter, is it ready, what failed, how far is it.

The recipes fetch and compare; the server knows all of it, so each is one request, or one that waits.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.client import waiting
from hyperfleet.client.answers.explanation import Explanation
from hyperfleet.client.answers.report import AdapterProgress, FailedAdapter
from hyperfleet.client.answers.resource import Resource
from hyperfleet.client.effects import Flow, Request
from hyperfleet.client.exchange import Patience, fetch
from hyperfleet.client.places import Subject, place_of
from hyperfleet.client.waiting import Seen, Wishes

FAILED_STATES: Final = ("Failed", "Unhealthy")
_NOT_STARTED: Final = ("Unreported", "pending", "Not started")  # in the words of the guide


def wait_for_adapter(
    subject: Subject, adapter: str, timeout: float, patience: Patience, on_version: Seen[Resource] | None
) -> Flow[Resource]:
    """Wait until an adapter has completed the present generation; give up as soon as it fails."""
    path = yield from place_of(subject).locate(subject, patience)
    wishes: Wishes = {
        "for_": f"adapter={adapter}",
        "fail_on": [f"adapter={adapter}={state}" for state in FAILED_STATES],
        "timeout": timeout,
    }
    resource = yield from waiting.wait(path, wishes, Resource, patience, on_version)
    assert resource is not None  # noqa: S101  # only who waits for `deleted` gets nothing
    return resource


def is_ready(subject: Subject, patience: Patience) -> Flow[bool]:
    """Tell whether a resource is Ready now."""
    path = yield from place_of(subject).locate(subject, patience)
    request = Request("GET", path, (("fields", "status.phase"),))
    return (yield from fetch(Resource, request, patience)).is_ready


def failed_adapters(subject: Subject, patience: Patience) -> Flow[tuple[FailedAdapter, ...]]:
    """Return the adapters that failed on the present generation, in the order of the policy, and why."""
    told = yield from _explain(subject, patience)
    return tuple(
        FailedAdapter(each.name, each.state, each.reason, each.message, each.observed_generation, each.since)
        for each in told.adapters
        if each.state in FAILED_STATES
    )


def progress(subject: Subject, patience: Patience) -> Flow[tuple[AdapterProgress, ...]]:
    """Return how far each adapter is, in the order of the policy: also those that have not reported yet."""
    told = yield from _explain(subject, patience)
    unreported, pending, not_started = _NOT_STARTED
    return tuple(
        AdapterProgress(
            each.name,
            pending if each.state == unreported else each.state.lower(),
            each.observed_generation,
            each.message or (not_started if each.state == unreported else ""),
            each.required,
            each.stale,
        )
        for each in told.adapters
    )


def _explain(subject: Subject, patience: Patience) -> Flow[Explanation]:
    path = yield from place_of(subject).locate(subject, patience)
    return (yield from fetch(Explanation, Request("GET", f"{path}:explain"), patience))
