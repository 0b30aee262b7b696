"""Whatever a person does to a policy file, the answer is a list of problems or a policy, never an exception."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.aggregation import check_policies
from tests.conformance.timeline import POLICY_FILES

TEXT = POLICY_FILES["default"].read_text()
SCRAPS = [
    "",
    "[]",
    "{}",
    "5",
    "null",
    "true",
    "- x",
    "type: X",
    "!X",
    "'",
    '"',
    "{{",
    "}}",
    "&a",
    "*a",
    "0s",
    "|",
    "\t",
    "é",
]


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_no_edit_of_a_policy_makes_loading_fail(seed):  # type: ignore[no-untyped-def]
    chance = random.Random(seed)
    lines = TEXT.splitlines()
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(lines))
        key, _, value = lines[place].partition(":")
        lines[place] = chance.choice(
            [
                "",
                f"{key}: {chance.choice(SCRAPS)}",
                f"{key}{chance.choice(SCRAPS)}:{value}",
                lines[place] + chance.choice(SCRAPS),
                chance.choice(lines),
            ]
        )
    loading = check_policies("\n".join(lines), with_lint=False)
    assert (loading.policies is None) == any(problem.level == "error" for problem in loading.problems)
    for problem in loading.problems:
        assert problem.place.line >= 1
        assert str(problem)


def test_an_empty_file_is_no_policy() -> None:
    for text in ("", "# nothing here\n", "\n\n"):
        assert [problem.code for problem in check_policies(text).problems] == ["Empty"]
        assert check_policies(text).policies is None
