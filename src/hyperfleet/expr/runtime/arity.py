"""How many arguments the functions of the language take.

The checker knows, but does not check some places, because the original does not: the arguments of an
unknown function, the key of `$env[…]`. There a wrong number is a fault of run time, for the compiler and the plain
evaluator alike.
"""

from __future__ import annotations

from functools import cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING

from hyperfleet.expr.runtime.functions import FUNCTIONS

if TYPE_CHECKING:
    from hyperfleet.expr.nodes import Builtin


BRANDED = frozenset({"string", "toJSON", "type"})
"""Functions that need the static type of their argument; they do not mind further ones."""


def misfit(node: Builtin) -> str:
    """Return what is wrong with the number of arguments of a call, or nothing."""
    least, most = _arity(node.name)
    given = len(node.arguments)
    if given < least:
        return f"not enough arguments to call {node.name}"
    return f"too many arguments to call {node.name}" if most is not None and given > most else ""


@cache
def _arity(name: str) -> tuple[int, int | None]:
    """Return the least and the most arguments of a function; None: no maximum."""
    if name not in FUNCTIONS:
        return 0, None
    if name in BRANDED:
        return 1, None
    _, *parameters = signature(FUNCTIONS[name]).parameters.values()  # the first one is the account
    is_open = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters)
    needed = [parameter for parameter in parameters if parameter.default is Parameter.empty]
    return (len(needed) - 1, None) if is_open else (len(needed), len(parameters))
