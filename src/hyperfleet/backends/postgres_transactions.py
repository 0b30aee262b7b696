"""★ Transactions of PostgreSQL: on what we remember or just saw, if it is still so; else on what we lock and load.

Records that this process wrote last are kept decoded with the versions of their rows; others are looked at without a
lock. A write that needs nothing else is computed at once and sent as one statement, which locks those rows, compares
their versions and writes, or does nothing: one round trip, or two. Where other replicas write the same resources it
fails, and the ordinary way follows: begin, lock, load, compute, write, commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from hyperfleet.backends.postgres_connections import Connection, transaction
from hyperfleet.backends.postgres_loading import load, peek, peek_sketches
from hyperfleet.backends.postgres_writing import Outcome, is_single, write
from hyperfleet.backends.record_cache import MOST_KEPT, Doubt, Found, RecordCache
from hyperfleet.backends.sketches import UnreadError, refuse_more_than_times
from hyperfleet.errors import Contended
from hyperfleet.ports import Changes, Loaded, Needs, Record, Work

_LEVEL: Final = timedelta()  # of two clocks that tell the same


class Transactions:
    """Runs transactions of one database, and remembers what they wrote."""

    def __init__(self, remembered: int = MOST_KEPT) -> None:
        """Remember nothing yet, and later up to so many bytes."""
        self._cache = RecordCache(remembered)
        self._policy_version: int | None = None
        self._ahead: timedelta | None = None  # of the database's clock before ours; None: nothing is known of it yet
        self._going_unlocked = Doubt()  # others may write here too

    async def run(self, connection: Connection, needs: Needs, work: Work) -> int:
        """Do one transaction; return the position before its first event."""
        try:
            known = await self._recall(connection, needs)
            base = None if known is None else await self._write_unlocked(connection, known, work)
        except UnreadError:
            self._cache.sketching.learn(is_success=False)
            base = None
        if base is not None:
            return base
        async with transaction(connection):
            return await self._write_from_rows(connection, needs, work)

    async def _write_from_rows(self, connection: Connection, needs: Needs, work: Work) -> int:
        ground = await load(connection, needs)
        self._policy_version = ground.loaded.policy_version
        changes = work(ground.loaded)
        if changes.is_empty:
            await connection.execute("rollback")  # unlike a commit it need not be flushed
            return ground.position
        sent = datetime.now(UTC)
        outcome = await write(connection, ground.loaded.policy_version, changes, ground.found, is_locked=True)
        if outcome is None:
            raise Contended("another policy came into force")
        self._compare_clocks(sent, outcome.now)
        await connection.execute("commit")
        self._remember(changes, outcome, ground.found)
        return outcome.base

    async def _write_unlocked(self, connection: Connection, found: Found, work: Work) -> int | None:
        """Write what follows from records that are not locked; None: they are not what they were."""
        policy_version = self._policy_version or 0
        sent = datetime.now(UTC)
        try:
            changes = work(Loaded(sent + (self._ahead or _LEVEL), policy_version, dict(found.records), {}, {}, {}))
        except UnreadError:
            raise
        except Exception:  # noqa: BLE001  # whatever it is, the ordinary way meets it too, and there it counts
            return None
        if changes.is_empty:
            return None  # a refusal must not rest on what may have changed
        refuse_more_than_times(changes)
        if is_single(changes):
            outcome = await write(connection, policy_version, changes, found, is_locked=False)
        else:
            async with transaction(connection):
                outcome = await write(connection, policy_version, changes, found, is_locked=False)
        self._going_unlocked.learn(is_success=outcome is not None)
        if outcome is None:
            return None
        self._compare_clocks(sent, outcome.now)
        self._remember(changes, outcome, found)
        return outcome.base

    async def _recall(self, connection: Connection, needs: Needs) -> Found | None:
        """Return all that is needed, as we remember it or, what we do not, as it is now; None: it must be locked."""
        if not self._going_unlocked.allows():
            return None
        if needs.names or needs.keys or self._policy_version is None or self._ahead is None:
            return None
        found = Found()
        self._add(found, needs.ids)
        missing = needs.ids - found.records.keys()
        if missing and (sent := self._cache.expect(needs, missing)):
            drawn = await peek_sketches(connection, sent, found)
            self._cache.tell_drawn(found, drawn, len(sent))
        self._add(found, _parents_of(found.records.values()) - found.records.keys())
        if missing := (needs.ids | _parents_of(found.records.values())) - found.records.keys():
            await peek(connection, missing, found)
        if not found.records.keys() >= needs.ids | _parents_of(found.records.values()):
            return None
        if any(needs.wants_children(record.resource) for record in found.records.values()):
            return None
        return found

    def _add(self, found: Found, ids: Collection[str]) -> None:
        """Add those of some records that we remember."""
        for id_, each in self._cache.find(ids).items():
            found.add(id_, each)

    def _remember(self, changes: Changes, outcome: Outcome, found: Found) -> None:
        """Keep what was committed, with the version that its rows have now."""
        for record in (*changes.inserted, *changes.updated):
            found.marks[record.resource.id] = outcome.version
        for id_, sizes in outcome.report_sizes.items():
            found.sizes[id_] = {**found.sizes.get(id_, {}), **sizes}
        self._cache.keep(changes, outcome.base, found)

    def _compare_clocks(self, sent: datetime, theirs: datetime) -> None:
        """Learn how far the database's clock is ahead: that is known within a round trip, however long it took.

        What was believed before is kept if it may be so: the shortest round trips tell the most.
        """
        least, most = theirs - datetime.now(UTC), theirs - sent
        self._ahead = max(least, min(most, self._ahead or _LEVEL))


def _parents_of(records: Iterable[Record]) -> set[str]:
    return {parent for record in records if (parent := record.resource.parent_id) is not None}
