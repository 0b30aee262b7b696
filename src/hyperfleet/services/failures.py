"""Failing adapters, and groups of those that share a cause: the same adapter, reason and message.

Pure: `find_failures` lists the failures of one resource, `group_failures` groups those of many, `narrow_to_failing`
narrows a query to resources that may have any. `failure_search` reads them.

An adapter fails when it is Failed or Unhealthy, when it is stale, or when it is required and has not reported within
the policy's timeout. An adapter that a resource still waits for does not fail: that is normal progress.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation import Policy
from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.situation import read_situation
from hyperfleet.model.phase import TROUBLED_PHASES
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Query, Record, TokenTerm
from hyperfleet.services.message_folding import fold_message

STALE: Final = "Stale"
MISSING: Final = "Missing"
UNHEALTHY: Final = "Unhealthy"  # the reason of a Health=False that gives none

_UNHEALTHY_MESSAGE: Final = "has Health=False and gives no message"

_TROUBLED: Final = tuple(f"p:{phase}" for phase in TROUBLED_PHASES)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


class Failure(Struct, frozen=True):
    """One adapter that fails for one resource."""

    resource: Resource
    adapter: str
    reason: str
    message: str
    since: datetime


class Growth(Struct, frozen=True):
    """How many failures of a group are new."""

    last_hour: int
    last_day: int


class LabelShare(Struct, frozen=True):
    """A label, and the share of a group that has it."""

    key: str
    value: str
    share: float


class CauseGroup(Struct, frozen=True):
    """Failures that seem to share a cause, the oldest first; each of another resource."""

    adapter: str
    reason: str
    message: str  # with placeholders for everything in which messages of one cause differ
    failures: tuple[Failure, ...]
    labels: tuple[LabelShare, ...]  # those that more than half of them have; the most common first
    growth: Growth

    @property
    def kinds(self) -> Mapping[str, int]:
        """Count the resources by kind."""
        return Counter(failure.resource.kind for failure in self.failures)


# ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────


def narrow_to_failing(query: Query, adapters: Iterable[str]) -> Query:
    """Narrow a query to resources that may have a failing adapter; a missing adapter shows in the phase."""
    tokens = [token for name in adapters for token in (f"a:{name}=Failed", f"a:{name}=Unhealthy", f"s:{name}")]
    return replace(query, terms=(*query.terms, TokenTerm((*_TROUBLED, *tokens))))


def find_failures(record: Record, policy: Policy) -> tuple[Failure, ...]:
    """Return the adapters that fail for a resource, as of the time its status was computed."""
    resource, status = record.resource, record.status
    situation = read_situation(resource, record.reports, policy, status, status.memory.written_time)
    since = {summary.name: summary.state_since for summary in status.adapters}
    failures = [
        failure
        for view in situation.adapters.all
        if (failure := _failure_of(resource, view, since.get(view.adapter, situation.now))) is not None
    ]
    failures += [
        Failure(resource, view.adapter, MISSING, "has not reported in time", situation.missing_at[view.adapter])
        for view in situation.missing
    ]
    return tuple(failures)


def _failure_of(resource: Resource, view: AdapterView, since: datetime) -> Failure | None:
    if view.state == "Failed":
        return Failure(resource, view.adapter, view.reason, view.message, since)
    if view.state == "Unhealthy":
        reason, message = view.why
        return Failure(resource, view.adapter, reason or UNHEALTHY, message or _UNHEALTHY_MESSAGE, since)
    if view.is_stale:
        return Failure(resource, view.adapter, STALE, "has been silent for too long", view.stale_at or since)
    return None


# ── grouping ─────────────────────────────────────────────────────────────────────────────────────────────────────


def group_failures(failures: Iterable[Failure], now: datetime) -> tuple[CauseGroup, ...]:
    """Group failures by cause, the largest group first; the order of the input does not matter."""
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in failures:
        key = (failure.adapter, failure.reason, _fold_message(failure))
        groups.setdefault(key, []).append(failure)
    made = [_make_group(*key, group, now) for key, group in groups.items()]
    return tuple(sorted(made, key=lambda each: (-len(each.failures), each.adapter, each.reason, each.message)))


def _fold_message(failure: Failure) -> str:
    resource = failure.resource
    return fold_message(failure.message, (resource.id, resource.parent_id or "", resource.name))


def _make_group(adapter: str, reason: str, message: str, failures: list[Failure], now: datetime) -> CauseGroup:
    oldest_first = sorted(failures, key=lambda failure: (failure.since, failure.resource.id))
    ages = [now - failure.since for failure in failures]
    growth = Growth(sum(age <= _HOUR for age in ages), sum(age <= _DAY for age in ages))
    labels = tuple(_shared_labels([failure.resource.labels for failure in failures]))
    return CauseGroup(adapter, reason, message, tuple(oldest_first), labels, growth)


def _shared_labels(labels: list[Mapping[str, str]]) -> Iterator[LabelShare]:
    """Yield the labels that more than half have; so each key comes once."""
    counts = Counter(label for each in labels for label in each.items())
    for (key, value), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if 2 * count > len(labels):
            yield LabelShare(key, value, count / len(labels))
