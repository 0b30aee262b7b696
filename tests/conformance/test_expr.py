"""The recorded answers of the original are ours; see `expr` for the figures and `expr_excused` for the exceptions.

Our own cases always run. The larger set stands beside the repository; where it does not, its tests are skipped.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.conformance import expr
from tests.conformance.expr_excused import EXCUSED

needs_data = pytest.mark.skipif(not expr.DATA.exists(), reason=expr.MISSING)
SETS = [*expr.OWN_SETS, *(pytest.param(name, marks=needs_data) for name in expr.SHARED_SETS)]
NEEDED = {**dict.fromkeys(expr.SETS, 1.0), "gen": 0.995, "fuzz": 0.995}


@cache
def judged(sets: tuple[str, ...]) -> dict[str, expr.Tally]:
    return expr.run(sets)


def tally_of(name: str) -> expr.Tally:
    return judged(expr.OWN_SETS if name in expr.OWN_SETS else expr.SHARED_SETS)[name]


@pytest.mark.parametrize("name", SETS)
def test_enough_cases_of_a_set_pass(name: str) -> None:
    tally = tally_of(name)
    assert tally.total > 0
    assert tally.share >= NEEDED[name], expr.report({name: tally}, failures=True)


@pytest.mark.parametrize("name", SETS)
def test_few_cases_of_a_set_are_excused(name: str) -> None:
    tally = tally_of(name)
    assert tally.excused <= tally.total * 0.05


def test_every_excuse_names_an_artefact_and_a_recorded_case() -> None:
    present = expr.SETS if expr.DATA.exists() else expr.OWN_SETS
    recorded = Counter((case["set"], case["src"], expr.wanted(case)) for case in expr.load_cases())
    excused = [case for cases in EXCUSED.values() for case in cases]
    assert all(artefact and cases for artefact, cases in EXCUSED.items())
    assert len(set(excused)) == len(excused)
    assert [case for case in excused if case[0] in present and case not in recorded] == []


def test_what_is_excused_really_differs() -> None:
    excused = [case for case in expr.load_cases() if expr.excuse(case)]
    assert [case["src"] for case in excused if expr.judge(case) is None] == []
