"""SQL in files: statements by name, migrations by version."""

from __future__ import annotations

import re
import sqlite3

import pytest

from hyperfleet.backends.migrations import Migration, load_migrations, pending, require_current
from hyperfleet.backends.sqlite_connection import split_script
from hyperfleet.backends.statements import Engine, load_statements, parse_statements
from hyperfleet.errors import SchemaMismatch

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
KNOWN = (Migration(1, "0001_initial", ""), Migration(2, "0002_more", ""))


def test_statements_are_named_and_lose_comments_and_semicolons() -> None:
    text = "-- a file\n\n-- name: one\n-- why\nselect 1, '-- no comment';\n\n-- name: two\nselect\n    2;\n"
    assert parse_statements(text) == {"one": "select 1, '-- no comment'", "two": "select\n    2"}


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="one"):
        parse_statements("-- name: one\nselect 1;\n-- name: one\nselect 2;\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_statements_and_migrations_without_gaps(engine: Engine) -> None:
    assert load_statements(engine)
    assert [migration.version for migration in load_migrations(engine)] == list(
        range(1, len(load_migrations(engine)) + 1)
    )


def test_every_sqlite_statement_fits_the_schema() -> None:
    connection = sqlite3.connect(":memory:")
    statements = load_statements("sqlite")
    connection.execute(statements["create_schema_migrations"])
    for migration in load_migrations("sqlite"):
        connection.executescript(migration.script)
    for name, statement in statements.items():
        numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
        parameters = [None] * (max(numbered) if numbered else statement.count("?"))
        assert connection.execute(f"explain {statement}", parameters).fetchone(), name
    connection.close()


def test_what_is_missing_is_applied_in_order() -> None:
    assert pending(KNOWN, ()) == KNOWN
    assert pending(KNOWN, {1}) == KNOWN[1:]
    assert pending(KNOWN, {1, 2}) == ()


def test_a_database_that_is_behind_is_refused_with_the_command_that_helps() -> None:
    require_current(KNOWN, {1, 2})
    with pytest.raises(SchemaMismatch, match=r"has schema version 1, .* needs version 2; run: hyperfleet db migrate"):
        require_current(KNOWN, {1})
    with pytest.raises(SchemaMismatch, match="has no schema yet"):
        require_current(KNOWN, set())


def test_a_database_of_a_newer_program_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"has schema version 3, .* up to 2: run the newer version"):
        pending(KNOWN, {1, 2, 3})


def test_a_script_is_split_at_the_ends_of_statements() -> None:
    script = "-- first\ncreate table a (b text default ';');\ninsert into a\nvalues (';');\n\n-- rest\n"
    assert [each.count("\n") for each in split_script(script)] == [2, 2]
