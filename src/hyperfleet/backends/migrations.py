"""The versions of the schema: `sql/<engine>/migrations/0001_initial.sql` and so on, applied in order, each once.

This module decides which to apply; a backend runs the scripts, under its own lock.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from hyperfleet.backends.statements import Engine, sql_directory
from hyperfleet.errors import SchemaMismatch

_FILE_NAME: Final = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(Struct, frozen=True):
    """One step of the schema; `name` is its file name without the suffix."""

    version: int
    name: str
    script: str

    @property
    def subject(self) -> str:
        """Return the name without its number."""
        return self.name.partition("_")[2]


def load_migrations(engine: Engine) -> tuple[Migration, ...]:
    """Return the migrations of an engine, in order."""
    migrations = [
        Migration(int(match[1]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in (sql_directory(engine) / "migrations").iterdir()
        if (match := _FILE_NAME.fullmatch(file.name))
    ]
    return tuple(sorted(migrations, key=lambda migration: migration.version))


def pending(known: Sequence[Migration], applied: Collection[int]) -> tuple[Migration, ...]:
    """Return the migrations that a database lacks; refuse one with migrations that we do not know."""
    newest = known[-1].version
    if unknown := sorted(version for version in applied if version not in {each.version for each in known}):
        raise SchemaMismatch(
            f"the database has schema version {unknown[-1]}, this program knows versions up to {newest}: "
            f"run the newer version of the program that migrated it, or restore a backup from before"
        )
    return tuple(migration for migration in known if migration.version not in applied)


def require_current(known: Sequence[Migration], applied: Collection[int]) -> None:
    """Refuse a database that lacks a migration, or has one we do not know."""
    if missing := pending(known, applied):
        has = f"has schema version {max(applied)}" if applied else "has no schema yet"
        raise SchemaMismatch(
            f"the database {has}, this program needs version {missing[-1].version}; run: hyperfleet db migrate"
        )
