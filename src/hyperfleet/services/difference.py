"""Compares two JSON documents, path by path.

Pure, and knows nothing about resources: the API passes which lists have named items, and decides which differences
matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import UNSET, Struct

DifferenceKind = Literal["added", "removed", "changed"]
Path = tuple[str, ...]
Names = Mapping[Path, str]  # lists whose items have names, and the key under which each has it

_SIMPLE: Final = frozenset({str, int, float, bool, type(None)})


class DocumentDifference(Struct, frozen=True):
    """One path where two documents differ; an added or removed value is one difference, whatever is in it."""

    path: Path
    before: Any = UNSET  # UNSET: it was added
    after: Any = UNSET  # UNSET: it was removed

    @property
    def kind(self) -> DifferenceKind:
        """Return what happened to the value."""
        if self.before is UNSET:
            return "added"
        return "removed" if self.after is UNSET else "changed"


def compare_documents(before: Any, after: Any, names: Names, path: Path = ()) -> Iterator[DocumentDifference]:
    """Return the differences between two documents, in the order of the first, then what only the second has."""
    old, new = _members(before, names.get(path)), _members(after, names.get(path))
    if old is None or new is None or isinstance(before, dict) != isinstance(after, dict):
        if not _is_same(before, after):
            yield DocumentDifference(path, before, after)
        return
    for key in (*old, *(key for key in new if key not in old)):
        one, other = old.get(key, UNSET), new.get(key, UNSET)
        if one is UNSET or other is UNSET:
            yield DocumentDifference((*path, key), one, other)
        elif type(one) not in _SIMPLE or not _is_same(one, other):  # most are scalar and equal: no recursion
            yield from compare_documents(one, other, names, (*path, key))


def _members(value: Any, name: str | None) -> dict[str, Any] | None:
    """Return the members of an object or list, by key, name or index; None: the value is a scalar."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(item[name] if name else place): item for place, item in enumerate(value)}
    return None


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON. In Python, 1, 1.0 and true are equal; in JSON they are not."""
    return type(one) is type(other) and bool(one == other)
