"""The variables in scope of a node, for the checker, the compiler and the evaluator.

Finding one takes the same time however many there are: a hostile source declares thousands.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class NameScope(Generic[T]):
    """Values of names; an inner variable hides an outer one of the same name."""

    __slots__ = ("_names", "_values")

    def __init__(self) -> None:
        """Start without variables."""
        self._names: list[str] = []
        self._values: dict[str, list[T]] = {}

    def __len__(self) -> int:
        """Return how many variables are declared."""
        return len(self._names)

    def __contains__(self, name: str) -> bool:
        """Tell whether a name is a variable."""
        return name in self._values

    def __getitem__(self, name: str) -> T:
        """Return the value of the innermost variable of this name."""
        return self._values[name][-1]

    def declare(self, name: str, value: T) -> None:
        """Add a variable, which hides others of its name."""
        self._names.append(name)
        self._values.setdefault(name, []).append(value)

    def leave(self, depth: int) -> None:
        """Remove the latest variables until `depth` of them are left."""
        for name in reversed(self._names[depth:]):
            values = self._values[name]
            values.pop()
            if not values:
                del self._values[name]
        del self._names[depth:]
