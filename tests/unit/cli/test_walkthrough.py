"""The recorded walk-through is current."""

from __future__ import annotations

from docs import walkthrough
from docs.consoles import commands_of, rewrite


def test_the_walkthrough_is_current() -> None:
    assert walkthrough.PAGE.read_text() == walkthrough.walkthrough_text(), "run `make docs`"


def test_commands_may_have_continuation_lines() -> None:
    block = "$ one\nwritten\n$ two <<END\n> three\n> END\nwritten\n> this was written, too\n"
    assert list(commands_of(block)) == ["one", "two <<END\nthree\nEND"]


def test_only_output_is_replaced() -> None:
    page = "# Title\n\n<!-- note -->\n```console\n$ one\nold\n$ two\n```\n\n```text\n$ one\nold\n```\n"
    notes: list[str] = []
    written = rewrite(page, lambda command: f"new {command}\n", notes.append)
    assert written == page.replace("old\n$ two\n", "new one\n$ two\nnew two\n")
    assert notes == ["note"]
    assert rewrite(written, lambda command: f"new {command}\n") == written
