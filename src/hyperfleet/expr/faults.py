"""What goes wrong while an expression runs, before it has a place in a source.

Run-time functions raise a `EvaluationFault` with the original's text; they know no sources and no positions. `Program`
turns it into an `ExprRuntimeError` with line, column and snippet. No fault leaves this package.
"""

from __future__ import annotations


class EvaluationFault(Exception):  # noqa: N818 - an internal signal; the errors of this code are all in hyperfleet.errors
    """An operation failed on its values; `str()` is the text for people.

    `offset` is the place in the source, once somebody knew it.
    """

    offset: int | None = None


class BudgetExhausted(EvaluationFault):
    """The evaluation would cost more memory or work than it may."""
