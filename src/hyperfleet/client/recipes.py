"""The guide's four recipes, one flow each: wait for an adapter, readiness, failed adapters, progress.

In the guide they fetch and compare; here each is one request, because the server answers the question.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.client import waiting
from hyperfleet.client.answers.explanation import Explanation
from hyperfleet.client.answers.report import AdapterProgress, FailedAdapter
from hyperfleet.client.answers.resource import Resource
from hyperfleet.client.effects import ApiRequest, Flow
from hyperfleet.client.exchange import RetryPolicy, fetch
from hyperfleet.client.paths import ResourceLike, type_of
from hyperfleet.client.waiting import VersionCallback, WaitOptions

FAILED_STATES: Final = ("Failed", "Unhealthy")
_NOT_STARTED: Final = ("Unreported", "pending", "Not started")  # the guide's wording


def wait_for_adapter(
    subject: ResourceLike,
    adapter: str,
    timeout: float,
    retry: RetryPolicy,
    on_version: VersionCallback[Resource] | None,
) -> Flow[Resource]:
    """Wait until an adapter has completed the present generation; give up as soon as it fails."""
    path = yield from type_of(subject).locate(subject, retry)
    options: WaitOptions = {
        "for_": f"adapter={adapter}",
        "fail_on": [f"adapter={adapter}={state}" for state in FAILED_STATES],
        "timeout": timeout,
    }
    resource = yield from waiting.wait(path, options, Resource, retry, on_version)
    assert resource is not None  # noqa: S101  # only a wait for `deleted` returns None
    return resource


def is_ready(subject: ResourceLike, retry: RetryPolicy) -> Flow[bool]:
    """Return whether a resource is Ready now."""
    path = yield from type_of(subject).locate(subject, retry)
    request = ApiRequest("GET", path, (("fields", "status.phase"),))
    return (yield from fetch(Resource, request, retry)).is_ready


def failed_adapters(subject: ResourceLike, retry: RetryPolicy) -> Flow[tuple[FailedAdapter, ...]]:
    """Return the adapters that failed on the present generation and why, in the order of the policy."""
    explanation = yield from _explain(subject, retry)
    return tuple(
        FailedAdapter(each.name, each.state, each.reason, each.message, each.observed_generation, each.since)
        for each in explanation.adapters
        if each.state in FAILED_STATES
    )


def progress(subject: ResourceLike, retry: RetryPolicy) -> Flow[tuple[AdapterProgress, ...]]:
    """Return the progress of each adapter in the order of the policy, including those without a report."""
    explanation = yield from _explain(subject, retry)
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
        for each in explanation.adapters
    )


def _explain(subject: ResourceLike, retry: RetryPolicy) -> Flow[Explanation]:
    path = yield from type_of(subject).locate(subject, retry)
    return (yield from fetch(Explanation, ApiRequest("GET", f"{path}:explain"), retry))
