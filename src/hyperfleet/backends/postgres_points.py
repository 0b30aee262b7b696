"""Batches point reads from PostgreSQL: those that arrive while a statement runs share the next one.

`PostgresStore.read_answer` and `read_record` use it. A round trip and the wake-up of a server process cost far more
than a row, so this serves ten times as many concurrent reads; a single one runs at once, as its own statement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from hyperfleet.backends.postgres_connections import Connections
from hyperfleet.backends.postgres_loading import SQL, as_storable, record_of
from hyperfleet.ports import Record

T = TypeVar("T")


class AnswerRow(Struct, frozen=True):
    """A stored answer, with the columns that decide who may see it."""

    id: str
    kind: str
    tenant: str
    parent_id: str | None
    answer: bytes
    revision: int


class PointReader(Generic[T]):
    """Reads one row of a resource by id, batched for many callers."""

    def __init__(self, connections: Connections, lanes: int, statement: str, read: Callable[[Any], T]) -> None:
        """Run up to `lanes` statements at once, each on one of `connections`; `read` converts a row."""
        self._connections = connections
        self._free_lanes = lanes
        self._statement = SQL[statement]
        self._read = read
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop keeps weak references only
        self._waiting: dict[str, list[asyncio.Future[T | None]]] = {}

    async def read(self, id_: str) -> T | None:
        """Return the row of a resource; None: it does not exist."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id_, []).append(future)
        if self._free_lanes:
            self._free_lanes -= 1
            task = asyncio.create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _serve(self) -> None:
        """Serve the waiting callers, until there are none."""
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            try:
                async with self._connections.take() as connection:
                    rows = await connection.fetch(self._statement, [as_storable(id_) for id_ in batch])
                self._answer(batch, rows)
            except Exception as error:  # noqa: BLE001  # the waiting callers get the error
                for future in _waiting_in(batch.values()):
                    future.set_exception(error)
        # Here, not in a done callback: a caller that arrives in between would wait forever.
        self._free_lanes += 1

    def _answer(self, batch: dict[str, list[asyncio.Future[T | None]]], rows: Sequence[Any]) -> None:
        found = {row["id"]: self._read(row) for row in rows}
        for id_, futures in batch.items():
            for future in _waiting_in([futures]):
                future.set_result(found.get(id_))


def answer_reader(connections: Connections, lanes: int) -> PointReader[AnswerRow]:
    """Return a reader of stored answers."""
    return PointReader(connections, lanes, "read_answers", lambda row: AnswerRow(*row))


def record_reader(connections: Connections, lanes: int) -> PointReader[Record]:
    """Return a reader of whole records."""
    return PointReader(connections, lanes, "read_point_records", record_of)


def _waiting_in(groups: Iterable[list[asyncio.Future[T | None]]]) -> list[asyncio.Future[T | None]]:
    """Return the futures whose caller still waits."""
    return [future for futures in groups for future in futures if not future.done()]
