"""docs/conditions.md says nothing that is not so: its examples run, and its table of differences is tested."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "conditions.md").read_text(encoding="utf-8")
DIFFERENCES = REPOSITORY / "tests" / "unit" / "conditions" / "test_differences.py"


def test_every_example_gives_what_it_shows() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "conditions.md", None, 0)
    report: list[str] = []
    failed, attempted = doctest.DocTestRunner().run(examples, out=report.append)
    assert not failed, "".join(report)
    assert attempted > 50


def test_every_difference_has_its_test_and_every_test_its_row() -> None:
    rows = re.findall(r"^\| `(test_\w+)` \|", PAGE, re.MULTILINE)
    tests = re.findall(r"^def (test_\w+)", DIFFERENCES.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == tests
