"""What others wrote, made harmless for a terminal. Everything that shows words of adapters or servers uses it."""

from __future__ import annotations


def tame(text: str) -> str:
    """Make a blank of every character that is no text: what others wrote must not move the cursor or change colours."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
