"""Convert a result to the type that the caller of `compile` expects, where the checker could not prove it.

Generated code and the plain evaluator share the table, so that both refuse the same results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.numbers import to_bool, to_float, to_int
from hyperfleet.expr.runtime.values import LISTS, adopt, type_name
from hyperfleet.expr.types import ANY_ARRAY, ANY_MAP, BOOL, FLOAT, INT, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.types import Type


def cast_to(expect: Type | None) -> Callable[[Value], Value] | None:
    """Return what makes a result of the expected type or refuses it; None where every result will do."""
    return _CASTS.get(expect.kind) if expect is not None else None


def _only(classes: tuple[type, ...], name: str) -> Callable[[Value], Value]:
    """Return a cast that changes nothing, but lets only values of some classes pass."""

    def cast(value: Value) -> Value:
        adopted = adopt(value)
        if isinstance(adopted, classes):
            return adopted
        raise EvaluationFault(f"expected {name}, but got {'nil' if adopted is None else type_name(adopted)}")

    return cast


_CASTS: dict[str, Callable[[Value], Value]] = {
    BOOL.kind: to_bool,
    INT.kind: to_int,
    FLOAT.kind: to_float,
    STRING.kind: _only((str,), "string"),
    ANY_ARRAY.kind: _only(LISTS, "slice"),
    ANY_MAP.kind: _only((dict,), "map"),
}
