"""`docs/semantics.md` is the normative page: references to it lead somewhere, and it equals the project's shared copy.

The words of the two pages differ; headings, tables, names and numbers must not. The comparison is collected only where
the shared folder stands beside the checkout: a clone has one page and nothing to compare it with.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hyperfleet.model.phase import PHASES
from hyperfleet.model.status import ADAPTER_STATES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/semantics.md").read_text("utf-8")
SHARED = ROOT / "../shared/design/semantics.md"
SEARCHED = ("src/**/*.py", "tests/**/*.py", "tests/**/*.yaml", "bench/**/*.py", "docs/**/*.md", "*.md")
OWN = {Path(__file__), ROOT / "docs/semantics.md"}
FILE = re.compile(r"\.(?:md|txt)$|^\.\./")  # each page names files that the other does not have


def sections(text: str) -> dict[str, str]:
    """Return the numbered sections of a page by their headings."""
    parts = re.split(r"^## (\d\. .+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def tables(text: str) -> list[list[list[str]]]:
    """Return the tables of a text as rows of cells, without their heads."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    lines = [table.splitlines()[2:] for table in found]
    return [[[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table] for table in lines]


def table_after(text: str, head: str) -> list[list[str]]:
    """Return the table whose head begins like this."""
    return tables(text[text.index(head) :] + "\n")[0]


def names(text: str) -> set[str]:
    """Return every word of the code spans of a text, and every word in CamelCase outside of them."""
    spans = [span for span in re.findall(r"`([^`]+)`", text) if not FILE.search(span)]
    words = {word for span in spans for word in re.findall(r"[A-Za-z_][\w-]*", span)}
    return words | set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", text))


def numbers(text: str) -> set[str]:
    """Return the numbers that a rule is made of: HTTP statuses, seconds, fractions."""
    return set(re.findall(r"\b(?:[2-5]\d\d|\d+ s|\d+m)\b|/3|± 2 s", text))


def files_that_refer() -> list[Path]:
    """Return every file that mentions a section."""
    found = {path for pattern in SEARCHED for path in ROOT.glob(pattern) if path not in OWN}
    return sorted(path for path in found if "§" in path.read_text("utf-8", errors="replace"))


def test_the_page_has_eight_sections() -> None:
    assert [int(heading[0]) for heading in sections(PAGE)] == list(range(1, 9))


@pytest.mark.parametrize("path", files_that_refer(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_reference_leads_to_a_section(path: Path) -> None:
    text = path.read_text("utf-8")
    known = {int(heading[0]): body for heading, body in sections(PAGE).items()}
    assert not re.search(r"(?i)semantics,? §", text), "name the page: docs/semantics.md §n"
    assert "docs/semantics.md §" in text, "name the page once at least"
    for number, row in re.findall(r"§(\d+)(?:,? (?:table )?rows? (\d+))?", text):
        assert int(number) in known
        assert not row or int(row) <= max(len(table) for table in tables(known[int(number)])), f"§{number} row {row}"


def test_states_and_phases_are_those_of_the_code() -> None:
    assert [row[0].strip("`") for row in table_after(PAGE, "| state | when")] == list(ADAPTER_STATES)
    assert [row[0] for row in table_after(PAGE, "| phase | holds when")] == list(PHASES)


if SHARED.exists():
    ORIGINAL = SHARED.read_text("utf-8")

    def test_the_headings_are_those_of_the_shared_page() -> None:
        assert list(sections(PAGE)) == list(sections(ORIGINAL))

    @pytest.mark.parametrize("heading", list(sections(ORIGINAL)))
    def test_a_section_says_what_the_shared_page_says(heading: str) -> None:
        ours, theirs = sections(PAGE)[heading], sections(ORIGINAL)[heading]
        assert names(ours) == names(theirs)
        assert numbers(ours) == numbers(theirs)

    @pytest.mark.parametrize(
        "head", ["| word |", "| # | test", "| state | when", "| case (required", "| phase | holds when"]
    )
    def test_a_table_has_the_rows_of_the_shared_page(head: str) -> None:
        ours, theirs = table_after(PAGE, head), table_after(ORIGINAL, head)
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert [names(cell) for cell in mine] == [names(cell) for cell in other]

    @pytest.mark.parametrize("head", ["| word |", "| state | when", "| phase | holds when"])
    def test_a_table_has_the_keys_of_the_shared_page(head: str) -> None:
        assert [row[0] for row in table_after(PAGE, head)] == [row[0] for row in table_after(ORIGINAL, head)]

    def test_defined_terms_are_those_of_the_shared_page() -> None:
        terms = re.compile(r"^(?:- )?\*{1,2}([A-Z][a-z' -]+)[.*:]", re.MULTILINE)
        assert set(terms.findall(ORIGINAL)) - set(terms.findall(PAGE)) == {"Culprits", "Phase"}, "those are headings"
