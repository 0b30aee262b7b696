"""A line diff of two versions of a resource, as `diff -u` shows it. For `apply --dry-run` and `edit`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Final

from hyperfleet.cli.output.colours import Colour, paint
from hyperfleet.cli.output.documents import write_yaml

_COLOURS: Final[Mapping[str, Colour]] = {"+": "good", "-": "bad", "@": "dim"}


def compare(before: Mapping[str, Any] | None, after: Mapping[str, Any], *, has_colour: bool = False) -> list[str]:
    """Return the lines that differ between two documents, with context; None: there was no document before."""
    old = write_yaml(before) if before is not None else ""
    return compare_texts(old, write_yaml(after), has_colour=has_colour)


def compare_texts(before: str, after: str, *, has_colour: bool = False) -> list[str]:
    """Return the lines that differ between two texts, with context."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]  # two name files
    return [paint(line, _COLOURS.get(line[0]) if has_colour else None) for line in lines]
