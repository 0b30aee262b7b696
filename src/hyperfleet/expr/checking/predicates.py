"""The types of builtins that take a predicate: what `#name` may be inside, and what comes out.

The checker walks the tree; this table has what each of the fifteen takes and returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hyperfleet.expr.checking.compatibility import is_any, printed
from hyperfleet.expr.types import ANY, ANY_ARRAY, BOOL, INT, UNKNOWN, Array, Map, untyped_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hyperfleet.expr.types import Type

    Result = Callable[[Type, Type], Type]


@dataclass(frozen=True, slots=True)
class LoopBuiltin:
    """A builtin that evaluates its predicate for each element.

    `result` takes the types of the collection and of the predicate's body; `pointers` are the names after `#`.
    """

    result: Result
    wants_bool: bool = False
    pointers: Mapping[str, Type] = field(default_factory=dict)


def element_of(collection: Type) -> Type:
    """Return the type of an element of an array, or of an unknown collection."""
    return collection.element if isinstance(collection, Array) else UNKNOWN


def _bool(_collection: Type, _body: Type) -> Type:
    return BOOL


def _int(_collection: Type, _body: Type) -> Type:
    return INT


def _element(collection: Type, _body: Type) -> Type:
    return element_of(collection)


def _filtered(collection: Type, _body: Type) -> Type:
    return ANY_ARRAY if is_any(collection) else untyped_array(element_of(collection))


def _mapped(_collection: Type, body: Type) -> Type:
    return untyped_array(body)


def _groups(_collection: Type, _body: Type) -> Type:
    return Map(ANY, ANY_ARRAY)


def _collection(collection: Type, _body: Type) -> Type:
    return collection


def _body(_collection: Type, body: Type) -> Type:
    return body


def _printed_body(_collection: Type, body: Type) -> Type:
    return printed(body)


LOOPS: Mapping[str, LoopBuiltin] = {
    **dict.fromkeys(("all", "none", "any", "one"), LoopBuiltin(_bool, wants_bool=True)),
    **dict.fromkeys(("count", "findIndex", "findLastIndex"), LoopBuiltin(_int, wants_bool=True)),
    **dict.fromkeys(("find", "findLast"), LoopBuiltin(_element, wants_bool=True)),
    "filter": LoopBuiltin(_filtered, wants_bool=True),
    "map": LoopBuiltin(_mapped, pointers={"index": INT}),
    "sum": LoopBuiltin(_printed_body),
    "groupBy": LoopBuiltin(_groups),
    "sortBy": LoopBuiltin(_collection),
    "reduce": LoopBuiltin(_body, pointers={"index": INT, "acc": UNKNOWN}),
}
