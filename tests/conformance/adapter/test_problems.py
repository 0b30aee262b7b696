"""Loading adapter files: every problem and every warning of the rows in `problems.yaml`, each at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperfleet.adapter.loading import LoadedAdapter, LoadOptions, load_adapter
from tests.conformance.adapter.tables import read_rows
from tests.conformance.test_policy_problems import MARK, marked_places, shown

ROWS = read_rows("problems")


def load_row(row: dict[str, Any], folder: Path) -> LoadedAdapter:
    """Write the files of a row, and load the adapter."""
    for name, text in row.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    file = folder / "adapter.yaml"
    file.write_text(row["file"].replace(MARK, ""))
    return load_adapter(file, LoadOptions(row.get("env", {})))


@pytest.mark.parametrize("row", ROWS)
def test_row(row: dict[str, Any], tmp_path: Path) -> None:
    assert row["because"], "every row says why"
    loaded = load_row(row, tmp_path)
    level = "error" if "problems" in row else "warning"
    expected = row["problems"] if "problems" in row else row["warnings"]
    found = [problem for problem in loaded.problems if problem.level == level]
    places = row["places"] if "places" in row else marked_places(row["file"])
    assert len(places) == len(expected), "as many marks as problems"
    parts = [part for _, part in expected] + [""] * len(found)
    assert [shown(problem, part) for problem, part in zip(found, parts, strict=False)] == [
        [*place, code, part] for place, (code, part) in zip(places, expected, strict=True)
    ]
    assert {problem.place.file for problem in found} == {str(tmp_path / row.get("in", "adapter.yaml"))}
    assert (loaded.config is None) == ("problems" in row), "errors keep an adapter from loading, warnings do not"
