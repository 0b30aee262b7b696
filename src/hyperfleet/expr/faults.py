"""Faults of a running expression, before they have a place in the source.

Run-time functions raise an `EvaluationFault` with the original's text; they know no sources and no positions. `Program`
turns it into an `ExprRuntimeError` with line, column and snippet. No fault leaves this package.
"""

from __future__ import annotations

from hyperfleet.errors import shorten_message


class EvaluationFault(Exception):  # noqa: N818 - an internal signal; the errors of this code are all in hyperfleet.errors
    """An operation failed on its values; `str()` is the text for people.

    `offset` is the place in the source, once it is known.
    """

    offset: int | None = None

    def __init__(self, message: str) -> None:
        """Keep a message of bounded length: it may quote a value."""
        super().__init__(shorten_message(message))


class BudgetExhausted(EvaluationFault):
    """The evaluation exceeded its budget of memory or work."""
