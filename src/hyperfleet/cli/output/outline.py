"""Outlines: nested texts, connected by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct


class OutlineItem(Struct, frozen=True):
    """A text and its children."""

    text: str
    children: Sequence[OutlineItem] = ()


def write_outline(item: OutlineItem, first: str = "", rest: str = "") -> Iterator[str]:
    """Yield the lines of an outline; `first` and `rest` are the prefixes of its first and of its other lines."""
    yield first + " ".join(item.text.split())
    last = len(item.children) - 1
    for index, child in enumerate(item.children):
        is_last = index == last
        yield from write_outline(child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))
