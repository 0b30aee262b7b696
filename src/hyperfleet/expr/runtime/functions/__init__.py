"""The functions of the language that are plain functions at run time, by name.

Every one takes the account it pays from and its arguments. The fifteen that take a predicate are loops, which
the compiler and the evaluator write themselves; `now` depends on the caller's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.runtime.functions import collections, conversion, moments, numeric, strings

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.values import Value

FUNCTIONS: dict[str, Callable[..., Value]] = {
    **collections.FUNCTIONS,
    **conversion.FUNCTIONS,
    **moments.FUNCTIONS,
    **numeric.FUNCTIONS,
    **strings.FUNCTIONS,
}
