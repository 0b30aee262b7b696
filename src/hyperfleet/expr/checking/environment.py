"""The names that an expression may use, for the checker and the parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hyperfleet.expr.signatures import BUILTINS, builtin_type
from hyperfleet.expr.types import ANY_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hyperfleet.expr.types import Func, Schema, Type


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables of a schema, functions that come with it, and the builtins that are not disabled.

    Without a schema, or when not strict, other names are allowed and unknown. `name` is what error texts call
    the environment as a whole (`$env`).
    """

    schema: Schema | None = None
    functions: Mapping[str, Func] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    is_strict: bool = True
    name: str = ANY_MAP.name

    def variable(self, name: str) -> Type | None:
        """Return the type of a variable, or None when the schema has none of this name."""
        return self.schema.get(name) if self.schema is not None else None

    def function(self, name: str) -> Func | None:
        """Return the type of a function, declared or built in, or None."""
        if name in self.functions:
            return self.functions[name]
        return builtin_type(name) if self.has_builtin(name) else None

    def has_builtin(self, name: str) -> bool:
        """Tell whether a function of the language has this name."""
        return name in BUILTINS and name not in self.disabled

    def allows_unknown(self) -> bool:
        """Tell whether undeclared names are allowed."""
        return self.schema is None or not self.is_strict

    def overridden(self) -> frozenset[str]:
        """Return the builtins that a variable or function of the same name hides."""
        return BUILTINS.intersection((*(self.schema or ()), *self.functions))
