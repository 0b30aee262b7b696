"""Outlines: texts below texts, with lines that show what belongs to what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct


class Item(Struct, frozen=True):
    """A text and what is below it."""

    text: str
    children: Sequence[Item] = ()


def write_outline(item: Item, first: str = "", rest: str = "") -> Iterator[str]:
    """Yield the lines of an outline; `first` and `rest` are what stands before its first line and before the others."""
    yield first + " ".join(item.text.split())
    last = len(item.children) - 1
    for index, child in enumerate(item.children):
        is_last = index == last
        yield from write_outline(child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))
