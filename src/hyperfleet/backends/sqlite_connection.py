"""Connections to an SQLite file: opening, migrating, and translating their errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from hyperfleet.backends.conversions import CONVERSIONS
from hyperfleet.backends.migrations import load_migrations, pending
from hyperfleet.backends.rows import to_micros
from hyperfleet.backends.statements import load_statements
from hyperfleet.errors import Contended, SchemaMismatch, StoreUnavailable
from hyperfleet.ports import Clock

SQL: Final = load_statements("sqlite")
MIGRATIONS: Final = load_migrations("sqlite")

_CONVERSION_SQL: Final = load_statements("sqlite", "conversions")

_BUSY_TIMEOUT: Final = 10_000  # ms that a writer waits for writers of other processes; a transaction takes milliseconds
_PAGE_SIZE: Final = 4096  # a report row fits into one page
_CHECKPOINT: Final = 64_000  # pages of log at which a commit checkpoints: a limit, if the checkpointer fails
# `pragma synchronous`: a commit is on the disk when it returns, or with the next one that is.
_FULL: Final = 2
_NORMAL: Final = 1
_CONTENTION: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_FORBIDDEN: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
_DUPLICATES: Final = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}


@contextmanager
def translating(path: Path) -> Iterator[None]:
    """Translate SQLite's errors about the file into ours; programming errors stay unchanged."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.DatabaseError as error:
        raise translate(error, path) from error


def translate(error: sqlite3.DatabaseError, path: Path) -> Exception:
    """Translate an error of SQLite into ours."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in _CONTENTION or code in _DUPLICATES:
        return Contended(f"{path}: {error}")
    if code & 0xFF == sqlite3.SQLITE_CONSTRAINT:
        return error
    if code & 0xFF in _FORBIDDEN:
        return StoreUnavailable(f"{path}: {error}; files must be readable and writable in the directory {path.parent}")
    return StoreUnavailable(f"{path}: {error}")


def connect(path: Path, *, cache_mib: int) -> sqlite3.Connection:
    """Open or create the file, with explicit transactions."""
    if not path.parent.is_dir():
        raise StoreUnavailable(f"{path}: the directory {path.parent} does not exist; create it first")
    if path.is_dir():
        raise StoreUnavailable(f"{path} is a directory, not an SQLite database")
    _create_private(path)
    # One thread at a time uses a connection, but not always the one that opened it.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    set_waiting(connection)
    connection.execute(f"pragma cache_size = {-1024 * cache_mib}")
    return connection


def _create_private(path: Path) -> None:
    """Create a missing file for its owner alone; SQLite gives its log the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError:  # it exists, or SQLite says why it cannot be created
        return


def set_waiting(connection: sqlite3.Connection, *, is_waiting: bool = True) -> None:
    """Make a connection wait for writers of other processes, or fail at once if there is one."""
    connection.execute(f"pragma busy_timeout = {_BUSY_TIMEOUT if is_waiting else 0}")


def set_flushing(connection: sqlite3.Connection, *, is_flushing: bool = True) -> None:
    """Make the commits of a connection return when they are on the disk, or before; not within a transaction."""
    connection.execute(f"pragma synchronous = {_FULL if is_flushing else _NORMAL}")


def make_durable(connection: sqlite3.Connection, path: Path) -> None:
    """Switch to write-ahead logging with a flush at each commit, and check that both took effect."""
    connection.execute(f"pragma page_size = {_PAGE_SIZE}")  # takes effect only while the file is empty
    mode = _log_ahead(connection)
    set_flushing(connection)
    connection.execute(f"pragma wal_autocheckpoint = {_CHECKPOINT}")
    (level,) = connection.execute("pragma synchronous").fetchone()
    if mode != "wal" or level != _FULL:
        raise StoreUnavailable(f"{path}: no write-ahead logging (mode {mode}) or no flushing (level {level}) here")


def _log_ahead(connection: sqlite3.Connection) -> str:
    """Switch to write-ahead logging; retries, because SQLite does not wait for another process that does the same."""
    until = time.monotonic() + _BUSY_TIMEOUT / 1000
    while True:
        try:
            (mode,) = connection.execute("pragma journal_mode = wal").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _CONTENTION or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return str(mode)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "immediate") -> Iterator[None]:
    """Run a block in a transaction."""
    connection.execute(f"begin {kind}")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # some errors end it
            connection.execute("rollback")
        raise


def read_versions(connection: sqlite3.Connection, path: Path) -> set[int]:
    """Return the migrations of a database; refuse one that is not ours."""
    tables, ours = connection.execute(SQL["count_tables"]).fetchone()
    if tables and not ours:
        raise SchemaMismatch(f"{path} is an SQLite database, but not one of hyperfleet; name another file")
    return {version for (version,) in connection.execute(SQL["read_versions"])} if ours else set()


def migrate(connection: sqlite3.Connection, path: Path, clock: Clock) -> list[str]:
    """Apply the migrations that are missing, all or none; return their names."""
    if not pending(MIGRATIONS, read_versions(connection, path)):
        return []
    with transaction(connection, "exclusive"):
        missing = pending(MIGRATIONS, read_versions(connection, path))  # another process may have been first
        connection.execute(SQL["create_schema_migrations"])
        for migration in missing:
            for statement in split_script(migration.script):
                connection.execute(statement)
            if migration.subject in CONVERSIONS:
                _convert(connection, migration.subject)
            applied = (migration.version, migration.name, to_micros(clock.now()))
            connection.execute(SQL["record_migration"], applied)
    return [migration.name for migration in missing]


def _convert(connection: sqlite3.Connection, subject: str) -> None:
    convert = CONVERSIONS[subject]
    rows = (convert(*row) for row in connection.execute(_CONVERSION_SQL[f"read_{subject}"]))
    connection.executemany(_CONVERSION_SQL[f"write_{subject}"], (tuple(map(_as_column, row)) for row in rows))


def _as_column(value: object) -> object:
    return to_micros(value) if isinstance(value, datetime) else value


def split_script(script: str) -> Iterator[str]:
    """Yield the statements of a script: `executescript` would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
