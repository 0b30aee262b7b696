"""The schema in a PostgreSQL database: checking its version, and migrating it."""

from __future__ import annotations

import logging
from typing import Final

from hyperfleet.backends.conversions import CONVERSIONS
from hyperfleet.backends.migrations import load_migrations, pending, require_current
from hyperfleet.backends.postgres_connections import Connection, transaction
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.statements import load_statements
from hyperfleet.errors import StoreUnavailable

_LOG: Final = logging.getLogger(__name__)
_MIGRATIONS: Final = load_migrations("postgres")
_CONVERSION_SQL: Final = load_statements("postgres", "conversions")
_CONVERTED_ROWS: Final = 5_000  # at a time: about 10 MB
_OLDEST_SERVER: Final = 150_000  # as PostgreSQL writes 15.0


async def check_server(connection: Connection) -> None:
    """Refuse a server that cannot store our data; warn about one that may lose it."""
    server = await connection.fetchrow(SQL["read_server"])
    if server["version"] < _OLDEST_SERVER:
        raise StoreUnavailable(f"PostgreSQL 15 or later is needed, and this is {server['full_version']}")
    if server["encoding"] != "UTF8":
        raise StoreUnavailable(f"the database's encoding is {server['encoding']}: create it with encoding UTF8")
    if server["fsync"] != "on":
        _LOG.warning("PostgreSQL runs with fsync = off: a crash of its machine may lose or destroy what is stored")


async def check_schema(connection: Connection) -> None:
    """Refuse a database whose tables are not those of this version of the program."""
    require_current(_MIGRATIONS, await read_versions(connection))


async def read_versions(connection: Connection) -> set[int]:
    """Return the migrations of a database."""
    if not await connection.fetchval(SQL["has_migrations_table"]):
        return set()
    return {row["version"] for row in await connection.fetch(SQL["read_versions"])}


async def migrate(connection: Connection) -> list[str]:
    """Apply the migrations that are missing, all or none; return their names."""
    async with transaction(connection):
        await connection.execute(SQL["lock_migrations"])
        missing = pending(_MIGRATIONS, await read_versions(connection))
        await connection.execute(SQL["create_migrations_table"])
        for migration in missing:
            await connection.execute(migration.script)
            if migration.subject in CONVERSIONS:
                await _convert(connection, migration.subject)
            await connection.execute(SQL["record_migration"], migration.version, migration.name)
    return [migration.name for migration in missing]


async def _convert(connection: Connection, subject: str) -> None:
    """Convert the rows of a migration in batches, so that memory is bounded."""
    convert = CONVERSIONS[subject]
    await connection.execute(f"declare converted cursor for {_CONVERSION_SQL[f'read_{subject}']}")
    while rows := await connection.fetch(f"fetch {_CONVERTED_ROWS} from converted"):
        columns = zip(*[convert(*row) for row in rows], strict=True)
        await connection.execute(_CONVERSION_SQL[f"write_{subject}"], *[list(column) for column in columns])
    await connection.execute("close converted")
