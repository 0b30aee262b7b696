"""`hyperfleet db` as a process: results on stdout, messages on stderr, exit codes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).parent / "hyperfleet"
SECRET = "hunter2"  # noqa: S105 - what must not be seen anywhere


def run(directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    ours = {name: text for name, text in os.environ.items() if not name.startswith("HYPERFLEET_")}
    return subprocess.run(  # noqa: S603 - our own command
        [str(COMMAND), "db", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=ours | variables,
        timeout=60,
    )


def test_migrating_creates_the_tables_once(tmp_path: Path) -> None:
    first = run(tmp_path, "migrate")
    assert (first.returncode, first.stdout.splitlines()[0]) == (0, "0001_initial")
    assert f"Database: sqlite:{tmp_path}/hyperfleet.db" in first.stderr
    again = run(tmp_path, "migrate")
    assert (again.returncode, again.stdout) == (0, "")
    assert "Nothing to do: the schema is up to date." in again.stderr


def test_the_version_is_a_number_on_stdout(tmp_path: Path) -> None:
    before = run(tmp_path, "version")
    assert (before.returncode, before.stdout) == (0, "0\n")
    assert not (tmp_path / "hyperfleet.db").exists(), "asking changes nothing"
    migrations = run(tmp_path, "migrate").stdout.splitlines()
    assert run(tmp_path, "version").stdout == f"{len(migrations)}\n"


def test_the_database_is_chosen_as_by_serve(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("database: sqlite:of-file.db")
    run(tmp_path, "migrate", HYPERFLEET_CONFIG="s.yaml")
    run(tmp_path, "migrate", HYPERFLEET_CONFIG="s.yaml", HYPERFLEET_DATABASE="sqlite:of-variable.db")
    run(tmp_path, "migrate", "--database", "sqlite:of-flag.db", HYPERFLEET_DATABASE="sqlite:of-variable.db")
    assert sorted(file.name for file in tmp_path.glob("*.db")) == ["of-file.db", "of-flag.db", "of-variable.db"]


def test_a_newer_schema_is_not_changed(tmp_path: Path) -> None:
    run(tmp_path, "migrate")
    with sqlite3.connect(tmp_path / "hyperfleet.db") as connection:
        connection.execute("insert into schema_migrations (version, name, applied_time) values (999, '0999_future', 0)")
    connection.close()
    done = run(tmp_path, "migrate")
    assert (done.returncode, done.stdout) == (2, "")
    assert "999" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("database", "code", "message"),
    [
        ("memory:", 2, "memory: stores nothing"),
        ("fleet.db", 2, "did you mean sqlite:fleet.db?"),
        (f"mysql://u:{SECRET}@h/d", 2, "--database: expected sqlite:PATH"),
        ("sqlite:none/fleet.db", 69, "none does not exist"),
        (f"postgresql://u:{SECRET}@127.0.0.1:1/d", 69, "postgresql://u:***@127.0.0.1:1/d"),
    ],
)
def test_user_errors_are_reported(tmp_path: Path, database: str, code: int, message: str) -> None:
    done = run(tmp_path, "migrate", "--database", database)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr
