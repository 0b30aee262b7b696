"""`hyperfleet db`: bring the tables of a database up to date, and tell which version they have."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from hyperfleet.cli.exits import UNAVAILABLE
from hyperfleet.errors import StoreUnavailable
from hyperfleet.settings import conceal, find_strangers, parse_database, resolve

if TYPE_CHECKING:
    from hyperfleet.bootstrap import MigratableStore

T = TypeVar("T")

_database = click.option("--database", metavar="URL", help="sqlite:PATH or postgresql://USER:PASSWORD@HOST/NAME")
_config = click.option("--config", metavar="FILE", help="A YAML file with settings. [env: HYPERFLEET_CONFIG]")


@click.group(name="db", context_settings={"help_option_names": ["-h", "--help"]})
def db() -> None:
    """Look after the database.

    Which one is found as `hyperfleet serve` finds it: --database, HYPERFLEET_DATABASE, the settings file, and else the
    file hyperfleet.db of the current directory.

    Exit codes: 0 done, 2 wrong settings or a database of a newer HyperFleet, 69 the database is not available.
    """


@db.command()
@_database
@_config
def migrate(database: str | None, config: str | None) -> None:
    """Bring the tables up to date; print the name of each migration that was applied.

    Safe to run at any time, also twice at once. SQLite files are brought up to date by `hyperfleet serve` itself.

    \b
    Example:
      hyperfleet db migrate --database postgresql://fleet@db.example.com/fleet
    """
    applied = _with_store(database, config, lambda store: store.migrate())
    for name in applied:
        click.echo(name)
    click.echo(f"{len(applied)} applied." if applied else "Nothing to do: the tables are up to date.", err=True)


@db.command()
@_database
@_config
def version(database: str | None, config: str | None) -> None:
    """Print the version of the tables; 0 if there are none yet.

    \b
    Example:
      hyperfleet db version --database sqlite:hyperfleet.db
    """
    click.echo(_with_store(database, config, lambda store: store.schema_version()))


def _with_store(database: str | None, config: str | None, act: Callable[[MigratableStore], Awaitable[T]]) -> T:
    """Do something with the store that the settings name; one that cannot be reached ends the command."""
    from hyperfleet import bootstrap

    for warning in find_strangers(os.environ):
        click.echo(f"Warning: {warning}", err=True)
    settings = resolve({"--database": database}, os.environ, config).settings
    chosen = parse_database(settings.database)
    if chosen.engine == "memory":
        raise click.UsageError("memory: keeps nothing, so it has no tables to look after")
    click.echo(f"Database: {chosen}", err=True)

    async def run() -> T:
        store = bootstrap.open_tables(settings.database)
        try:
            return await act(store)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except StoreUnavailable as error:
        click.echo(f"Error: {conceal(str(error))}", err=True)
        sys.exit(UNAVAILABLE)
