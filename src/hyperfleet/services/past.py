"""A resource as it was at a moment: finding it in the event log, or saying why nobody can.

The API calls `read_moment` for each time it is asked for, then `find_version` and, for what adapters had reported,
`find_reports`. Nothing is computed anew: what is found is what was stored then.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec

from hyperfleet.errors import HistoryPruned
from hyperfleet.model.condition import UNKNOWN
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.ports import Entry, Scope, Store
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.results import Refusal, Target, not_found

AT: Final = "at"
# Times in answers are the database's. Who asks for one of them at once must not be told that it is yet to come,
# only because our own clock is a little behind.
_SKEW: Final = timedelta(seconds=10)


def read_moment(given: Parameters, name: str, now: datetime) -> datetime | None:
    """Return a moment of the past; one that is yet to come is an error."""
    moment = given.instant(name, now)
    if moment is not None and moment > now + _SKEW:
        message = f"{write_time(moment)} is yet to come: it is {write_time(now)} now"
        given.refuse(name, "InTheFuture", message)
    return moment


async def find_version(store: Store, target: Target, scope: Scope, at: datetime) -> Entry | Refusal:
    """Return a resource as it was; if it was not there, say since when or until when it was."""
    try:
        entry = await store.read_version(target.kind.name, target.id, scope, at, target.parent_id)
    except HistoryPruned as error:
        return _refuse_forgotten(target, at, error)
    if entry is None:
        return await _refuse_unborn(store, target, scope, at)
    if entry.type == "Removed":
        removed = write_time(entry.time)
        return Refusal("NotFound", f"{_name(target)} was no longer there at {write_time(at)}: it was removed {removed}")
    return entry


async def find_reports(
    store: Store, target: Target, scope: Scope, at: datetime, listed: Collection[str]
) -> tuple[StoredReport, ...] | Refusal:
    """Return what every adapter had last reported; `listed` are those that the resource's status told of then.

    The log keeps the words of an adapter that was retired; the status no longer told of it. One that has only ever
    said Unknown is never told of by a status, so that nothing shows when it was retired: it is taken to be there.
    """
    try:
        reports = await store.read_reports_past(target.id, scope, at)
    except HistoryPruned as error:
        return _refuse_forgotten(target, at, error)
    found = tuple(
        stored for stored in reports if stored.report.adapter in listed or stored.report.status_of(AVAILABLE) == UNKNOWN
    )
    return found or Refusal("NotFound", f"nobody had reported on {target.id} at {write_time(at)}")


def write_time(time: datetime) -> str:
    """Write a time as answers do."""
    return str(msgspec.to_builtins(time))


async def _refuse_unborn(store: Store, target: Target, scope: Scope, at: datetime) -> Refusal:
    """Say that a resource came later, if the caller may know that it ever came."""
    kind, id_, parent_id = target.kind.name, target.id, target.parent_id
    record = await store.read_record(kind, id_, scope, parent_id)
    if record is None and not await store.remembers(kind, id_, scope, parent_id):
        return not_found(target)
    later = f": it was created {write_time(record.resource.created_time)}" if record else ", and was removed since"
    return Refusal("NotFound", f"{_name(target)} was not there yet at {write_time(at)}{later}")


def _refuse_forgotten(target: Target, at: datetime, error: HistoryPruned) -> Refusal:
    """Say that the past is not kept for that long; the store says for how long it is."""
    return Refusal("Forgotten", f"how {_name(target)} was at {write_time(at)} cannot be told any more: {error}")


def _name(target: Target) -> str:
    return f"{target.kind.name} {target.id}"
