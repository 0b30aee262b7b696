"""Plurals in messages."""

from __future__ import annotations


def count_of(number: int, noun: str) -> str:
    """Format as `1 cluster` or `2 clusters`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
