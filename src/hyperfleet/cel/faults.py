"""Errors of the engine as values: what is wrong with an expression, and where.

The engine lists compile errors in one text: `ERROR: <input>:1:25: message`, then the source
and a caret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from hyperfleet.document_problem import DocumentProblem, draw_caret
from hyperfleet.documents.places import Places

MAX_TEXT: Final = 2_000  # characters of any message; it may quote a value or a whole expression
_MAX_FAULTS: Final = 20  # of one expression; more are consequences of the first ones

_HEAD: Final = re.compile(r"(?:[A-Z_]+: )?ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_STATUS: Final = re.compile(r"^[A-Z_]+: (?=.)|\s*\[[A-Z_]+\]\s*$")
_EXPECTED_TOKENS: Final = re.compile(r" expecting \{.*\}")
_TOO_DEEP: Final = re.compile("recursion (?:limit|depth)")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


class CelFault(Struct, frozen=True, order=True):
    """One fault of an expression. `line` and `column` count from 1, in characters of the expression."""

    line: int
    column: int
    message: str
    snippet: str = ""


def read_faults(text: str, source: str) -> tuple[CelFault, ...]:
    """Read the compile errors of the engine; there is always at least one."""
    found: list[tuple[int, int, str]] = []
    for line in text.split("\n"):
        head = _HEAD.match(line)
        if head:
            found.append((max(1, int(head[1])), max(1, int(head[2])), head[3]))
        elif found and not line.startswith(" | "):  # a message that quotes a line break goes on
            row, column, message = found[-1]
            found[-1] = row, column, f"{message} {line}"
    if _TOO_DEEP.search(text):
        return (make_fault(source, 1, 1, "the expression has more than 32 levels of brackets, operators or fields"),)
    placed = [make_fault(source, row, column, _polish(message)) for row, column, message in found[:_MAX_FAULTS]]
    return tuple(sorted(set(placed))) or (make_fault(source, 1, 1, clean_message(text)),)


def make_fault(source: str, line: int, column: int, message: str) -> CelFault:
    """Place a message in an expression."""
    lines = source.split("\n")
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    return CelFault(line, column, _bound(message), draw_caret(shown, column) if shown.strip() else "")


def clean_message(text: str) -> str:
    """Return a message of the engine without its status codes, and of bounded length."""
    return _bound(_ADDRESS.sub("", _STATUS.sub("", _STATUS.sub("", text))))


def place_faults(faults: Iterable[CelFault], places: Places, pointer: str) -> list[DocumentProblem]:
    """Turn the faults of an expression that is written at a pointer of a document into problems of that document."""
    return [
        DocumentProblem(
            places.inside(pointer, each.line, each.column), each.message, "Expression", snippet=each.snippet
        )
        for each in faults
    ]


def _polish(message: str) -> str:
    message = _EXPECTED_TOKENS.sub(", expected an expression or the end of it", message)
    return _STATUS.sub("", message).replace(" (in container '')", "").removeprefix("Syntax error: ")


def _bound(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
