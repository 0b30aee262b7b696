"""Nodes to typed values: follow the type, collect every problem.

The loader calls `bind`. The type is whatever msgspec can describe; there is one function per kind of type, in
the table below. Only types are checked here; what values mean is checked by their owners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from msgspec import inspect

from hyperfleet.documents import collection_types, scalar_types, struct_types
from hyperfleet.documents.binding import INVALID, Binding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hyperfleet.document_problem import DocumentProblem
    from hyperfleet.documents.binding import TypeBinder
    from hyperfleet.documents.nodes import YamlDocument

T = TypeVar("T")

BINDERS: Final[dict[type[inspect.Type], TypeBinder]] = {
    inspect.NoneType: scalar_types.bind_none,
    inspect.BoolType: scalar_types.bind_bool,
    inspect.IntType: scalar_types.bind_int,
    inspect.FloatType: scalar_types.bind_float,
    inspect.StrType: scalar_types.bind_text,
    inspect.TimeDeltaType: scalar_types.bind_duration,
    inspect.LiteralType: scalar_types.bind_choice,
    inspect.EnumType: scalar_types.bind_choice,
    inspect.AnyType: collection_types.bind_any,
    inspect.ListType: collection_types.bind_list,
    inspect.VarTupleType: collection_types.bind_tuple,
    inspect.TupleType: collection_types.bind_row,
    inspect.SetType: collection_types.bind_set,
    inspect.FrozenSetType: collection_types.bind_set,
    inspect.DictType: collection_types.bind_dict,
    inspect.StructType: struct_types.bind_struct,
    inspect.UnionType: struct_types.bind_union,
    inspect.Metadata: struct_types.bind_metadata,
}


class Bound(NamedTuple, Generic[T]):
    """The result of binding: the value (None if there is any problem) and every problem."""

    value: T | None
    problems: tuple[DocumentProblem, ...]


def bind(document: YamlDocument, type_: type[T]) -> Bound[T]:
    """Make a value of `type_` from a document, or return None and every problem in the order of the text."""
    run = Binding(document.file, BINDERS)
    value = run.bind(inspect.type_info(type_), document.root, "")
    return Bound(None if run.problems else value, _order(run.problems))


def salvage(document: YamlDocument, type_: type[T]) -> T | None:
    """Make as much as possible of a document with problems, so that more of it can be checked at once.

    A field with a problem has its default, or None if it has none. A list item with a problem is None, so that the
    others keep their positions. The result is None if the document as a whole has the wrong type.
    """
    run = Binding(document.file, BINDERS, is_salvaging=True)
    value = run.bind(inspect.type_info(type_), document.root, "")
    return None if value is INVALID else value


def good_items(items: Iterable[T]) -> Iterator[tuple[int, T]]:
    """Enumerate the items of a list, except those that `salvage` could not make."""
    return ((index, item) for index, item in enumerate(items) if item is not None)


def _order(problems: list[DocumentProblem]) -> tuple[DocumentProblem, ...]:
    """Sort by place; a problem that aliases repeat is listed once."""
    unique = {(problem.place.line, problem.place.column, problem.message): problem for problem in problems[::-1]}
    return tuple(sorted(unique.values()))
