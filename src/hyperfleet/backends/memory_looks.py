"""When the sentinel looks at which resource, in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from zlib import crc32

from msgspec.structs import replace

from hyperfleet.backends.memory_contents import MemoryContents
from hyperfleet.ports import Clock, LookCounts, LookMove, LookPage, LookPlan, Record, ScheduledLook, Scope
from hyperfleet.sentinel.schedule import NO_LOOKS


class MemoryLooks:
    """The looks of a store."""

    def __init__(self, contents: MemoryContents, clock: Clock) -> None:
        """Use the contents of an open store."""
        self._contents = contents
        self._clock = clock

    async def due(self, kind: str, scope: Scope, limit: int, after: tuple[datetime, str] | None = None) -> LookPage:
        """Return resources that are due, the longest first."""
        now = self._clock.now()
        keyed = sorted((at, id_) for at, id_ in self._times(kind, scope) if at <= now)
        chosen = [key for key in keyed if after is None or key > after][:limit]
        return LookPage(now, _scheduled(self._contents.records[id_] for _, id_ in chosen))

    async def read(self, kind: str, ids: Collection[str], scope: Scope) -> LookPage:
        """Return resources by id, in order of ids."""
        found = [self._contents.records[id_] for id_ in sorted(set(ids)) if id_ in self._contents.records]
        visible = [each for each in found if each.resource.kind == kind and scope.admits(each.resource.tenant)]
        return LookPage(self._clock.now(), _scheduled(visible))

    async def count(self, kind: str, scope: Scope, limit: int) -> LookCounts:
        """Count the resources that are due, at most `limit`."""
        now = self._clock.now()
        times = sorted(at for at, _ in self._times(kind, scope))
        due = [at for at in times if at <= now]
        later = times[len(due) :]
        return LookCounts(now, min(len(due), limit), due[0] if due else None, later[0] if later else None)

    async def advance(self, moves: Sequence[LookMove]) -> frozenset[str]:
        """Set the next look at resources; return the ids of those that were still as they had been read."""
        records = self._contents.records
        moved = [move for move in moves if move.id in records and records[move.id].look == move.before]
        for move in moved:
            records[move.id] = replace(records[move.id], look=move.after)
        return frozenset(move.id for move in moved)

    async def spread(self, after: str, limit: int, over: timedelta, *, forgets: bool = False) -> str | None:
        """Let resources be due within a time, at random; return the last id; None: that was all."""
        records, now = self._contents.records, self._clock.now()
        ids = sorted(id_ for id_ in records if id_ > after)[:limit]
        for id_ in ids:
            look = records[id_].look
            at = now + over * (crc32(id_.encode(errors="replace")) / 2**32)
            history = NO_LOOKS if forgets else look.history
            records[id_] = replace(records[id_], look=LookPlan(at if look.at is None else min(look.at, at), history))
        return ids[-1] if len(ids) == limit else None

    async def rules_digest(self) -> str:
        """Return the digest of the rules with which all looks were scheduled."""
        return self._contents.look_rules

    async def save_rules_digest(self, digest: str) -> None:
        """Save the digest of the rules."""
        self._contents.look_rules = digest

    def _times(self, kind: str, scope: Scope) -> Iterable[tuple[datetime, str]]:
        for id_, record in self._contents.records.items():
            resource = record.resource
            if record.look.at is not None and resource.kind == kind and scope.admits(resource.tenant):
                yield record.look.at, id_


def _scheduled(records: Iterable[Record]) -> tuple[ScheduledLook, ...]:
    return tuple(ScheduledLook(each.resource, each.status, each.answer, each.look) for each in records)
