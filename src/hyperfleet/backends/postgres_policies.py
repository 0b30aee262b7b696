"""Reads and adds versions of the policy in PostgreSQL. `postgres` calls this with a connection."""

from __future__ import annotations

from hyperfleet.backends.postgres_connections import Connection, transaction
from hyperfleet.backends.postgres_loading import SQL, as_storable
from hyperfleet.ports import AdmitPolicy, NewPolicy, PolicyVersion


async def read_active(connection: Connection) -> PolicyVersion | None:
    """Return the policy in force."""
    row = await connection.fetchrow(SQL["read_active_policy"])
    return None if row is None else PolicyVersion(*row)


async def read_policy(connection: Connection, version: int) -> PolicyVersion | None:
    """Return one version."""
    row = await connection.fetchrow(SQL["read_policy"], version)
    return None if row is None else PolicyVersion(*row)


async def list_policies(connection: Connection, before: int | None, limit: int) -> tuple[PolicyVersion, ...]:
    """Return versions older than `before`, or the newest, in descending order and without their texts."""
    rows = await connection.fetch(SQL["list_policies"], before, limit)
    return tuple([PolicyVersion(*row) for row in rows])


async def activate(connection: Connection, policy: NewPolicy, admit: AdmitPolicy) -> PolicyVersion:
    """Put a policy in force if it is admitted, and return the policy in force."""
    async with transaction(connection):
        await connection.execute(SQL["lock_head"])
        active = await read_active(connection)
        if active is not None and not admit(active, await connection.fetchval(SQL["read_file_digest"]) or ""):
            return active
        if active is not None and active.digest == policy.digest:
            if policy.source == "file":
                await connection.execute(SQL["mark_policy"], active.version)
            return active
        return await _insert(connection, policy)


async def _insert(connection: Connection, policy: NewPolicy) -> PolicyVersion:
    row = await connection.fetchrow(
        SQL["insert_policy"],
        policy.digest,
        policy.text,
        policy.file,
        policy.source,
        as_storable(policy.author),  # a token may contain a name with characters that PostgreSQL refuses
        policy.restores,
        policy.source == "file",
    )
    return PolicyVersion(*row)
