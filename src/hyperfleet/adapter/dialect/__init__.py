"""The expressions of the contract's status block, which are neither CEL nor expr.

    program = parse_dialect("resources.c.status.conditions[?(@.type=='Available')].reason ?? \\"Ready\\"").program
    outcome = program.evaluate({"resources": {...}})
    outcome.value, outcome.is_fallback

`[?(@.k=='v')]` is the first match or nil, every access is nil-safe, `??` replaces nil only, an order with nil is false,
and nil equals nil only. There are `&&`, `||`, `!`, comparisons, `a ? b : c`, parentheses and literals; no functions and
no arithmetic: those are CEL. `??` cannot be mixed with other operators without parentheses, as languages disagree about
what that means. An expression is evaluated directly: a rewrite to CEL does not compile (an optional cannot be compared
with a string).
"""

from hyperfleet.adapter.dialect.language import choose_language, is_dialect
from hyperfleet.adapter.dialect.program import DialectOutcome, DialectProgram, ParsedDialect, PathUse, parse_dialect

__all__ = [
    "DialectOutcome",
    "DialectProgram",
    "ParsedDialect",
    "PathUse",
    "choose_language",
    "is_dialect",
    "parse_dialect",
]
