"""docs/cli is current."""

from __future__ import annotations

from docs.cli_pages import FOLDER, cli_pages


def test_pages_are_current() -> None:
    pages = cli_pages()
    assert {page.name for page in FOLDER.glob("*.md")} == {page.name for page in pages}, "run `make docs`"
    for page, text in pages.items():
        assert page.read_text() == text, f"{page.name}: run `make docs`"
