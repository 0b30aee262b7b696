"""The colours of phases, states and statuses on a terminal. `session.wants_colour` tells whether to use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from hyperfleet.model.phase import PHASE_TABLE

Colour = Literal["good", "bad", "busy", "dim", "strong"]

_CODES: Final[Mapping[Colour, str]] = {"good": "32", "bad": "31", "busy": "33", "dim": "2", "strong": "1"}

# Colours of phases, states of adapters, and statuses of conditions.
_OF_WORDS: Final[Mapping[str, Colour]] = {
    **{row.name: row.colour for row in PHASE_TABLE},
    "Completed": "good",
    "True": "good",
    "ok": "good",
    "Failed": "bad",
    "Unhealthy": "bad",
    "False": "bad",
    "failed": "bad",
    "Stale": "bad",
    "Running": "busy",
    "Pending": "busy",
    "Outdated": "busy",
    "Unknown": "busy",
    "warning": "busy",
    "Unreported": "dim",
}


def colour_of(word: str) -> Colour | None:
    """Return the colour of a phase, a state or a status, or None."""
    return _OF_WORDS.get(word.split(" ", 1)[0])


def paint(text: str, colour: Colour | None) -> str:
    """Colour a text."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colour and text else text
