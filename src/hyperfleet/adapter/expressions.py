"""Expressions of an adapter file behind one interface: CEL, the contract's dialect, and field paths.

A scope holds the variables of one event at one moment. Evaluating never raises: a failure is an outcome, and each
caller decides what it means (a gate fails closed, a payload uses its default).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from hyperfleet.adapter.dialect import DialectProgram
from hyperfleet.adapter.field_paths import FieldPath
from hyperfleet.cel import Activation, CelEnvironment, Program


class Evaluated(NamedTuple):
    """The value of an expression, or why it has none."""

    value: Any
    failure: str = ""  # empty: there is a value
    is_missing: bool = False  # it failed because a variable, field or item is not there
    is_fallback: bool = False  # the value is what follows `??`


class ExpressionScope:
    """The variables that expressions see. CEL converts them once, with the first expression that needs it."""

    def __init__(self, environment: CelEnvironment, variables: Mapping[str, Any], now: datetime) -> None:
        """Hold variables; they must not change while the scope is used."""
        self.variables = variables if isinstance(variables, dict) else dict(variables)
        self.now = now
        self._environment = environment
        self._activation: Activation | None = None

    @property
    def activation(self) -> Activation:
        """Return the variables as CEL takes them; names that no expression may use are left out."""
        if self._activation is None:
            declared = self._environment.variables
            values = {name: value for name, value in self.variables.items() if name in declared}
            self._activation = self._environment.activate(values, self.now)
        return self._activation


class Expression(Protocol):
    """An expression that is ready to be evaluated, many times."""

    @property
    def source(self) -> str:
        """Return the expression as written."""
        ...

    @property
    def variables(self) -> frozenset[str]:
        """Return the names of the variables that it reads."""
        ...

    def evaluate(self, scope: ExpressionScope) -> Evaluated:
        """Return the value in a scope."""
        ...


class CelExpression(Struct, frozen=True):
    """An expression in CEL."""

    program: Program

    @property
    def source(self) -> str:
        """Return the expression as written."""
        return self.program.source

    @property
    def variables(self) -> frozenset[str]:
        """Return the names of the variables that it reads."""
        return self.program.variables

    def evaluate(self, scope: ExpressionScope) -> Evaluated:
        """Return the value in a scope."""
        value, failure = self.program.evaluate(scope.activation)
        if failure is None:
            return Evaluated(value)
        return Evaluated(None, failure.message, is_missing=failure.kind == "missing")


class DialectExpression(Struct, frozen=True):
    """An expression in the contract's dialect. What is not there is nil, so little can fail."""

    program: DialectProgram

    @property
    def source(self) -> str:
        """Return the expression as written."""
        return self.program.source

    @property
    def variables(self) -> frozenset[str]:
        """Return the names of the variables that it reads."""
        return frozenset(use.path[0] for use in self.program.paths())

    def evaluate(self, scope: ExpressionScope) -> Evaluated:
        """Return the value in a scope."""
        value, is_fallback, fault = self.program.evaluate(scope.variables)
        return Evaluated(value, fault.message if fault else "", is_fallback=is_fallback)


class FieldExpression(Struct, frozen=True):
    """A field path over the variables."""

    path: FieldPath

    @property
    def source(self) -> str:
        """Return the path as written."""
        return self.path.source

    @property
    def variables(self) -> frozenset[str]:
        """Return the name of the variable that it reads."""
        return frozenset([self.path.first_name] if self.path.first_name else [])

    def evaluate(self, scope: ExpressionScope) -> Evaluated:
        """Return the value in a scope; null counts as missing, so that a default is used."""
        value, missing = self.path.find(scope.variables)
        if value is None:
            return Evaluated(None, missing or f"{self.path.source} is null", is_missing=True)
        return Evaluated(value)


def evaluate_alone(
    expression: Expression, environment: CelEnvironment, variables: Mapping[str, Any], now: datetime
) -> Evaluated:
    """Evaluate one expression only: for CEL only the variables that it reads are converted."""
    used = variables
    if isinstance(expression, CelExpression):
        used = {name: variables[name] for name in expression.variables if name in variables}
    return expression.evaluate(ExpressionScope(environment, used, now))


def is_matched(value: Any) -> bool:
    """Tell whether the value of a gate opens it: a boolean itself, anything else if it is not null and not empty.

    As in the Go adapter, with one difference: the text "False" and the number 0 do not open a gate here.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.strip().lower() not in ("", "false")
    return value is not None and value not in (0, [], {})
