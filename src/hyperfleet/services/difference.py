"""What is different between two JSON documents, path by path.

Pure, and knows nothing of resources: the API says which lists have items with names, and judges what a difference
is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import UNSET, Struct

DifferenceKind = Literal["added", "removed", "changed"]
Path = tuple[str, ...]
Names = Mapping[Path, str]  # lists whose items have names, and the key under which each has it

_SIMPLE: Final = frozenset({str, int, float, bool, type(None)})


class Difference(Struct, frozen=True):
    """One place where two documents differ; what was added or removed is told as a whole."""

    path: Path
    before: Any = UNSET  # UNSET: it was added
    after: Any = UNSET  # UNSET: it was removed

    @property
    def kind(self) -> DifferenceKind:
        """Tell what happened there."""
        if self.before is UNSET:
            return "added"
        return "removed" if self.after is UNSET else "changed"


def compare(before: Any, after: Any, names: Names, path: Path = ()) -> Iterator[Difference]:
    """Return the differences between two documents, in the order of the first, then what only the second has."""
    old, new = _members(before, names.get(path)), _members(after, names.get(path))
    if old is None or new is None or isinstance(before, dict) != isinstance(after, dict):
        if not _is_same(before, after):
            yield Difference(path, before, after)
        return
    for key in (*old, *(key for key in new if key not in old)):
        one, other = old.get(key, UNSET), new.get(key, UNSET)
        if one is UNSET or other is UNSET:
            yield Difference((*path, key), one, other)
        elif type(one) not in _SIMPLE or not _is_same(one, other):  # most are simple and the same: no step down
            yield from compare(one, other, names, (*path, key))


def _members(value: Any, name: str | None) -> dict[str, Any] | None:
    """Return what is inside a value by key, name or place; None: nothing can be."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(item[name] if name else place): item for place, item in enumerate(value)}
    return None


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON. To Python, 1, 1.0 and true are equal; to JSON they are not."""
    return type(one) is type(other) and bool(one == other)
