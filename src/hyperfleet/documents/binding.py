"""One run of the binder over one document: what is being bound, and the problems so far.

The functions that bind one kind of type each (`scalar_types`, `collection_types`, `struct_types`) get a
`Binding` and a `Slot`, call back for what is inside, and return a value or `INVALID`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, inspect

from hyperfleet.document_problem import DocumentPlace, DocumentProblem
from hyperfleet.documents.nodes import Node, ScalarNode
from hyperfleet.documents.wording import describe_expected, describe_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class _Invalid:
    """Stands for a value that has a problem."""


INVALID: Final = _Invalid()


class Slot(Struct, frozen=True):
    """A node, its JSON pointer, and a description of what is expected."""

    node: Node
    path: str
    expected: str


Fault: TypeAlias = tuple[str, str]
TypeBinder: TypeAlias = "Callable[[Binding, Any, Slot], Any]"


class Binding:
    """Chooses the function for each type and collects problems."""

    def __init__(
        self, file: str, binders: Mapping[type[inspect.Type], TypeBinder], *, is_salvaging: bool = False
    ) -> None:
        """Start without problems; `binders` has a function for every kind of type."""
        self.problems: list[DocumentProblem] = []
        self.is_salvaging = is_salvaging  # keep what is good of a struct or list that has problems
        self._file = file
        self._binders = binders

    def bind(self, info: inspect.Type, node: Node, path: str, expected: str = "") -> Any:
        """Bind a node to a type; `expected` overrides the description of the type."""
        binder = self._binders.get(type(info))
        if binder is None:
            raise TypeError(f"documents cannot hold values of the type {info}")
        return binder(self, info, Slot(node, path, expected or describe_expected(info)))

    def report(self, node: Node, path: str, code: str, message: str) -> _Invalid:
        """Record a problem."""
        self.problems.append(DocumentProblem(DocumentPlace(self._file, node.line, node.column, path), message, code))
        return INVALID

    def reject(self, slot: Slot, hint: str = "", code: str = "WrongType") -> _Invalid:
        """Record that something else was expected."""
        message = f"expected {slot.expected}, found {describe_found(slot.node)}{hint}"
        return self.report(slot.node, slot.path, code, message)

    def pass_checked(self, value: object, slot: Slot, faults: Iterable[Fault]) -> object:
        """Return the value if it has no faults, else record them all."""
        found = [self.report(slot.node, slot.path, code, message) for code, message in faults]
        return INVALID if found else value


def scalar_of(node: Node) -> object:
    """Return the value of a scalar; INVALID for a list or a mapping."""
    return node.value if isinstance(node, ScalarNode) else INVALID
