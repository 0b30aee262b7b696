"""Loading policies: every problem and every warning of the rows in `policy-problems.yaml`, each at its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.aggregation.loading.policy_loader import check_policies, load_policies
from hyperfleet.documents import DocumentProblem
from hyperfleet.errors import PolicyError
from tests.conformance.timeline import POLICY_FILES, rows

MARK = "¶"
ROWS = rows("policy-problems")


def marked_places(text: str) -> list[list[int]]:
    """Return line and column (from 1) of every mark, as if the marks were not there."""
    places = []
    for number, line in enumerate(text.splitlines(), start=1):
        marks = [found.start() for found in re.finditer(MARK, line)]
        places += [[number, offset - index + 1] for index, offset in enumerate(marks)]
    return places


def source_of(row: dict[str, Any]) -> tuple[str, str]:
    """Return the text of a row's policy and the name of its file."""
    if "file" in row:
        path: Path = POLICY_FILES[row["file"]]
        return path.read_text(), path.name
    return row["policy"].replace(MARK, ""), "row.yaml"


def shown(problem: DocumentProblem, part: str) -> list[Any]:
    """Show a problem as a row does: with the expected part of its message, or all of it when that is not in it."""
    message = part if part in problem.message else problem.message
    return [problem.place.line, problem.place.column, problem.code, message]


@pytest.mark.parametrize("row", ROWS)
def test_row(row: dict[str, Any]) -> None:
    assert row["because"], "every row says why"
    text, file = source_of(row)
    level = "error" if "problems" in row else "warning"
    expected = row["problems"] if "problems" in row else row["warnings"]
    found = [problem for problem in check_policies(text, file).problems if problem.level == level]
    places = row["places"] if "places" in row else marked_places(row["policy"])
    assert len(places) == len(expected), "as many marks as problems"
    parts = [part for _, part in expected] + [""] * len(found)
    assert [shown(problem, part) for problem, part in zip(found, parts, strict=False)] == [
        [*place, code, part] for place, (code, part) in zip(places, expected, strict=True)
    ]
    assert {problem.place.file for problem in found} <= {file}


@pytest.mark.parametrize("row", ROWS)
def test_errors_keep_a_policy_from_loading_and_warnings_do_not(row: dict[str, Any]) -> None:
    text, file = source_of(row)
    if "problems" not in row:
        assert load_policies(text, file).policies
        return
    with pytest.raises(PolicyError) as caught:
        load_policies(text, file)
    assert len(caught.value.problems) == len(row["problems"])
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)


@pytest.mark.parametrize("row", ROWS)
def test_every_fault_of_an_expression_is_shown_with_a_caret(row: dict[str, Any]) -> None:
    """docs/semantics.md §3: all such errors listed, each with line, column and a caret."""
    text, file = source_of(row)
    for problem in check_policies(text, file).problems:
        if problem.code == "Expression":
            assert "^" in problem.snippet, problem.message
