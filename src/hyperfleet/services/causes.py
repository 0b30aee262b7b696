"""What has the same cause? Failing adapters grouped by who failed, with which reason and in which words.

Pure: `find_failures` tells what fails of one resource, `group_failures` groups what fails of many; `failing` narrows a
query to those that can have any. `survey` reads them.

An adapter fails when it is Failed or Unhealthy, when it is stale, or when it is required and has been silent for longer
than the policy allows. One that only keeps a resource waiting does not: that is what it looks like when all is well.
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
from hyperfleet.model.report import HEALTH
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Query, Record, Term
from hyperfleet.services.wordings import fold

STALE: Final = "Stale"
MISSING: Final = "Missing"

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
    """How many of a group are new."""

    last_hour: int
    last_day: int


class LabelShare(Struct, frozen=True):
    """A label, and which part of a group has it."""

    key: str
    value: str
    share: float


class CauseGroup(Struct, frozen=True):
    """Failures that look as if they had one cause, the oldest first; each of another resource."""

    adapter: str
    reason: str
    message: str  # with everything folded in which messages of one cause differ
    failures: tuple[Failure, ...]
    labels: tuple[LabelShare, ...]  # those that more than half of them have; the most shared first
    growth: Growth

    @property
    def kinds(self) -> Mapping[str, int]:
        """Count the resources by kind."""
        return Counter(failure.resource.kind for failure in self.failures)


# ── what fails ───────────────────────────────────────────────────────────────────────────────────────────────────


def failing(query: Query, adapters: Iterable[str]) -> Query:
    """Narrow a query to resources that may have a failing adapter; a missing one shows in the phase."""
    tokens = [token for name in adapters for token in (f"a:{name}=Failed", f"a:{name}=Unhealthy", f"s:{name}")]
    return replace(query, terms=(*query.terms, Term((*_TROUBLED, *tokens))))


def find_failures(record: Record, policy: Policy) -> tuple[Failure, ...]:
    """Return the adapters that fail for a resource, as of when its status was computed."""
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
        health = view.report.condition(HEALTH) if view.report else None
        reason, message = (health.reason, health.message) if health else ("", "")
        return Failure(resource, view.adapter, reason or view.reason, message or view.message, since)
    if view.is_stale:
        return Failure(resource, view.adapter, STALE, "has been silent for too long", view.stale_at or since)
    return None


# ── grouping ─────────────────────────────────────────────────────────────────────────────────────────────────────


def group_failures(failures: Iterable[Failure], now: datetime) -> tuple[CauseGroup, ...]:
    """Group failures by cause, the largest group first; the order they come in does not matter."""
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in failures:
        key = (failure.adapter, failure.reason, _fold_message(failure))
        groups.setdefault(key, []).append(failure)
    made = [_make_group(*key, group, now) for key, group in groups.items()]
    return tuple(sorted(made, key=lambda each: (-len(each.failures), each.adapter, each.reason, each.message)))


def _fold_message(failure: Failure) -> str:
    resource = failure.resource
    return fold(failure.message, (resource.id, resource.parent_id or "", resource.name))


def _make_group(adapter: str, reason: str, message: str, failures: list[Failure], now: datetime) -> CauseGroup:
    oldest_first = sorted(failures, key=lambda failure: (failure.since, failure.resource.id))
    ages = [now - failure.since for failure in failures]
    growth = Growth(sum(age <= _HOUR for age in ages), sum(age <= _DAY for age in ages))
    labels = tuple(_shared_labels([failure.resource.labels for failure in failures]))
    return CauseGroup(adapter, reason, message, tuple(oldest_first), labels, growth)


def _shared_labels(labels: list[Mapping[str, str]]) -> Iterator[LabelShare]:
    """Yield the labels that more than half have, so no key twice."""
    counts = Counter(label for each in labels for label in each.items())
    for (key, value), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if 2 * count > len(labels):
            yield LabelShare(key, value, count / len(labels))
