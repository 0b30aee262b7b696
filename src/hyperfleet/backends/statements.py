"""Loads SQL from files: each statement is in `sql/<engine>/statements.sql` below a line `-- name: its_name`.

Backends load theirs once, when they are imported. Lists with filters are not here: `listing` builds those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final, Literal

Engine = Literal["sqlite", "postgres"]

_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT_LINE: Final = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def sql_directory(engine: Engine) -> Traversable:
    """Return the directory with the SQL of an engine, which may be inside an archive."""
    return files("hyperfleet.backends") / "sql" / engine


def load_statements(engine: Engine, file: str = "statements") -> Mapping[str, str]:
    """Return the statements of an engine by name."""
    return parse_statements((sql_directory(engine) / f"{file}.sql").read_text("utf-8"))


def parse_statements(text: str) -> Mapping[str, str]:
    """Split a file into its named statements, without comment lines and final semicolons."""
    _, *parts = _NAME.split(text)
    statements: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in statements:
            raise ValueError(f"two statements are named {name}")
        statements[name] = _COMMENT_LINE.sub("", body).strip().rstrip(";")
    return MappingProxyType(statements)
