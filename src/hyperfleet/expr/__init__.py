"""The expr language in Python: compile an expression once, evaluate it often.

    program = compile('all(adapters, {.available == "True"})', {"adapters": Array(ADAPTER)}, expect=bool)
    program.evaluate({"adapters": [...]})

The schema declares the names of the environment with the types of `types`; without one every name is open. Generated
code trusts it and does not check values. Pass unchecked data through `conform(values, schema)` first, which lists
everything that does not fit.

What comes back is plain data, like what goes in: None, bool, int, float, str, bytes, list and dict. Besides them:

- a time is a `Time` (`.to_datetime()`), a duration a `Duration`, an int of nanoseconds;
- the nil slice, as in `m.missing` of a map of lists, is an empty list that is nil to expressions;
- a map of `groupBy` or `fromPairs` is a dict in which `1`, `1.0` and `true` are three keys.

Results may share parts with the values that were given. `to_json` writes any of them in one line.

The stages: `syntax` → `checking` → `compiling`, over the tree of `nodes` with the types of `types`. At
run time `runtime` and `temporal` do what static types cannot decide. `evaluator` is a second, plain implementation;
`explain` records it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.errors import ExprBudgetError, ExprError, ExprRuntimeError, ExprSyntaxError, ExprTypeError
from hyperfleet.expr import types
from hyperfleet.expr.checking.checker import check
from hyperfleet.expr.checking.environment import Environment
from hyperfleet.expr.compiling.folding import fold, simplify
from hyperfleet.expr.conformity import conform
from hyperfleet.expr.explain import ExprExplanation, render_explanation
from hyperfleet.expr.faults import BudgetExhausted, EvaluationFault
from hyperfleet.expr.options import DEFAULT, ExprOptions
from hyperfleet.expr.program import Program
from hyperfleet.expr.runtime.budget import CELLS, STEPS, Budget, open_budget, steps_left
from hyperfleet.expr.runtime.jsontext import write_line
from hyperfleet.expr.source import error_at
from hyperfleet.expr.syntax import parser
from hyperfleet.expr.syntax.cursor import Grammar
from hyperfleet.expr.syntax.printer import format_tree
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.types import (
    ANY,
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INT,
    STRING,
    TIME,
    Array,
    Func,
    Map,
    Method,
    Nullable,
    Schema,
    Struct,
    Type,
    infer_schema,
)

if TYPE_CHECKING:
    from hyperfleet.expr.nodes import ExprNode
    from hyperfleet.expr.runtime.values import Value

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DEFAULT",
    "DURATION",
    "FLOAT",
    "INT",
    "STEPS",
    "STRING",
    "TIME",
    "Array",
    "Budget",
    "Duration",
    "ExprBudgetError",
    "ExprError",
    "ExprExplanation",
    "ExprOptions",
    "ExprRuntimeError",
    "ExprSyntaxError",
    "ExprTypeError",
    "Func",
    "Map",
    "Method",
    "Nullable",
    "Program",
    "Schema",
    "Struct",
    "Time",
    "Type",
    "compile",
    "conform",
    "format",
    "infer_schema",
    "open_budget",
    "parse",
    "render_explanation",
    "steps_left",
    "to_json",
]

_EXPECTED: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STRING,
    list: types.ANY_ARRAY,
    dict: types.ANY_MAP,
}


def compile(  # noqa: A001 - the name of what it does; `re.compile` set the custom
    source: str,
    env_schema: Schema | None = None,
    *,
    expect: Type | type | None = None,
    options: ExprOptions = DEFAULT,
) -> Program:
    """Check an expression against an environment and compile it.

    Without a schema every name is allowed and its type is open. `expect` is the type that the result must have,
    or one of bool, int, float, str, list and dict.
    """
    environment = Environment(env_schema, disabled=options.disabled)
    wanted = _wanted(expect)
    tree = parse(source, env_schema, options=options)
    check(tree, source, environment, expect=wanted, allow_any=options.allow_any)
    try:
        folded = fold(tree)
        return Program(source, (tree, folded, simplify(folded)), env_schema, wanted, options)
    except EvaluationFault as fault:
        raise error_at(ExprTypeError, source, fault.offset or 0, str(fault)) from None
    except (RecursionError, MemoryError, SyntaxError):  # Python's own compiler, if the tree is too large
        raise ExprTypeError("expression is nested too deeply") from None


def _wanted(expect: Type | type | None) -> Type | None:
    if not isinstance(expect, type):
        return expect
    if expect not in _EXPECTED:
        raise TypeError(f"no expression has a result of {expect}")
    return _EXPECTED[expect]


def parse(source: str, env_schema: Schema | None = None, *, options: ExprOptions = DEFAULT) -> ExprNode:
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


def format(tree: ExprNode, env_schema: Schema | None = None) -> str:  # noqa: A001 - the counterpart of `parse`
    """Return the source of a tree; parsing it with the same schema gives the tree again."""
    try:
        return format_tree(tree, Environment(env_schema).overridden())
    except RecursionError:  # a chain of pipes is flat as text, but nested as calls
        raise ExprSyntaxError("expression is nested too deeply to be written") from None


def to_json(value: Value) -> str:
    """Write a result in one line of JSON; values that JSON lacks, such as infinity, become strings."""
    try:
        return write_line(value, open_budget(CELLS, 10 * STEPS))
    except BudgetExhausted:
        raise ExprBudgetError("the result is too large to be written") from None
    except RecursionError:
        raise ExprRuntimeError("the result is nested too deeply to be written") from None
