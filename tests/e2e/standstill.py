"""A database that nobody can write to for a while: somebody else holds what every write needs. Reading goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import asyncpg

_SQLITE: Final = "sqlite:"


@contextmanager
def standstill(database: str) -> Iterator[None]:
    """Keep everybody from writing for the length of a block."""
    if database.startswith(_SQLITE):
        with closing(sqlite3.connect(database.removeprefix(_SQLITE), isolation_level=None)) as intruder:
            intruder.execute("begin immediate")
            yield
        return
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(database))
        try:
            runner.run(connection.execute("begin; lock table resources in exclusive mode"))
            yield
        finally:
            runner.run(connection.close())
