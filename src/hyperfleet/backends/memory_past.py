"""The past in the memory store: reading it, and pruning it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from hyperfleet.backends.memory_contents import MemoryContents
from hyperfleet.backends.past import Horizon, WalkedLog, was_there
from hyperfleet.backends.pruning import WalkStep, choose_victims, event_step, expired
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import EventPage, LoggedEvent, NewEvent, PastReport, Pruning, Scope

# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def events_of(contents: MemoryContents, resource_id: str) -> list[LoggedEvent]:
    """Return the kept events of a resource, in order."""
    return [_logged_event(at, event) for at, event in contents.events.items() if event.resource.id == resource_id]


def is_known(entries: Sequence[LoggedEvent], kind: str, scope: Scope, parent_id: str | None) -> bool:
    """Tell whether a resource has events, and the newest one is of this kind and visible."""
    if not entries:
        return False
    newest = entries[-1]
    return newest.kind == kind and scope.admits(newest.tenant) and parent_id in (None, newest.parent_id)


def is_visible(contents: MemoryContents, resource_id: str, scope: Scope) -> bool:
    """Tell whether the past of a resource is visible: only its newest event has the tenant."""
    if scope.tenants is None:
        return True
    entries = events_of(contents, resource_id)
    return bool(entries) and scope.admits(entries[-1].tenant)


def read_events(contents: MemoryContents, after: int, limit: int) -> EventPage:
    """Return events after a position."""
    contents.horizons["events"].require_position(after)
    positions = [position for position in contents.events if position > after][:limit]
    return EventPage(tuple(_logged_event(at, contents.events[at]) for at in positions), contents.position)


def read_version(contents: MemoryContents, resource_id: str, at: datetime) -> LoggedEvent | None:
    """Return the event that was a resource's latest at a time; the resource has events."""
    entries = events_of(contents, resource_id)
    if not was_there(contents.horizons["events"], (entries[0].type, entries[0].time), at):
        return None
    until = [entry for entry in entries if entry.time <= at]
    if not until:
        raise HistoryPruned("the last change before then is no longer kept")
    return until[-1]


def read_versions(contents: MemoryContents, resource_id: str, scope: Scope, since: datetime) -> tuple[LoggedEvent, ...]:
    """Return a resource's events with an answer, from the latest at a time on."""
    events = events_of(contents, resource_id)
    entries = [entry for entry in events if entry.answer is not None and scope.admits(entry.tenant)]
    before = [entry for entry in entries if entry.time <= since]
    return (*before[-1:], *(entry for entry in entries if entry.time > since))


def read_reports_at(
    contents: MemoryContents, resource_id: str, scope: Scope, generation: int
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter at a generation, by adapter name."""
    log = _read_log(contents, resource_id, scope)
    return _last_of_adapters(each for each in log if each.stored.report.observed_generation == generation)


def read_reports(contents: MemoryContents, resource_id: str, scope: Scope, at: datetime) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter received until a time, by adapter name."""
    contents.horizons["reports"].require_time(at)
    log = _read_log(contents, resource_id, scope)
    return _last_of_adapters(each for each in log if each.received_time <= at)


def read_report_log(
    contents: MemoryContents, resource_id: str, scope: Scope, since: datetime
) -> tuple[PastReport, ...]:
    """Return the last report of each adapter before a time, then all later ones, in order."""
    log = _read_log(contents, resource_id, scope)
    last = {each.stored.report.adapter: each for each in log if each.received_time < since}
    return tuple(each for each in log if each.received_time >= since or last[each.stored.report.adapter] is each)


def _last_of_adapters(log: Iterable[PastReport]) -> tuple[StoredReport, ...]:
    last = {each.stored.report.adapter: each.stored for each in log}
    return tuple(stored for _, stored in sorted(last.items()))


def _read_log(contents: MemoryContents, resource_id: str, scope: Scope) -> list[PastReport]:
    if not is_visible(contents, resource_id, scope):
        return []
    record = contents.records.get(resource_id)
    return contents.log.read(resource_id, record.reports if record else {})


def _logged_event(position: int, event: NewEvent) -> LoggedEvent:
    resource = event.resource
    return LoggedEvent(
        position,
        event.type,
        resource.kind,
        resource.id,
        resource.parent_id,
        resource.tenant,
        resource.generation,
        event.time,
        event.answer,
        event.facets,
    )


# ── pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────


def prune(contents: MemoryContents, task: Pruning, cutoff: datetime, limit: int) -> int:
    """Delete up to `limit` rows that are older than `cutoff` and not needed; return their number."""
    match task.log:
        case "events":
            return _prune_events(contents, cutoff, limit)
        case "reports":
            return _move_horizon(contents, "reports", contents.log.prune(cutoff, limit), cutoff)
        case "keys":
            keys = [key for key, answer in contents.idempotency_records.items() if answer.time < cutoff][:limit]
            for key in keys:
                del contents.idempotency_records[key]
            return len(keys)
        case "transitions":
            return _prune_transitions(contents, cutoff, limit)


def _prune_transitions(contents: MemoryContents, cutoff: datetime, limit: int) -> int:
    lowest = contents.lowest_reader
    old = [
        place
        for place, (_, each) in enumerate(contents.history)
        if each.transition.time < cutoff and each.position <= lowest
    ]
    if gone := set(old[:limit]):
        position = max(contents.history[place][1].position for place in gone)
        before = contents.moves_horizon
        contents.moves_horizon = Horizon(max(before.position, position), max(before.time, cutoff))
        contents.history = [each for place, each in enumerate(contents.history) if place not in gone]
    return len(gone)


def _prune_events(contents: MemoryContents, cutoff: datetime, limit: int) -> int:
    """Delete events; the reports of a removed resource before its last event, without which they are unreachable."""
    steps = [step for step in expired(_steps(contents.events.items()), cutoff) if step.key <= contents.lowest_reader]
    if orphans := contents.log.drop([step.gone for step in steps if step.gone], limit):
        return _move_horizon(contents, "events", orphans, cutoff)
    walk = choose_victims(steps, 0, limit)
    for position in walk.victims:
        del contents.events[position]
    return _move_horizon(contents, "events", len(walk.victims), cutoff, max(walk.victims, default=0))


def _steps(events: Iterable[tuple[int, NewEvent]]) -> Iterator[WalkStep]:
    """Yield each event with those that become obsolete when it expires."""
    last: dict[str, int] = {}
    for position, event in events:
        id_ = event.resource.id
        yield event_step(position, event.time, event.type, id_, last.get(id_))
        last[id_] = position


def _move_horizon(contents: MemoryContents, log: WalkedLog, deleted: int, cutoff: datetime, position: int = 0) -> int:
    """Move the horizon if anything was deleted; return the number."""
    if deleted:
        before = contents.horizons[log]
        contents.horizons[log] = Horizon(max(before.position, position), max(before.time, cutoff))
    return deleted
