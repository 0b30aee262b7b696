"""Small things that sentences need."""

from __future__ import annotations


def tame(text: str) -> str:
    """Make a blank of every character that is no text: what others wrote must not move the cursor or change colours."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def count_of(number: int, noun: str) -> str:
    """Say `1 cluster`, `2 clusters`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
