"""Backs up and restores an SQLite file: copies it while servers write to it, and puts a copy back when none does.

Called by `hyperfleet db`. A backup is one complete file, which appears under its name only when it is finished.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from hyperfleet.backends.migrations import pending
from hyperfleet.backends.sqlite_connection import MIGRATIONS, connect, read_versions, set_waiting, translating
from hyperfleet.errors import SchemaMismatch, StoreUnavailable

_PAGES: Final = 1_024  # copied at once; writers wait meanwhile, for some milliseconds
_DAMAGED: Final = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_BESIDE: Final = ("-wal", "-shm", "-journal")  # files that SQLite puts beside a database

Progress = Callable[[int, int], None]  # pages copied, and in total


class BackupContents(Struct, frozen=True):
    """What a database file contains."""

    schema_version: int
    resources: int
    position: int
    size: int  # bytes


def back_up(source: Path, target: Path, progress: Progress) -> BackupContents:
    """Copy a database that may be in use: from one snapshot, checked, and renamed to `target` at the end."""
    _refuse_same(source, target)
    if not source.is_file():
        raise StoreUnavailable(f"{source}: there is no such file")
    with _draft(target) as draft:
        _copy(source, draft, progress)
        return inspect(draft)


def restore(backup: Path, target: Path, progress: Progress) -> BackupContents:
    """Replace a database by a copy, atomically; refuse while a process has it open.

    The old file is kept as `…-replaced`.
    """
    _refuse_same(backup, target)
    inspect(backup)
    with _exclusive(target), _draft(target) as draft:
        _copy(backup, draft, progress)
        contents = inspect(draft)
        if target.exists():
            kept = target.with_name(f"{target.name}-replaced")
            kept.unlink(missing_ok=True)
            os.link(target, kept)
        for suffix in _BESIDE:  # SQLite would apply those of the old database to the new one
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        return contents


def inspect(file: Path) -> BackupContents:
    """Check a whole file; refuse one that is damaged, not ours, or of a newer version."""
    if not file.is_file():
        raise StoreUnavailable(f"{file}: there is no such file")
    with translating(file), closing(connect(file, cache_mib=1)) as connection:
        versions = read_versions(connection, file)
        if not versions:
            raise SchemaMismatch(f"{file} has no tables of hyperfleet")
        pending(MIGRATIONS, versions)  # refuses those of a newer version
        found = [row for (row,) in connection.execute("pragma integrity_check(5)")]
        if found != ["ok"]:
            raise StoreUnavailable(f"{file} is damaged: {'; '.join(found)}")
        (resources,) = connection.execute("select count(*) from resources").fetchone()
        (position,) = connection.execute("select position from head").fetchone()
    return BackupContents(max(versions), resources, position, file.stat().st_size)


def _copy(source: Path, draft: Path, progress: Progress) -> None:
    with translating(source), closing(connect(source, cache_mib=1)) as original:
        original.execute("begin")  # otherwise SQLite would restart the copy after each write of another process
        read_versions(original, source)  # refuses what is not ours, and takes the snapshot
        with closing(sqlite3.connect(draft)) as copy:
            original.backup(copy, pages=_PAGES, progress=lambda _, left, all_: progress(all_ - left, all_))
            copy.execute("pragma journal_mode = delete")  # no log beside it: a backup is one file


def _refuse_same(one: Path, other: Path) -> None:
    if one.resolve() == other.resolve():
        raise StoreUnavailable(f"{one} cannot be copied onto itself")


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Yield a temporary file, which replaces `target` at the end of the block and is deleted on errors."""
    draft = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)  # left by a process that died
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # specs are private
        yield draft
        _flush(draft)
        draft.replace(target)
        _flush(target.parent)
    except OSError as error:
        raise StoreUnavailable(f"{target}: {error.strerror or error}") from error
    finally:
        for suffix in ("", *_BESIDE):
            with suppress(OSError):
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _exclusive(target: Path) -> Iterator[None]:
    """Lock a database that no process has open; a file too damaged to be opened needs no lock."""
    if not target.exists():
        yield
        return
    with translating(target), closing(sqlite3.connect(target, isolation_level=None)) as connection:
        if not _take(connection):
            raise StoreUnavailable(f"{target} is in use: stop the server that has it open, then restore")
        yield


def _take(connection: sqlite3.Connection) -> bool:
    """Lock a database: SQLite leaves its log mode only if no other process has it open."""
    try:
        set_waiting(connection, is_waiting=False)
        connection.execute("pragma locking_mode = exclusive")
        (mode,) = connection.execute("pragma journal_mode = delete").fetchone()
        connection.execute("begin exclusive")
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF in _DAMAGED
    return bool(mode == "delete")
