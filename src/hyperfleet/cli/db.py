"""`hyperfleet db`: look after the database. Tables, copies, and whether what is stored is right."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import HELP, Command
from hyperfleet.cli.confirmation import confirm
from hyperfleet.cli.failures import Failure, Misuse
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.session import Session, pass_session
from hyperfleet.cli.ticker import Ticker
from hyperfleet.errors import StoreUnavailable
from hyperfleet.settings import conceal, find_unknown_variables, parse_database, resolve

if TYPE_CHECKING:
    from hyperfleet.backends.sqlite_backup import Contents
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
    """Look after the database.

    Which one is found as `hyperfleet serve` finds it: --database, HYPERFLEET_DATABASE, the settings file, and else the
    file hyperfleet.db of the current directory.
    """


def _command(
    examples: list[tuple[str, str]], codes: dict[int, str] | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    return db.command(cls=Command, examples=examples, codes={**_CODES, **(codes or {})})


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


@_command([("before servers of a new version start", "hyperfleet db migrate --database postgresql://db/fleet")])
@_database
@_config
@pass_session
def migrate(session: Session, database: str | None, config: str | None) -> None:
    """Bring the tables up to date; print the name of each migration that was applied.

    Safe to run at any time, also twice at once. SQLite files are brought up to date by `hyperfleet serve` itself.
    """
    applied = _with_store(session, _find_settings(session, database, config), lambda store: store.migrate())
    for name in applied:
        session.write(name)
    session.say(f"{len(applied)} applied." if applied else "Nothing to do: the tables are up to date.")


@_command([("which one is it?", "hyperfleet db version --database sqlite:hyperfleet.db")])
@_database
@_config
@pass_session
def version(session: Session, database: str | None, config: str | None) -> None:
    """Print the version of the tables; 0 if there are none yet."""
    settings = _find_settings(session, database, config)
    session.write(str(_with_store(session, settings, lambda store: store.schema_version())))


# ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────


@_command(
    [
        ("while servers run", "hyperfleet db backup fleet-backup.db"),
        ("PostgreSQL, if pg_dump is installed", "hyperfleet db backup fleet.dump --database postgresql://db/fleet"),
        ("every night over the same file", "hyperfleet db backup --overwrite /backup/fleet.db"),
    ]
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@_database
@_config
@pass_session
def backup(session: Session, file: Path, overwrite: bool, database: str | None, config: str | None) -> None:
    """Copy the database to a file, as of one moment; servers may run meanwhile.

    The copy is checked before it gets its name, so that there is never half of one. Of PostgreSQL, pg_dump makes it.
    """
    if file.exists() and not overwrite:
        raise Misuse(f"{file} is there already; replace it with --overwrite")
    chosen = _choose(session, _find_settings(session, database, config))
    if chosen.engine == "postgresql":
        from hyperfleet.cli.postgres_tools import dump

        dump(session, chosen.location, file)
        session.write(str(file))
        return
    from hyperfleet.backends.sqlite_backup import back_up

    with Ticker() as ticker:
        contents = _telling(lambda: back_up(Path(chosen.location), file, _count(ticker, "pages copied")))
    session.write(str(file))
    session.say(f"Backed up {_describe(contents)}.")


@_command(
    [
        ("stop the server, then", "hyperfleet db restore fleet-backup.db"),
        ("into an empty PostgreSQL database", "hyperfleet db restore fleet.dump --database postgresql://db/new"),
    ],
    {exits.FALSE: "the question was not answered with yes; nothing was restored"},
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@_database
@_config
@pass_session
def restore(session: Session, file: Path, yes: bool, database: str | None, config: str | None) -> None:
    """Put a copy in the place of the database. Refused while a server has it open.

    The copy is checked first and takes its place in one step; what was there stays beside it as PATH-replaced. After
    it, restart what watches: positions are given again.
    """
    chosen = _choose(session, _find_settings(session, database, config))
    if not file.is_file():
        raise Misuse(f"{file}: there is no such file")
    if chosen.engine == "postgresql":
        from hyperfleet.cli.postgres_tools import load

        load(session, chosen.location, file)
        session.say("Restored.")
        return
    from hyperfleet.backends import sqlite_backup

    target = Path(chosen.location)
    if target.exists() and not yes and not confirm(session, f"Replace {target} by {file}?"):
        session.say("Nothing was restored.")
        sys.exit(exits.FALSE)
    with Ticker() as ticker:
        contents = _telling(lambda: sqlite_backup.restore(file, target, _count(ticker, "pages copied")))
    session.say(f"Restored {_describe(contents)}.")


# ── whether it is right ──────────────────────────────────────────────────────────────────────────────────────────


@_command(
    [
        ("the database of the server", "hyperfleet db verify"),
        ("a copy", "hyperfleet db verify --database sqlite:fleet-backup.db"),
    ],
    {exits.OK: "everything is right", exits.FALSE: "something is not; it is shown"},
)
@_database
@_config
@pass_session
def verify(session: Session, database: str | None, config: str | None) -> None:
    """Compute every status again and compare it with what is stored; follow every history.

    Servers may run meanwhile. Each finding is printed on a line: the id, what is wrong, how. Nothing is changed, but
    that an SQLite file of an older version is brought up to date, as a server would.
    """
    from hyperfleet.cli.verifying import verify as run

    settings = _find_settings(session, database, config)
    with Ticker() as ticker:
        progress = _count(ticker, "resources checked")
        checked, findings = _with_store(session, settings, lambda store: run(store, session.write, progress))
    session.say(f"{count_of(checked, 'resource')} checked, {count_of(findings, 'finding')}.")
    sys.exit(exits.FALSE if findings else exits.OK)


def _count(ticker: Ticker, noun: str) -> Callable[[int, int], None]:
    """Return what to call with how many are done, and how many there are."""
    return lambda done, all_: ticker.show(f"{done} of {all_} {noun}")


def _describe(contents: Contents) -> str:
    size = f"{contents.size / 1024 / 1024:.1f} MB"
    return f"{count_of(contents.resources, 'resource')}, position {contents.position}, {size}"


# ── which database ───────────────────────────────────────────────────────────────────────────────────────────────


def _find_settings(session: Session, database: str | None, config: str | None) -> Settings:
    for warning in find_unknown_variables(session.environment):
        session.say(f"Warning: {warning}")
    return resolve({"--database": database}, session.environment, config).settings


def _choose(session: Session, settings: Settings) -> Database:
    chosen = parse_database(settings.database)
    if chosen.engine == "memory":
        raise click.UsageError("memory: keeps nothing, so it has no tables to look after")
    session.say(f"Database: {chosen}")
    return chosen


def _with_store(session: Session, settings: Settings, act: Callable[[MigratableStore], Awaitable[T]]) -> T:
    """Do something with the store that the settings name; one that cannot be reached ends the command."""
    from hyperfleet import bootstrap

    _choose(session, settings)

    async def run() -> T:
        store = bootstrap.open_tables(settings.database)
        try:
            return await act(store)
        finally:
            await store.close()

    return _telling(lambda: asyncio.run(run()))


def _telling(act: Callable[[], T]) -> T:
    """Do something with a database; what it says if it cannot be must not contain a password."""
    try:
        return act()
    except StoreUnavailable as error:
        raise Failure(conceal(str(error)), exits.UNAVAILABLE) from error
