"""A compiled expression: evaluate it, explain it, ask it for its type.

Made by `compile` of this package. A fault of generated code gets its place in the source from the position of the
failing instruction, so success costs nothing extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.errors import ExprBudgetError, ExprError, ExprRuntimeError, HyperFleetError
from hyperfleet.expr.compiling.compiler import compile_tree
from hyperfleet.expr.compiling.emission import FILE
from hyperfleet.expr.evaluator import UNSUPPORTED, UNSUPPORTED_VALUE, Evaluator
from hyperfleet.expr.explain import ExprExplanation, explain
from hyperfleet.expr.faults import BudgetExhausted, EvaluationFault
from hyperfleet.expr.nodes import Call, walk
from hyperfleet.expr.runtime.budget import CALLS, open_budget
from hyperfleet.expr.runtime.casts import cast_to
from hyperfleet.expr.runtime.values import Value
from hyperfleet.expr.source import error_at
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.temporal.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from hyperfleet.expr.compiling.compiler import Evaluate
    from hyperfleet.expr.nodes import ExprNode
    from hyperfleet.expr.options import ExprOptions
    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.types import Schema, Type


class Program:
    """A compiled expression. It holds no state between evaluations and may be used from several threads.

    `evaluate(values)` returns the value of the expression. It is the generated function itself: a method around it
    would cost as much as many an expression. Values it returns may share parts with the environment.
    `evaluate(values, budget)` pays from an account of `open_budget`, which several programs may share, instead of
    from one of its own.
    """

    __slots__ = (
        "_expect",
        "_folded",
        "_options",
        "_schema",
        "_simplified",
        "evaluate",
        "result_type",
        "source",
        "tree",
    )

    evaluate: Evaluate

    def __init__(
        self,
        source: str,
        trees: tuple[ExprNode, ExprNode, ExprNode],
        schema: Schema | None,
        expect: Type | None,
        options: ExprOptions,
    ) -> None:
        """Compile the three trees of one source: as written, with constants computed, and simplified."""
        self.source = source
        self.tree, self._folded, self._simplified = trees
        self._expect = expect
        self._schema = schema
        self._options = options
        self.result_type: Type = expect if expect is not None else self.tree.type
        self.evaluate = compile_tree(
            self._simplified,
            schema,
            expect=expect,
            limits=(options.memory, options.work),
            now=self._now,
            recover=self._recover,
        )

    def interpret(self, values: Mapping[str, Value]) -> Value:
        """Evaluate with the plain evaluator: slower, but correct for values that do not have their declared types."""
        return self._interpret(values, self._open_budget())

    def _interpret(self, values: Mapping[str, Value], budget: Budget) -> Value:
        try:
            return self._cast(self._evaluator(values, budget).visit(self._simplified))
        except EvaluationFault as fault:
            raise self._error(fault, fault.offset or 0) from fault.__cause__
        except RecursionError:
            raise self._error(EvaluationFault("recursion depth exceeded"), 0) from None
        except UNSUPPORTED as error:
            raise self._error(EvaluationFault(UNSUPPORTED_VALUE), 0) from error

    def explain(self, values: Mapping[str, Value], budget: Budget | None = None) -> ExprExplanation:
        """Evaluate and explain the value of every term, paying from `budget` if it is given."""
        account = budget if budget is not None else self._open_budget()
        return explain(self._folded, self.source, lambda kind: self._evaluator(values, account, kind))

    def _open_budget(self) -> Budget:
        return open_budget(self._options.memory, self._options.work)

    def _evaluator(self, values: Mapping[str, Value], budget: Budget, kind: type[Evaluator] = Evaluator) -> Evaluator:
        return kind(values, self._schema, budget, self._now)

    def _cast(self, value: Value) -> Value:
        cast = cast_to(self._expect)
        if cast is None:
            return value
        try:
            return cast(value)
        except EvaluationFault as fault:
            fault.offset = 0
            raise

    def _now(self, *arguments: Value) -> Time:
        """Return the time by the caller's clock."""
        if self._options.clock is None:
            raise EvaluationFault("now() is not available: no clock was given")
        moment = Time.from_datetime(self._options.clock())
        if not arguments:
            return moment
        if isinstance(arguments[0], Zone):
            return moment.within(arguments[0])
        raise EvaluationFault(f"invalid number of arguments (expected 0, got {len(arguments)})")

    def _recover(self, values: Mapping[str, Value], failure: Exception, budget: Budget | None) -> Value:
        """Turn a failure of generated code into an error with a place, or into a value after all.

        Generated code trusts static types. When Python itself raises, some value did not have its declared type. Then
        the plain evaluator, which trusts nothing, evaluates again with the rest of the budget; but not after a function
        of the host was called, which may have had effects.
        """
        if isinstance(failure, HyperFleetError):
            raise failure
        if isinstance(failure, RecursionError):
            failure = EvaluationFault("recursion depth exceeded").with_traceback(failure.__traceback__)
        if isinstance(failure, EvaluationFault):
            raise self._error(failure, _offset_of(failure.__traceback__)) from failure.__cause__
        if budget is not None and budget[CALLS] and self._calls_functions():
            raise self._error(EvaluationFault(UNSUPPORTED_VALUE), _offset_of(failure.__traceback__)) from failure
        return self._interpret(values, budget if budget is not None else self._open_budget())

    def _calls_functions(self) -> bool:
        """Tell whether the calls on a shared account may be ours."""
        return any(isinstance(node, Call) for node in walk(self._simplified))

    def _error(self, fault: EvaluationFault, offset: int) -> ExprError:
        kind = ExprBudgetError if isinstance(fault, BudgetExhausted) else ExprRuntimeError
        return error_at(kind, self.source, offset, str(fault))


def _offset_of(traceback: TracebackType | None) -> int:
    """Return the place in the expression of the innermost generated instruction that failed."""
    offset = 0
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == FILE:
            positions = list(code.co_positions())
            column = positions[traceback.tb_lasti // 2][2]
            offset = column if column is not None else offset
        traceback = traceback.tb_next
    return offset
