"""The tables of this folder: YAML lists of rows, each with a name and a `because`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

FOLDER = Path(__file__).parent


def read_rows(table: str) -> list[Any]:
    """Return the rows of a table as parameters of a test, named after them."""
    rows = YAML(typ="safe").load((FOLDER / f"{table}.yaml").read_text())
    assert all(row["because"] for row in rows), "every row says why"
    return [pytest.param(row, id=row["name"]) for row in rows]
