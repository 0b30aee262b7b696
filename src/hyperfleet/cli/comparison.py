"""What would change of a resource, line by line, as `diff -u` tells it. `apply --dry-run` and `edit` show it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Final

from hyperfleet.cli.output.colours import Colour, paint
from hyperfleet.cli.output.documents import write_yaml

_COLOURS: Final[Mapping[str, Colour]] = {"+": "good", "-": "bad", "@": "dim"}


def compare(before: Mapping[str, Any] | None, after: Mapping[str, Any], *, has_colour: bool = False) -> list[str]:
    """Return the lines that differ between two documents, with what is around them; None: there was nothing."""
    old = write_yaml(before) if before is not None else ""
    return compare_texts(old, write_yaml(after), has_colour=has_colour)


def compare_texts(before: str, after: str, *, has_colour: bool = False) -> list[str]:
    """Return the lines that differ between two texts, with what is around them."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]  # two tell of files
    return [paint(line, _COLOURS.get(line[0]) if has_colour else None) for line in lines]
