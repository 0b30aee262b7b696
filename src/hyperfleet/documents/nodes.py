"""The nodes of a YAML document: a tree that knows where each part is written.

Aliases and merge keys are already resolved: an aliased node appears in several parents and keeps the place of
the text that a person would edit. A node is not a value yet; the binder makes values of nodes.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Plain: TypeAlias = str | int | float | bool | None


class ScalarNode(Struct, frozen=True):
    """A single value: its `text`, its `value` by the rules of YAML, and the `offset` where it starts."""

    line: int
    column: int
    offset: int
    text: str
    value: Plain
    style: str = ""

    @property
    def name(self) -> str:
        """Return this scalar as a key, where true and "true" are the same."""
        return str(self.value).lower() if isinstance(self.value, bool) else self.text


class ListNode(Struct, frozen=True):
    """A list."""

    line: int
    column: int
    items: tuple[Node, ...]


class MappingEntry(Struct, frozen=True):
    """One key of a mapping with its value."""

    key: ScalarNode
    value: Node


class MappingNode(Struct, frozen=True):
    """A mapping whose keys are unique by name, in the order of the text, merged entries last."""

    line: int
    column: int
    entries: tuple[MappingEntry, ...]

    def find(self, name: str) -> MappingEntry | None:
        """Return the entry with this key."""
        return next((entry for entry in self.entries if entry.key.name == name), None)


Node: TypeAlias = ScalarNode | ListNode | MappingNode


class YamlDocument(Struct, frozen=True):
    """One YAML document with the text it came from (all of it, when the text holds several)."""

    file: str
    source: str
    root: Node


def to_plain(node: Node) -> object:
    """Return what a node holds as lists, dictionaries with text keys, and scalars."""
    match node:
        case ListNode():
            return [to_plain(item) for item in node.items]
        case MappingNode():
            return {entry.key.name: to_plain(entry.value) for entry in node.entries}
        case _:
            return node.value
