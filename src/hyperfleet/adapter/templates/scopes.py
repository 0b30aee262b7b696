"""The variables of a template (`$x`) by name: a block may declare a name again, and its end brings the outer one back.

The parser keeps nothing but the names, the evaluator their values, and the variable scan where the values come from.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

ROOT = "$"


class ScopedNames(Generic[T]):
    """Values by name, with an undo to any earlier mark."""

    __slots__ = ("_order", "_values")

    def __init__(self, root: T) -> None:
        """Begin with `$`."""
        self._order: list[str] = []
        self._values: dict[str, list[T]] = {ROOT: [root]}  # the innermost last

    def mark(self) -> int:
        """Return what `reset` takes to come back to here."""
        return len(self._order)

    def reset(self, mark: int) -> None:
        """Forget the declarations since a mark."""
        for name in self._order[mark:]:
            self._values[name].pop()
        del self._order[mark:]

    def declare(self, name: str, value: T) -> None:
        """Add a name, or hide the outer one."""
        self._order.append(name)
        self._values.setdefault(name, []).append(value)

    def assign(self, name: str, value: T) -> None:
        """Change the innermost value of a name that is declared."""
        self._values[name][-1] = value

    def has(self, name: str) -> bool:
        """Tell whether a name is declared here."""
        return bool(self._values.get(name))

    def get(self, name: str) -> T:
        """Return the innermost value of a name that is declared."""
        return self._values[name][-1]
