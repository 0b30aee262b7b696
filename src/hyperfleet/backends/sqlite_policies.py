"""Reads and adds versions of the policy in SQLite. `sqlite` calls this in its threads."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec.structs import replace

from hyperfleet.backends.rows import from_micros, to_micros
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.ports import AdmitPolicy, Clock, NewPolicy, PolicyVersion


def read_active(connection: sqlite3.Connection) -> PolicyVersion | None:
    """Return the policy in force."""
    return _version_of(connection.execute(SQL["read_active_policy"]).fetchone())


def read_policy(connection: sqlite3.Connection, version: int) -> PolicyVersion | None:
    """Return one version."""
    return _version_of(connection.execute(SQL["read_policy"], (version,)).fetchone())


def list_policies(connection: sqlite3.Connection, before: int | None, limit: int) -> tuple[PolicyVersion, ...]:
    """Return versions older than `before`, or the newest, in descending order and without their texts."""
    rows = connection.execute(SQL["list_policies"], (before, limit))
    return tuple([version for row in rows if (version := _version_of(row)) is not None])


def activate(connection: sqlite3.Connection, policy: NewPolicy, admit: AdmitPolicy, clock: Clock) -> PolicyVersion:
    """Put a policy in force if it is admitted, and return the policy in force."""
    with transaction(connection):
        active = read_active(connection)
        if active is not None and not admit(active, _read_file_digest(connection)):
            return active
        if active is not None and active.digest == policy.digest:
            if policy.source == "file":
                connection.execute(SQL["mark_policy"], (active.version,))
            return active
        version = policy.numbered(active.version + 1 if active else 1, clock.now())
        _insert(connection, version)
        return version


def _insert(connection: sqlite3.Connection, version: PolicyVersion) -> None:
    row = (
        version.version,
        version.digest,
        version.text,
        version.file,
        to_micros(version.time),
        version.source,
        version.author,
        version.restores,
        version.source == "file",
    )
    connection.execute(SQL["insert_policy"], row)
    connection.execute(SQL["use_policy"], (version.version,))


def _read_file_digest(connection: sqlite3.Connection) -> str:
    row = connection.execute(SQL["read_file_digest"]).fetchone()
    return "" if row is None else row[0]


def _version_of(row: Any) -> PolicyVersion | None:
    if row is None:
        return None
    version = PolicyVersion(*row)
    return replace(version, time=from_micros(row[4]))
