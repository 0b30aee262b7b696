"""The structured conditions of preconditions: `{field: status.phase, operator: equals, value: Ready}`.

`check_operator` is for reading a file, `apply_operator` for running it. The Go adapter's guide documents eleven
operators and its code has eight; here all eleven work. What cannot be compared is a failure with its reason, as in Go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from hyperfleet.adapter.comparison import is_number, is_same_value
from hyperfleet.documents.wording import suggest
from hyperfleet.model.json_value import name_type


class OperatorOutcome(NamedTuple):
    """Whether a condition holds, or why that cannot be told; a failure names types, never values."""

    is_met: bool
    failure: str = ""


class _Operator(NamedTuple):
    """What an operator takes, and what it does with the field and that."""

    takes: Literal["nothing", "a value", "a list"]
    apply: Callable[[Any, Any], OperatorOutcome]


def check_operator(name: str, value: object, *, has_value: bool) -> str:
    """Return what is wrong with an operator and its value in a file; empty if nothing is."""
    operator = _OPERATORS.get(name)
    if operator is None:
        return f"there is no operator {name}{suggest(name, OPERATORS)}; known are {', '.join(OPERATORS)}"
    if operator.takes == "nothing":
        return f"{name} takes no value" if has_value else ""
    if not has_value:
        return f"{name} needs {operator.takes}"
    if operator.takes == "a list" and not isinstance(value, list):
        return f"{name} needs a list, not {name_type(value)}"
    if name in _COMPARISONS and not is_number(value):
        return f"{name} needs a number, not {name_type(value)}"
    return ""


def apply_operator(name: str, field: object, value: object = None) -> OperatorOutcome:
    """Tell whether a field of the event or of an API answer satisfies a condition; None is a missing field."""
    operator = _OPERATORS.get(name)
    if operator is None:
        return OperatorOutcome(is_met=False, failure=f"there is no operator {name}")
    return operator.apply(field, value)


def _exists(field: Any, _: object) -> OperatorOutcome:
    """Count anything but null and what is empty; 0 and false exist."""
    is_empty = field is None or (isinstance(field, str | list | dict) and not field)
    return OperatorOutcome(not is_empty)


def _equals(field: Any, value: Any) -> OperatorOutcome:
    return OperatorOutcome(is_same_value(field, value))


def _in(field: Any, value: Any) -> OperatorOutcome:
    if not isinstance(value, list):
        return OperatorOutcome(is_met=False, failure=f"in needs a list, not {name_type(value)}")
    return OperatorOutcome(any(is_same_value(field, each) for each in value))


def _contains(field: Any, value: Any) -> OperatorOutcome:
    """Look for a part of a string, an item of a list or a key of a map."""
    if value is None:
        return OperatorOutcome(is_met=False, failure="contains cannot look for null")
    if isinstance(field, list):
        return OperatorOutcome(any(is_same_value(each, value) for each in field))
    if not isinstance(field, str | dict):
        return OperatorOutcome(is_met=False, failure=f"contains cannot look into {_name(field, 'a missing field')}")
    if not isinstance(value, str):
        return OperatorOutcome(is_met=False, failure=f"contains looks for a string here, not {name_type(value)}")
    return OperatorOutcome(value in field)


def _compare(holds: Callable[[float, float], bool]) -> Callable[[Any, Any], OperatorOutcome]:
    def compare(field: Any, value: Any) -> OperatorOutcome:
        for each, role in ((field, "the field"), (value, "the value")):
            if not is_number(each):
                return OperatorOutcome(is_met=False, failure=f"{role} must be a number, and is {_name(each)}")
        return OperatorOutcome(holds(field, value))

    return compare


def _negate(apply: Callable[[Any, Any], OperatorOutcome]) -> Callable[[Any, Any], OperatorOutcome]:
    def negated(field: Any, value: Any) -> OperatorOutcome:
        outcome = apply(field, value)
        return outcome if outcome.failure else OperatorOutcome(not outcome.is_met)

    return negated


def _name(value: object, missing: str = "missing") -> str:
    return missing if value is None else name_type(value)


_COMPARISONS: Final[Mapping[str, _Operator]] = {
    "greaterThan": _Operator("a value", _compare(lambda field, value: field > value)),
    "greaterThanOrEqual": _Operator("a value", _compare(lambda field, value: field >= value)),
    "lessThan": _Operator("a value", _compare(lambda field, value: field < value)),
    "lessThanOrEqual": _Operator("a value", _compare(lambda field, value: field <= value)),
}
_OPERATORS: Final[Mapping[str, _Operator]] = {
    "equals": _Operator("a value", _equals),
    "notEquals": _Operator("a value", _negate(_equals)),
    "in": _Operator("a list", _in),
    "notIn": _Operator("a list", _negate(_in)),
    "contains": _Operator("a value", _contains),
    **_COMPARISONS,
    "exists": _Operator("nothing", _exists),
    "notExists": _Operator("nothing", _negate(_exists)),
}
OPERATORS: Final = tuple(_OPERATORS)
