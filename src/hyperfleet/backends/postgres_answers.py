"""Point reads from PostgreSQL, gathered: those that arrive while one is under way share the next statement.

`PostgresStore.read_answer` comes here. A round trip and the wake-up of a server process cost far more than one row,
so with many readers this answers ten times as many; a single reader is served at once, by a statement of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from hyperfleet.backends.postgres_connections import Connections
from hyperfleet.backends.postgres_loading import SQL, as_storable

_READ_ANSWERS: Final = SQL["read_answers"]


class AnswerRow(Struct, frozen=True):
    """What is stored of an answer, and of who may see it where."""

    id: str
    kind: str
    tenant: str
    parent_id: str | None
    answer: bytes
    revision: int


Waiting = dict[str, list[asyncio.Future[AnswerRow | None]]]


class AnswerReader:
    """Reads answers by id for many at once."""

    def __init__(self, connections: Connections, lanes: int) -> None:
        """Run up to `lanes` statements at once, each on one of `connections`."""
        self._connections = connections
        self._free_lanes = lanes
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop itself does not keep them alive
        self._waiting: Waiting = {}

    async def read(self, id_: str) -> AnswerRow | None:
        """Return what is stored of a resource's answer."""
        future: asyncio.Future[AnswerRow | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id_, []).append(future)
        if self._free_lanes:
            self._free_lanes -= 1
            task = asyncio.create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _serve(self) -> None:
        """Answer whoever waits, until nobody does."""
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            try:
                async with self._connections.take() as connection:
                    rows = await connection.fetch(_READ_ANSWERS, [as_storable(id_) for id_ in batch])
            except Exception as error:  # noqa: BLE001  # whatever it is, those who wait must hear of it
                _fail(batch, error)
            else:
                _answer(batch, rows)
        # Here and not when the task is found to be done: who comes in between would wait for ever.
        self._free_lanes += 1


def _answer(batch: Waiting, rows: Sequence[Any]) -> None:
    found = {row[0]: row for row in rows}
    for id_, futures in batch.items():
        row = AnswerRow(*found[id_]) if id_ in found else None
        for future in _still_waiting(futures):
            future.set_result(row)


def _fail(batch: Waiting, error: Exception) -> None:
    for futures in batch.values():
        for future in _still_waiting(futures):
            future.set_exception(error)


def _still_waiting(
    futures: Iterable[asyncio.Future[AnswerRow | None]],
) -> Iterable[asyncio.Future[AnswerRow | None]]:
    """Leave out those whose reader has gone."""
    return (future for future in futures if not future.done())
