"""The past in the memory store: what happened to a resource, and forgetting it in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from hyperfleet.backends.memory_contents import Contents
from hyperfleet.backends.memory_log import Row
from hyperfleet.backends.past import Horizon, WalkedLog, was_there
from hyperfleet.backends.pruning import Step, choose_victims, expired
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Draft, Entries, Entry, Pruning, Scope, Version

# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def events_of(contents: Contents, resource_id: str) -> list[Entry]:
    """Return the events of a resource that are kept, in their order."""
    return [_entry(at, draft) for at, draft in contents.events.items() if draft.resource.id == resource_id]


def is_known(entries: Sequence[Entry], kind: str, scope: Scope, parent_id: str | None) -> bool:
    """Tell whether a resource's newest event, if it has one, says that it is this kind's and may be seen."""
    if not entries:
        return False
    newest = entries[-1]
    return newest.kind == kind and scope.admits(newest.tenant) and parent_id in (None, newest.parent_id)


def is_visible(contents: Contents, resource_id: str, scope: Scope) -> bool:
    """Tell whether what is kept of a resource may be seen: its newest event knows whose it is, and only that."""
    if scope.tenants is None:
        return True
    entries = events_of(contents, resource_id)
    return bool(entries) and scope.admits(entries[-1].tenant)


def read_events(contents: Contents, after: int, limit: int) -> Entries:
    """Return events after a position."""
    contents.horizons["events"].require_position(after)
    positions = range(after + 1, min(contents.position, after + limit) + 1)
    return Entries(tuple(_entry(at, contents.events[at]) for at in positions), contents.position)


def read_version(contents: Contents, resource_id: str, at: datetime) -> Version | None:
    """Return a resource of which there are events as it was at a moment."""
    entries = events_of(contents, resource_id)
    if not was_there(contents.horizons["events"], (entries[0].type, entries[0].time), at):
        return None
    until = [entry for entry in entries if entry.time <= at]
    full = [entry for entry in until if entry.type != "Reported"]
    if not full:
        raise HistoryPruned("the last full answer before then is no longer kept")
    entry, last = full[-1], until[-1]
    if last is entry:
        return Version(entry, entry.position)
    contents.horizons["reports"].require_time(at)
    heard = {
        stored.report.adapter: stored.effective_time
        for row, stored in contents.log.read(resource_id)
        if row.position is not None and entry.position < row.position <= last.position
    }
    return Version(entry, last.position, last.time, heard)


def read_versions(contents: Contents, resource_id: str, scope: Scope, since: datetime) -> tuple[Entry, ...]:
    """Return a resource's events with an answer from the one in force at a moment on."""
    events = events_of(contents, resource_id)
    entries = [entry for entry in events if entry.answer is not None and scope.admits(entry.tenant)]
    before = [entry for entry in entries if entry.time <= since]
    return (*before[-1:], *(entry for entry in entries if entry.time > since))


def read_reports(contents: Contents, resource_id: str, scope: Scope, at: datetime) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter that was received until a moment, by adapter name."""
    contents.horizons["reports"].require_time(at)
    log = _read_log(contents, resource_id, scope)
    reports = {stored.report.adapter: stored for row, stored in log if row.stored.last_heard <= at}
    return tuple(report for _, report in sorted(reports.items()))


def read_report_log(contents: Contents, resource_id: str, scope: Scope, since: datetime) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter before a moment, then all from then on, in their order."""
    log = _read_log(contents, resource_id, scope)
    last = {stored.report.adapter: row.sequence for row, stored in log if row.stored.last_heard < since}
    wanted = set(last.values())
    return tuple(stored for row, stored in log if row.stored.last_heard >= since or row.sequence in wanted)


def _read_log(contents: Contents, resource_id: str, scope: Scope) -> list[tuple[Row, StoredReport]]:
    return contents.log.read(resource_id) if is_visible(contents, resource_id, scope) else []


def _entry(position: int, draft: Draft) -> Entry:
    resource = draft.resource
    return Entry(
        position,
        draft.type,
        resource.kind,
        resource.id,
        resource.parent_id,
        resource.tenant,
        resource.generation,
        draft.time,
        draft.answer,
        draft.facets,
    )


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────


def prune(contents: Contents, task: Pruning, cutoff: datetime, limit: int) -> int:
    """Delete up to `limit` rows that are older than `cutoff` and that nothing needs; return how many went."""
    match task.log:
        case "events":
            return _prune_events(contents, cutoff, limit)
        case "reports":
            return _forget(contents, "reports", contents.log.prune(cutoff, limit), cutoff)
        case "keys":
            keys = [key for key, answer in contents.remembered.items() if answer.time < cutoff][:limit]
            for key in keys:
                del contents.remembered[key]
            return len(keys)
        case "transitions":
            return _prune_transitions(contents, cutoff, limit)


def _prune_transitions(contents: Contents, cutoff: datetime, limit: int) -> int:
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


def _prune_events(contents: Contents, cutoff: datetime, limit: int) -> int:
    """Delete events; before the last ones of a resource that is gone, the reports that nobody can ask for then."""
    steps = [step for step in expired(_steps(contents.events.items()), cutoff) if step.key <= contents.lowest_reader]
    if orphans := contents.log.drop([step.gone for step in steps if step.gone], limit):
        return _forget(contents, "events", orphans, cutoff)
    walk = choose_victims(steps, 0, limit)
    for position in walk.victims:
        del contents.events[position]
    return _forget(contents, "events", len(walk.victims), cutoff, max(walk.victims, default=0))


def _steps(events: Iterable[tuple[int, Draft]]) -> Iterator[Step]:
    """Yield each event with those that need not be kept once it is past its time."""
    last: dict[str, int] = {}
    last_full: dict[str, int] = {}
    for position, draft in events:
        id_, is_removal = draft.resource.id, draft.type == "Removed"
        before, before_full = last.get(id_), last_full.get(id_)
        beat = before if before != before_full else None
        if draft.type == "Reported":
            yield Step(position, draft.time, (beat,))
        else:
            itself = position if is_removal else None
            yield Step(position, draft.time, (beat, before_full, itself), id_ if is_removal else None)
            last_full[id_] = position
        last[id_] = position


def _forget(contents: Contents, log: WalkedLog, deleted: int, cutoff: datetime, position: int = 0) -> int:
    """Move the horizon, if anything was deleted; return how much."""
    if deleted:
        before = contents.horizons[log]
        contents.horizons[log] = Horizon(max(before.position, position), max(before.time, cutoff))
    return deleted
