"""`hyperfleet db`: manage the database. Migrations, backups, verification."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import HELP, CliCommand
from hyperfleet.cli.confirmation import confirm
from hyperfleet.cli.failures import CommandFailure, Misuse
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.cli.ticker import Ticker
from hyperfleet.errors import StoreUnavailable
from hyperfleet.settings import conceal, find_unknown_variables, parse_database, resolve

if TYPE_CHECKING:
    from hyperfleet.backends.sqlite_backup import BackupContents
    from hyperfleet.bootstrap import MigratableStore
    from hyperfleet.settings import Database, Settings

T = TypeVar("T")

_database = click.option("--database", metavar="URL", help="sqlite:PATH or postgresql://USER:PASSWORD@HOST/NAME")
_config = click.option("--config", metavar="FILE", help="A YAML file with settings. [env: HYPERFLEET_CONFIG]")
_CODES = {
    exits.USAGE: "wrong settings, or a database of a newer HyperFleet",
    exits.UNAVAILABLE: "the database is not available",
}


@click.group(name="db", context_settings=dict(HELP))
def db() -> None:
    """Manage the database.

    The database is chosen as by `hyperfleet serve`: --database, HYPERFLEET_DATABASE, the settings file, else the file
    hyperfleet.db in the current directory.
    """


def _command(
    examples: list[tuple[str, str]], codes: dict[int, str] | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    return db.command(cls=CliCommand, examples=examples, codes={**_CODES, **(codes or {})})


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


@_command([("before servers of a new version start", "hyperfleet db migrate --database postgresql://db/fleet")])
@_database
@_config
@pass_session
def migrate(session: CliSession, database: str | None, config: str | None) -> None:
    """Apply all pending migrations; print the name of each.

    Safe to run at any time, even twice at once. `hyperfleet serve` migrates SQLite files itself.
    """
    applied = _with_store(session, _find_settings(session, database, config), lambda store: store.migrate())
    for name in applied:
        session.write(name)
    session.message(f"{len(applied)} applied." if applied else "Nothing to do: the schema is up to date.")


@_command([("of a file", "hyperfleet db version --database sqlite:hyperfleet.db")])
@_database
@_config
@pass_session
def version(session: CliSession, database: str | None, config: str | None) -> None:
    """Print the schema version; 0 if there are no tables yet."""
    settings = _find_settings(session, database, config)
    session.write(str(_with_store(session, settings, lambda store: store.schema_version())))


# ── backups ──────────────────────────────────────────────────────────────────────────────────────────────────────


@_command(
    [
        ("while servers run", "hyperfleet db backup fleet-backup.db"),
        ("PostgreSQL, if pg_dump is installed", "hyperfleet db backup fleet.dump --database postgresql://db/fleet"),
        ("every night over the same file", "hyperfleet db backup --overwrite /backup/fleet.db"),
    ]
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@_database
@_config
@pass_session
def backup(session: CliSession, file: Path, overwrite: bool, database: str | None, config: str | None) -> None:
    """Back up the database to a file, as a consistent snapshot; servers may run meanwhile.

    The copy is checked before it gets its name, so a partial one is never left. For PostgreSQL pg_dump is used.
    """
    if file.exists() and not overwrite:
        raise Misuse(f"{file} already exists; replace it with --overwrite")
    chosen = _choose(session, _find_settings(session, database, config))
    if chosen.engine == "postgresql":
        from hyperfleet.cli.postgres_tools import dump

        dump(session, chosen.location, file)
        session.write(str(file))
        return
    from hyperfleet.backends.sqlite_backup import back_up

    with Ticker() as ticker:
        contents = _handle_store_errors(lambda: back_up(Path(chosen.location), file, _count(ticker, "pages copied")))
    session.write(str(file))
    session.message(f"Backed up {_describe(contents)}.")


@_command(
    [
        ("stop the server, then", "hyperfleet db restore fleet-backup.db"),
        ("into an empty PostgreSQL database", "hyperfleet db restore fleet.dump --database postgresql://db/new"),
    ],
    {exits.FALSE: "not confirmed; nothing was restored"},
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@_database
@_config
@pass_session
def restore(session: CliSession, file: Path, yes: bool, database: str | None, config: str | None) -> None:
    """Replace the database by a backup. Refused while a server has it open.

    The backup is checked first and takes its place atomically; the previous file stays as PATH-replaced. Restart
    watching clients afterwards: positions are assigned again.
    """
    chosen = _choose(session, _find_settings(session, database, config))
    if not file.is_file():
        raise Misuse(f"{file}: no such file")
    if chosen.engine == "postgresql":
        from hyperfleet.cli.postgres_tools import load

        load(session, chosen.location, file)
        session.message("Restored.")
        return
    from hyperfleet.backends import sqlite_backup

    target = Path(chosen.location)
    if target.exists() and not yes and not confirm(session, f"Replace {target} by {file}?"):
        session.message("Nothing was restored.")
        sys.exit(exits.FALSE)
    with Ticker() as ticker:
        contents = _handle_store_errors(lambda: sqlite_backup.restore(file, target, _count(ticker, "pages copied")))
    session.message(f"Restored {_describe(contents)}.")


# ── verification ─────────────────────────────────────────────────────────────────────────────────────────────────


@_command(
    [
        ("the database of the server", "hyperfleet db verify"),
        ("a copy", "hyperfleet db verify --database sqlite:fleet-backup.db"),
    ],
    {exits.OK: "everything is correct", exits.FALSE: "something is wrong; it is shown"},
)
@_database
@_config
@pass_session
def verify(session: CliSession, database: str | None, config: str | None) -> None:
    """Compute every status again and compare it with the stored one; check every history.

    Servers may run meanwhile. Each finding is one line: the id, what is wrong, and how. Nothing is changed, except that
    an SQLite file of an older version is migrated, as a server would do.
    """
    from hyperfleet.cli.verifying import verify as run

    settings = _find_settings(session, database, config)
    with Ticker() as ticker:
        progress = _count(ticker, "resources checked")
        checked, findings = _with_store(session, settings, lambda store: run(store, session.write, progress))
    session.message(f"{count_of(checked, 'resource')} checked, {count_of(findings, 'finding')}.")
    sys.exit(exits.FALSE if findings else exits.OK)


def _count(ticker: Ticker, noun: str) -> Callable[[int, int], None]:
    """Return a callback that shows progress."""
    return lambda done, all_: ticker.show(f"{done} of {all_} {noun}")


def _describe(contents: BackupContents) -> str:
    size = f"{contents.size / 1024 / 1024:.1f} MB"
    return f"{count_of(contents.resources, 'resource')}, position {contents.position}, {size}"


# ── which database ───────────────────────────────────────────────────────────────────────────────────────────────


def _find_settings(session: CliSession, database: str | None, config: str | None) -> Settings:
    for warning in find_unknown_variables(session.environment):
        session.message(f"Warning: {warning}")
    return resolve({"--database": database}, session.environment, config).settings


def _choose(session: CliSession, settings: Settings) -> Database:
    chosen = parse_database(settings.database)
    if chosen.engine == "memory":
        raise click.UsageError("memory: stores nothing, so there is no database to manage")
    session.message(f"Database: {chosen}")
    return chosen


def _with_store(session: CliSession, settings: Settings, act: Callable[[MigratableStore], Awaitable[T]]) -> T:
    """Run something with the store of the settings; an unavailable store ends the command."""
    from hyperfleet import bootstrap

    _choose(session, settings)

    async def run() -> T:
        store = bootstrap.open_tables(settings.database)
        try:
            return await act(store)
        finally:
            await store.close()

    return _handle_store_errors(lambda: asyncio.run(run()))


def _handle_store_errors(act: Callable[[], T]) -> T:
    """Run something with a database; report an unavailable one without its password."""
    try:
        return act()
    except StoreUnavailable as error:
        raise CommandFailure(conceal(str(error)), exits.UNAVAILABLE) from error
