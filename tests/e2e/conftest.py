"""The databases that real servers run on: each test that takes `database` runs on every one that outlives a server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.e2e.server import migrated

DATABASES: Final = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give an empty database, with tables where a server does not create them itself."""
    return make_database(request, tmp_path, "postgres_url")


@pytest.fixture(scope="module", params=DATABASES)
def lasting_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give such a database to all tests of a module."""
    return make_database(request, tmp_path_factory.mktemp("database"), "lasting_postgres_url")


def make_database(request: pytest.FixtureRequest, directory: Path, lender: str) -> str:
    """Make the database that a fixture is to have; `lender` names the fixture that lends one of PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:{directory / 'fleet.db'}"
    return migrated(str(request.getfixturevalue(lender)))
