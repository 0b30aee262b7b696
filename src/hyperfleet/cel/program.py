"""A compiled expression and the values it is evaluated on. Evaluating never raises: a failure is an outcome."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgspec import Struct

from hyperfleet.cel.faults import clean_message
from hyperfleet.cel.tree import CheckedTree
from hyperfleet.cel.values import ValueFault, read_result

if TYPE_CHECKING:
    from cel_expr_python import cel

FailureKind = Literal["missing", "type", "limit", "input", "other"]

_KINDS: Final[tuple[tuple[str, FailureKind], ...]] = (
    ("budget exceeded", "limit"),
    ("recursion limit", "limit"),
    ("NOT_FOUND", "missing"),
    ("No value with name", "missing"),
    ("Index error", "missing"),
    ("No matching overloads", "type"),
    ("Applying SELECT", "type"),
    ("Unexpected value type", "input"),
)


class CelFailure(Struct, frozen=True):
    """Why an expression has no value."""

    kind: FailureKind  # `missing`: a field, key or item that is not there
    message: str


class Outcome(NamedTuple):
    """The value of an expression, or why there is none."""

    value: Any
    failure: CelFailure | None = None


class Scope(NamedTuple):
    """What functions know besides their arguments."""

    now: datetime | None
    context: Any  # of the caller; functions of its own read it


# The engine calls functions without a context, so `evaluate` leaves it here.
CURRENT_SCOPE: Final[ContextVar[Scope]] = ContextVar("cel_scope")


class Activation:
    """The values of all variables for one event or resource. Building one is costly: use it for many programs."""

    __slots__ = ("failure", "native", "scope")

    def __init__(self, native: cel.Activation | None, scope: Scope, failure: CelFailure | None = None) -> None:
        """Hold the engine's activation, or why there is none."""
        self.native = native
        self.scope = scope
        self.failure = failure


class Program:
    """A checked expression."""

    __slots__ = ("_expected", "_expression", "fields", "result", "source", "uses", "variables")

    def __init__(self, source: str, expression: cel.Expression, expected: type | None, tree: CheckedTree) -> None:
        """Hold a compiled expression; a value of another type than `expected` is a failure."""
        self.variables = tree.variables  # those that it uses
        self.fields = tree.fields  # the names that it selects from anything
        self.uses = tree.uses  # its variables with the members that it selects from them, and where
        self.result: str = expression.return_type().name().lower()  # `dyn` if only a value tells
        self.source = source
        self._expression = expression
        self._expected = expected

    def evaluate(self, activation: Activation) -> Outcome:
        """Return the value of the expression, or why it has none."""
        if activation.native is None:
            return Outcome(None, activation.failure)
        token = CURRENT_SCOPE.set(activation.scope)
        try:
            value = read_result(self._expression.eval(activation=activation.native))
        except ValueFault as fault:
            return Outcome(None, _failure(str(fault)))
        except (RuntimeError, TypeError, ValueError, SystemError) as error:  # the engine's ways to fail
            return Outcome(None, _failure(str(error)))
        finally:
            CURRENT_SCOPE.reset(token)
        if self._expected is not None and type(value) is not self._expected:
            message = f"the result must be {_name(self._expected)}, and is {_name(type(value))}"
            return Outcome(None, CelFailure("type", message))
        return Outcome(value)


def _failure(text: str) -> CelFailure:
    kinds: list[FailureKind] = [kind for mark, kind in _KINDS if mark in text]
    return CelFailure(kinds[0] if kinds else "other", clean_message(text))


def _name(type_: type) -> str:
    return {str: "string", dict: "map", type(None): "null", float: "double"}.get(type_, type_.__name__)
