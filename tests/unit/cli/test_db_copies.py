"""`hyperfleet db backup|restore|verify`: backups of a database in use, and verification."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends import sqlite_backup
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.cli import exits, run
from hyperfleet.cli.session import CliSession
from tests.api.fleet import HandClock, open_fleet
from tests.unit.cli.terminal import Done


def db(*arguments: str, **variables: str) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["db", *arguments], CliSession({"PATH": os.environ["PATH"], **variables}))
    assert "Traceback" not in err.getvalue()
    assert "should not have happened" not in err.getvalue()
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory whose hyperfleet.db has two clusters, one of them with a report."""
    monkeypatch.chdir(tmp_path)
    clock = HandClock()
    with open_fleet(SqliteStore(tmp_path / "hyperfleet.db", clock), clock, RequestLimits()) as fleet:
        payments = fleet.create("payments")
        fleet.report(payments, "dns", "False/Throttled/too many calls")
        fleet.create("shop")
    return tmp_path


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[None]:
    """Have the database open as a server has."""
    with asyncio.Runner() as runner:
        store = SqliteStore(directory / "hyperfleet.db")
        runner.run(store.open())
        try:
            yield
        finally:
            runner.run(store.close())


def names(file: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return [name for (name,) in connection.execute("select name from resources order by name")]


def test_a_copy_is_complete_and_one_file(directory: Path) -> None:
    with serving(directory):
        done = db("backup", "copy.db")
    assert (done.code, done.out) == (0, "copy.db\n")
    assert "Backed up 2 resources, position 3, " in done.err
    assert names(directory / "copy.db") == ["payments", "shop"]
    assert (directory / "copy.db").stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in directory.iterdir() if "copy" in file.name) == ["copy.db"]


def test_a_copy_can_be_verified(directory: Path) -> None:
    db("backup", "copy.db")
    done = db("verify", "--database", "sqlite:copy.db")
    assert (done.code, done.out) == (0, "")
    assert "2 resources checked, 0 findings." in done.err


def test_an_existing_file_is_not_replaced_by_default(directory: Path) -> None:
    (directory / "copy.db").write_text("precious")
    done = db("backup", "copy.db")
    assert (done.code, done.err) == (exits.USAGE, "Error: copy.db already exists; replace it with --overwrite\n")
    assert (directory / "copy.db").read_text() == "precious"
    assert db("backup", "copy.db", "--overwrite").code == 0
    assert names(directory / "copy.db") == ["payments", "shop"]


def test_a_backup_replaces_the_database(directory: Path) -> None:
    db("backup", "copy.db")
    clock = HandClock()
    with open_fleet(SqliteStore(directory / "hyperfleet.db", clock), clock, RequestLimits()) as fleet:
        fleet.create("later")
    done = db("restore", "copy.db", "--yes")
    assert (done.code, done.out) == (0, "")
    assert "Restored 2 resources, position 3, " in done.err
    assert names(directory / "hyperfleet.db") == ["payments", "shop"]
    assert names(directory / "hyperfleet.db-replaced") == ["later", "payments", "shop"]
    with open_fleet(SqliteStore(directory / "hyperfleet.db", clock), clock, RequestLimits()) as fleet:
        assert fleet.get("/clusters").json()["items"][0]["name"] == "payments", "servers go on from it"


def test_a_backup_can_be_restored_to_a_new_path(directory: Path) -> None:
    db("backup", "copy.db")
    done = db("restore", "copy.db", "--database", "sqlite:new.db")
    assert done.code == 0
    assert names(directory / "new.db") == ["payments", "shop"]
    assert not (directory / "new.db-replaced").exists()


def test_a_backup_replaces_a_damaged_database(directory: Path) -> None:
    db("backup", "copy.db")
    (directory / "hyperfleet.db").write_bytes(b"garbage" * 1000)
    assert db("restore", "copy.db", "--yes").code == 0
    assert names(directory / "hyperfleet.db") == ["payments", "shop"]


def test_nothing_is_restored_under_a_running_server(directory: Path) -> None:
    db("backup", "copy.db")
    with serving(directory):
        done = db("restore", "copy.db", "--yes")
        assert done.code == exits.UNAVAILABLE
        assert "hyperfleet.db is in use: stop the server that has it open, then restore" in done.err
    assert not [file.name for file in directory.iterdir() if file.name.startswith(".")], "nothing is left behind"
    assert db("verify").code == 0
    assert db("restore", "copy.db", "--yes").code == 0, "as soon as it has stopped"


def test_without_a_terminal_confirmation_needs_yes(directory: Path) -> None:
    db("backup", "copy.db")
    done = db("restore", "copy.db")
    assert done.code == exits.USAGE
    assert "confirm with --yes" in done.err


def test_a_damaged_copy_is_refused(directory: Path) -> None:
    db("backup", "copy.db")
    content = bytearray((directory / "copy.db").read_bytes())
    content[8192 * 2 : 8192 * 6] = b"\x55" * (8192 * 4)
    (directory / "copy.db").write_bytes(content)
    done = db("restore", "copy.db", "--yes")
    assert done.code == exits.UNAVAILABLE
    assert "copy.db" in done.err
    assert names(directory / "hyperfleet.db") == ["payments", "shop"]


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("text", exits.UNAVAILABLE, "file is not a database"),
        ("", exits.USAGE, "has no tables of hyperfleet"),
        (None, exits.USAGE, "no such file"),
    ],
)
def test_a_file_that_is_not_a_backup_is_refused(directory: Path, content: str | None, code: int, message: str) -> None:
    if content is not None:
        (directory / "wrong").write_text(content * 1000)
    done = db("restore", "wrong", "--yes")
    assert done.code == code
    assert message in done.err
    assert names(directory / "hyperfleet.db") == ["payments", "shop"]


