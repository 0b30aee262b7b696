"""The recorded answers of the original are ours; see `expr` for the figures and `expr_excused` for the exceptions."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance import expr
from tests.conformance.expr_excused import EXCUSED

pytestmark = pytest.mark.skipif(
    not expr.DATA.exists(),
    reason="no recorded cases: put expr.jsonl.gz into ../shared/conformance beside the repository",
)

NEEDED = {**dict.fromkeys(expr.SETS, 1.0), "gen": 0.995, "fuzz": 0.995}


@pytest.fixture(scope="module")
def tallies() -> dict[str, expr.Tally]:
    return expr.run()


@pytest.mark.parametrize("name", expr.SETS)
def test_enough_cases_of_a_set_pass(tallies: dict[str, expr.Tally], name: str) -> None:
    tally = tallies[name]
    assert tally.total > 0
    assert tally.share >= NEEDED[name], expr.report({name: tally}, failures=True)


@pytest.mark.parametrize("name", expr.SETS)
def test_few_cases_of_a_set_are_excused(tallies: dict[str, expr.Tally], name: str) -> None:
    assert tallies[name].excused <= tallies[name].total * 0.05


def test_every_excuse_names_an_artefact_and_a_recorded_case() -> None:
    recorded = Counter((case["set"], case["src"], expr.wanted(case)) for case in expr.load_cases())
    excused = [case for cases in EXCUSED.values() for case in cases]
    assert all(artefact and cases for artefact, cases in EXCUSED.items())
    assert len(set(excused)) == len(excused)
    assert [case for case in excused if case not in recorded] == []


def test_what_is_excused_really_differs() -> None:
    excused = [case for case in expr.load_cases() if expr.excuse(case)]
    assert [case["src"] for case in excused if expr.judge(case) is None] == []
