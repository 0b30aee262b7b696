"""Finds a resource as it was at a past time in the event log, or explains why that is not possible.

The API calls `read_moment` for the requested time, then `find_version` and, for what adapters had reported,
`find_reports`. Nothing is recomputed: the result is what was stored then.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec

from hyperfleet.errors import HistoryPruned
from hyperfleet.model.condition import UNKNOWN
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.ports import LoggedEvent, Scope, Store
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.results import Refusal, Target, not_found

AT: Final = "at"
# Times in answers are the database's. A caller may send such a time back at once, and our own clock may be a little
# behind; this is more than the skew of machines with NTP.
_SKEW: Final = timedelta(seconds=10)


def read_moment(given: Parameters, name: str, now: datetime) -> datetime | None:
    """Parse a past time; a future one is an error."""
    moment = given.instant(name, now)
    if moment is not None and moment > now + _SKEW:
        message = f"{write_time(moment)} is in the future: it is {write_time(now)} now"
        given.refuse(name, "InTheFuture", message)
    return moment


async def find_version(store: Store, target: Target, scope: Scope, at: datetime) -> LoggedEvent | Refusal:
    """Return a resource as it was; if it did not exist, refuse with when it was created or removed."""
    try:
        entry = await store.read_version(target.kind.name, target.id, scope, at, target.parent_id)
    except HistoryPruned as error:
        return _refuse_pruned(target, at, error)
    if entry is None:
        return await _refuse_not_yet_created(store, target, scope, at)
    if entry.type == "Removed":
        removed = write_time(entry.time)
        return Refusal("NotFound", f"{_name(target)} no longer existed at {write_time(at)}: it was removed {removed}")
    return entry


async def find_reports(
    store: Store, target: Target, scope: Scope, at: datetime, listed: Collection[str]
) -> tuple[StoredReport, ...] | Refusal:
    """Return the last report of every adapter at that time; `listed` are the adapters in the resource's status then.

    The log keeps the reports of a retired adapter, but the status no longer lists it. An adapter that has only ever
    reported Unknown is in no status, so nothing shows when it was retired: it is taken to be there.
    """
    try:
        reports = await store.read_reports_past(target.id, scope, at)
    except HistoryPruned as error:
        return _refuse_pruned(target, at, error)
    found = tuple(
        stored for stored in reports if stored.report.adapter in listed or stored.report.status_of(AVAILABLE) == UNKNOWN
    )
    return found or Refusal("NotFound", f"no adapter had reported on {target.id} at {write_time(at)}")


def write_time(time: datetime) -> str:
    """Format a time as answers do."""
    return str(msgspec.to_builtins(time))


async def _refuse_not_yet_created(store: Store, target: Target, scope: Scope, at: datetime) -> Refusal:
    """Refuse with when the resource was created, if the caller may know that it exists or existed."""
    kind, id_, parent_id = target.kind.name, target.id, target.parent_id
    record = await store.read_record(kind, id_, scope, parent_id)
    if record is None and not await store.existed(kind, id_, scope, parent_id):
        return not_found(target)
    later = (
        f": it was created {write_time(record.resource.created_time)}" if record else ", and it has been removed since"
    )
    return Refusal("NotFound", f"{_name(target)} did not exist yet at {write_time(at)}{later}")


def _refuse_pruned(target: Target, at: datetime, error: HistoryPruned) -> Refusal:
    """Refuse because that time is pruned; the store's error says how far back history goes."""
    return Refusal("Forgotten", f"the state of {_name(target)} at {write_time(at)} is no longer known: {error}")


def _name(target: Target) -> str:
    return f"{target.kind.name} {target.id}"