def test_the_database_of_another_program_is_refused(directory: Path) -> None:
    with contextlib.closing(sqlite3.connect(directory / "other.db")) as connection:
        connection.execute("create table other (x)")
    done = db("restore", "other.db", "--yes")
    assert done.code == exits.USAGE
    assert "not one of hyperfleet" in done.err
    assert db("backup", "copy.db", "--database", "sqlite:other.db").code == exits.USAGE
    assert not (directory / "copy.db").exists()


def test_a_copy_of_a_newer_program_is_refused(directory: Path) -> None:
    db("backup", "copy.db")
    with contextlib.closing(sqlite3.connect(directory / "copy.db")) as connection:
        connection.execute("insert into schema_migrations (version, name, applied_time) values (999, '0999_future', 0)")
        connection.commit()
    done = db("restore", "copy.db", "--yes")
    assert done.code == exits.USAGE
    assert "999" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("backup", "none/copy.db"), exits.UNAVAILABLE, "No such file or directory"),
        (("backup", "hyperfleet.db", "--overwrite"), exits.UNAVAILABLE, "cannot be copied onto itself"),
        (("backup", "copy.db", "--database", "sqlite:none.db"), exits.UNAVAILABLE, "there is no such file"),
        (("backup", "copy.db", "--database", "memory:"), exits.USAGE, "memory: stores nothing"),
        (("verify", "--database", "sqlite:none.db"), exits.USAGE, "the database has no tables yet"),
        (("backup", "."), exits.USAGE, "is a directory"),
    ],
)
def test_errors_are_reported(directory: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = db(*arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert not (directory / "none.db").exists()


def test_inconsistencies_are_found(directory: Path) -> None:
    with contextlib.closing(sqlite3.connect(directory / "hyperfleet.db")) as connection:
        (id_,) = connection.execute("select id from resources where name = 'payments'").fetchone()
        changed = "cast(replace(cast(answer as text), 'too many calls', 'all is well') as blob)"
        connection.execute(f"update resources set answer = {changed} where id = ?", (id_,))  # noqa: S608  # see above
        connection.commit()
    done = db("verify")
    assert (done.code, done.out) == (
        exits.FALSE,
        f"{id_}: AnswerDiffers: the stored answer does not match the stored status\n",
    )
    assert "2 resources checked, 1 finding." in done.err


def test_missing_postgresql_tools_are_reported_with_the_command(directory: Path) -> None:
    url = "postgresql://fleet:hunter2@db.example.com:5433/fleet"
    done = db("backup", "fleet.dump", "--database", url, PATH="/nowhere")
    assert done.code == exits.UNAVAILABLE
    assert "pg_dump is not installed here" in done.err
    assert "--dbname=postgresql://fleet@db.example.com:5433/fleet" in done.err
    assert "hunter2" not in done.err


def test_errors_of_pg_dump_are_reported(directory: Path) -> None:
    (directory / "bin").mkdir()
    tool = directory / "bin" / "pg_dump"
    tool.write_text('#!/bin/sh\necho "pg_dump: no such database as $PGPASSWORD wants" | tr -d "\\n" >&2; exit 1\n')
    tool.chmod(0o755)
    done = db("backup", "fleet.dump", "--database", "postgresql://u:p%40ss@h/d", PATH=f"{directory}/bin:/usr/bin:/bin")
    assert done.code == exits.UNAVAILABLE
    assert "no such database as p@ss wants" in done.err, "it gets the password, and not among its arguments"
    assert not [file.name for file in directory.iterdir() if "dump" in file.name]


class Window(io.StringIO):
    """A stderr that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "told"), [(("verify",), "2 of 2 resources checked"), (("backup", "copy.db"), " pages copied")]
)
def test_on_a_terminal_progress_is_shown_and_wiped(directory: Path, arguments: tuple[str, ...], told: str) -> None:
    out, err = io.StringIO(), Window()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert run(["db", *arguments], CliSession({})) == 0
    assert told in err.getvalue()
    assert "\r\x1b[K\r\x1b[K" not in err.getvalue()
    assert err.getvalue().rpartition("\r\x1b[K")[2].count("\n") == 1, "the last line stands alone"


def test_a_backup_is_a_consistent_snapshot_during_writes(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of the copy is followed by a write; would SQLite begin anew for it, this would have no end."""
    monkeypatch.setattr(sqlite_backup, "_PAGES", 1)
    steps: list[tuple[int, int]] = []
    with contextlib.closing(sqlite3.connect(directory / "hyperfleet.db")) as writer:

        def write(done: int, all_: int) -> None:
            steps.append((done, all_))
            assert len(steps) <= all_, "it began anew"
            writer.execute("update resources set name = name || 'x'")
            writer.commit()

        contents = sqlite_backup.back_up(directory / "hyperfleet.db", directory / "copy.db", write)
    assert contents.resources == 2
    assert names(directory / "copy.db") == ["payments", "shop"]
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert names(directory / "hyperfleet.db")[0].startswith("paymentsx")
