"""Small things that sentences need."""

from __future__ import annotations


def count_of(number: int, noun: str) -> str:
    """Say `1 cluster`, `2 clusters`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
