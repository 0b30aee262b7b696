"""The expr language in Python: compile an expression once, evaluate it often.

    program = compile('all(adapters, {.available == "True"})', {"adapters": Array(ADAPTER)}, expect=bool)
    program.evaluate({"adapters": [...]})

The way of an expression: `lexer` → `parser` → `checker` → `folding` → `compiler`, each a module, over the tree of
`nodes` with the types of `types`. At run time `operations`, `access` and `functions` do what static types could not
settle. `evaluator` is a second, plain implementation; `explain` watches it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.errors import ExprTypeError
from hyperfleet.expr import parser, types
from hyperfleet.expr.checker import check
from hyperfleet.expr.cursor import Grammar
from hyperfleet.expr.environment import Environment
from hyperfleet.expr.explain import Explanation, render_explanation
from hyperfleet.expr.faults import Fault
from hyperfleet.expr.folding import fold, simplify
from hyperfleet.expr.options import DEFAULT, Options
from hyperfleet.expr.printer import format_tree
from hyperfleet.expr.program import Program
from hyperfleet.expr.source import error_at

if TYPE_CHECKING:
    from hyperfleet.expr.nodes import Node
    from hyperfleet.expr.types import Schema, Type

__all__ = ["DEFAULT", "Explanation", "Options", "Program", "compile", "format", "parse", "render_explanation"]

_EXPECTED: dict[type, Type] = {bool: types.BOOL, int: types.INT, float: types.FLOAT, str: types.STRING}


def compile(  # noqa: A001 - the name of what it does; `re.compile` set the custom
    source: str,
    env_schema: Schema | None = None,
    *,
    expect: Type | type | None = None,
    options: Options = DEFAULT,
) -> Program:
    """Check an expression against an environment and compile it.

    Without a schema every name is allowed and its type is open. `expect` is the type that the result must have.
    """
    environment = Environment(env_schema, disabled=options.disabled)
    wanted = _EXPECTED[expect] if isinstance(expect, type) else expect
    tree = parse(source, env_schema, options=options)
    check(tree, source, environment, expect=wanted, allow_any=options.allow_any)
    try:
        folded = fold(tree)
        return Program(source, (tree, folded, simplify(folded)), env_schema, wanted, options)
    except Fault as fault:
        raise error_at(ExprTypeError, source, fault.offset or 0, str(fault)) from None
    except (RecursionError, MemoryError, SyntaxError):  # what Python's own compiler says of too large a tree
        raise ExprTypeError("expression is nested too deeply") from None


def parse(source: str, env_schema: Schema | None = None, *, options: Options = DEFAULT) -> Node:
    """Return the tree of an expression, without types."""
    environment = Environment(env_schema, disabled=options.disabled)
    grammar = Grammar(
        overridden=environment.overridden(),
        disabled=options.disabled,
        max_length=options.length,
        max_nodes=options.nodes,
        max_depth=options.nesting,
    )
    return parser.parse(source, grammar)


def format(tree: Node) -> str:  # noqa: A001 - the counterpart of `parse`
    """Return the source of a tree; parsing it gives the tree again."""
    return format_tree(tree)
