"""Colours: only on a terminal, and not with NO_COLOR (https://no-color.org)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Colour = Literal["good", "bad", "busy", "dim", "strong"]

_CODES: Final[Mapping[Colour, str]] = {"good": "32", "bad": "31", "busy": "33", "dim": "2", "strong": "1"}

# Colours of phases, states of adapters, and statuses of conditions.
_OF_WORDS: Final[Mapping[str, Colour]] = {
    "Ready": "good",
    "Completed": "good",
    "True": "good",
    "ok": "good",
    "Failed": "bad",
    "Unhealthy": "bad",
    "Degraded": "bad",
    "False": "bad",
    "failed": "bad",
    "Stale": "bad",
    "Deleting": "busy",
    "Provisioning": "busy",
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


def wants_colour(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Return whether to use colours: on a capable terminal, without NO_COLOR."""
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
