"""Making text from adapters and servers safe for a terminal."""

from __future__ import annotations


def sanitize(text: str) -> str:
    """Replace control characters by blanks, so that a text cannot move the cursor or change colours."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
