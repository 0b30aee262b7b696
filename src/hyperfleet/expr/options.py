"""Options of an expression besides its environment: limits and a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperfleet.expr.runtime.budget import CELLS, STEPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class ExprOptions:
    """Limits for compiling and evaluating, and the clock behind `now()`.

    `length` bounds the text, `nodes` and `nesting` the tree; `memory` (cells) and `work` (steps) one evaluation, see
    `budget`.
    Without a `clock` an expression that calls `now()` fails. With `allow_any` false the type of the result must be
    known when compiling, not only when evaluating. Builtins in `disabled` do not exist.
    """

    length: int = 100_000
    nodes: int = 10_000
    nesting: int = 150
    memory: int = CELLS
    work: int = STEPS
    clock: Callable[[], datetime] | None = None
    allow_any: bool = True
    disabled: frozenset[str] = frozenset()


DEFAULT = ExprOptions()
