"""Wording shared by all computed messages: nesting, lists of names, and the length Kubernetes allows.

Called by summary, aggregate and the Cluster conditions. Nothing here knows what a message is about.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.plural import pluralize
from hyperfleet.model.condition import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperfleet.model.condition import Condition

MAX_NAMES: Final = 3

_BLANKS: Final = "\t\n\f\r "  # what Go's \s means; Python's is wider
_BULLET: Final = re.compile(rf"[{_BLANKS}]*\*[{_BLANKS}]+")
_CUT_MARK: Final = f"... (cut at {MAX_MESSAGE} characters)"


def is_bullet(line: str) -> bool:
    """Tell whether a line begins with a bullet. An asterisk further on is just an asterisk."""
    return _BULLET.match(line) is not None


def is_blank(message: str) -> bool:
    """Tell whether there is nothing to read."""
    return not message.strip(_BLANKS)


def text_of(condition: Condition) -> str:
    """Return the message of a condition or, if it is blank, its reason."""
    return condition.reason if is_blank(condition.message) else condition.message


def nest(message: str) -> str:
    """Put a message under the bullet of its type or object: on the same line, or as bullets below.

    When the message opens with a plain line, that is a heading and bullets go one level below it.
    """
    lines = [line for line in message.split("\n") if not is_blank(line)]
    if not lines:
        return ""
    if len(lines) == 1 and not is_bullet(lines[0]):
        return f" {lines[0]}"
    bullet_indent = "  " if is_bullet(lines[0]) else "    "
    return "".join(f"\n{bullet_indent if is_bullet(line) else '  * '}{line}" for line in lines)


def list_names(names: Sequence[str], limit: int = MAX_NAMES) -> str:
    """Join names, at most `limit` of them: `a, b, c, ... (2 more)`."""
    more = len(names) - limit
    shown = [*names[:limit], f"... ({more} more)"] if more > 0 else names
    return ", ".join(shown)


def count_kind(kind: str, count: int) -> str:
    """Return the kind in the right number."""
    return kind if count == 1 else pluralize(kind)


def name_objects(kind: str, names: Sequence[str]) -> str:
    """Name objects of one kind: `Machine a`, `Machines a, b`."""
    return f"{count_kind(kind, len(names))} {list_names(names)}"


def fit(message: str) -> str:
    """Cut a message that is too long for Kubernetes, with a note at its end."""
    if len(message) <= MAX_MESSAGE:
        return message
    return message[: MAX_MESSAGE - len(_CUT_MARK)] + _CUT_MARK
