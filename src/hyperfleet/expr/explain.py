"""Explain the value of an expression: every term with its value, and the terms that were not needed.

`Program.explain` calls this. It runs the plain evaluator and records each term; the result is a tree like the
expression's own, bounded in size, for people (`render`) and for programs that look for the decisive term.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hyperfleet.expr.compiling.folding import CONSTANTS
from hyperfleet.expr.evaluator import UNSUPPORTED, UNSUPPORTED_VALUE, Evaluator, Round, Skip
from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.nodes import Binary, Builtin, Bytes, Chain, ExprNode, Nil, Pair, Predicate
from hyperfleet.expr.runtime.budget import WORK, open_budget
from hyperfleet.expr.runtime.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.types import Schema

TERMS = 2_000
"""Terms of one explanation; later ones are evaluated but not recorded."""

ELEMENTS = 100
"""Elements recorded for one loop."""

WIDTH = 80
"""Characters shown of a value."""

SHOWING = 20_000
"""Steps of work for showing all values of one explanation."""

SHOWING_ONE = 1_000
"""Steps of work for showing one value."""

# A literal is its own value; a pair, predicate or chain is explained by its parts.
_UNTOLD = (*CONSTANTS, Bytes, Nil, Predicate, Pair, Chain)
_FAMILIES = ({"and", "&&"}, {"or", "||"})


@dataclass(frozen=True, slots=True)
class ExplainedRound:
    """One round of a loop: the element, its index, and the explained predicate."""

    index: int
    item: Value
    body: ExprExplanation


@dataclass(frozen=True, slots=True)
class ExprExplanation:
    """A term with its value, or with the `error` of its evaluation (else empty).

    `skipped` is a term that was not needed: the rest of an `&&`, the other branch. `children` are the terms below in
    source order, without literals; `elements` the rounds of a loop, `omitted` the number of those left out.
    """

    node: ExprNode
    text: str
    value: Value = None
    error: str = ""
    skipped: bool = False
    children: tuple[ExprExplanation, ...] = ()
    elements: tuple[ExplainedRound, ...] = ()
    omitted: int = 0

    def walk(self) -> Iterator[ExprExplanation]:
        """Yield this term and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()
        for element in self.elements:
            yield from element.body.walk()

    def render(self, indent: str = "") -> str:
        """Return the explanation as text, a line for each term; all lines share one budget."""
        return "\n".join(self._lines(indent, open_budget(steps=SHOWING)))

    def _lines(self, indent: str, budget: Budget) -> Iterator[str]:
        yield f"{indent}{self.text} → {self._outcome(budget)}"
        for child in self.children:
            yield from child._lines(indent + "  ", budget)
        for element in self.elements:
            yield f"{indent}  [{element.index}]"
            yield from element.body._lines(indent + "    ", budget)
        if self.omitted:
            yield f"{indent}  … and {self.omitted} more"

    def _outcome(self, budget: Budget) -> str:
        if self.skipped:
            return "not needed"
        if self.error:
            return f"error: {self.error}"
        shown = _shown(self.value, budget)
        return shown if len(shown) <= WIDTH else shown[: WIDTH - 1] + "…"


def render_explanation(explanation: ExprExplanation) -> str:
    """Return an explanation as text, a line for each term."""
    return explanation.render()


def _shown(value: Value, budget: Budget) -> str:
    """Write the beginning of a value, paying from what is left for the whole explanation, but not too much of it."""
    own = open_budget(steps=min(SHOWING_ONE, budget[WORK]))
    before = own[WORK]
    try:
        return f'"{value[:WIDTH]}"' if isinstance(value, str) else show(_clipped(value), own)
    except (EvaluationFault, RecursionError, *UNSUPPORTED):
        return "(too large to show)"
    finally:
        budget[WORK] -= before - max(own[WORK], 0)


def _clipped(value: Value) -> Value:
    """Return no more elements of a list than fit into a line."""
    return value[:WIDTH] if type(value) is list else value


@dataclass(slots=True)
class _Record:
    """A term under evaluation."""

    node: ExprNode
    value: Value = None
    error: str = ""
    skipped: bool = False
    below: list[_Record] = field(default_factory=list)
    rounds: list[tuple[int, Value, _Record]] = field(default_factory=list)
    omitted: int = 0


class _RecordingEvaluator(Evaluator):
    """An evaluator that records every term."""

    slowness = 24

    def __init__(
        self, environment: Mapping[str, Value], schema: Schema | None, budget: Budget, now: Callable[..., Value]
    ) -> None:
        super().__init__(environment, schema, budget, now)
        self.top: list[_Record] = []
        self.open: list[_Record] = []
        self.terms = 0

    def visit(self, node: ExprNode) -> Value:
        """Evaluate a node and record the result."""
        if not _is_term(node) or self.terms >= TERMS:
            return super().visit(node)
        record = self._begin(node)
        try:
            record.value = super().visit(node)
        except EvaluationFault as fault:
            record.error = str(fault)
            raise
        except Skip:
            record.skipped = True
            raise
        finally:
            self.open.pop()
        return record.value

    def dispatch(self, node: ExprNode) -> Value:
        """Evaluate a node by the method for its kind."""
        return self.binary(node) if isinstance(node, Binary) else super().dispatch(node)

    def _begin(self, node: ExprNode) -> _Record:
        record = _Record(node)
        self.terms += 1
        (self.open[-1].below if self.open else self.top).append(record)
        self.open.append(record)
        return record

    def binary(self, node: Binary) -> Value:
        """Evaluate `a && b && c` as one term with three below; everything else as it is nested."""
        operands = _operands(node)
        value = self.visit(operands[0].left)
        for link in operands:
            value = self.operation(link, value)
        return value

    def body(self, node: Builtin, current: Round) -> Value:
        """Evaluate a predicate, noting it under the element rather than under the loop."""
        loop = self.open[-1] if self.open else None
        if loop is None or len(loop.rounds) >= ELEMENTS or len(node.arguments) == 1:
            if loop is not None and len(node.arguments) > 1:
                loop.omitted += 1
            return self._unwatched(node, current)
        before = len(loop.below)
        try:
            return super().body(node, current)
        finally:
            for record in loop.below[before:]:
                loop.rounds.append((current.index, current.items[current.index], record))
            del loop.below[before:]

    def _unwatched(self, node: Builtin, current: Round) -> Value:
        terms, self.terms = self.terms, TERMS
        try:
            return super().body(node, current)
        finally:
            self.terms = terms


def _is_term(node: ExprNode) -> bool:
    """Tell whether a node is worth a line; the `#` that `.name` implies has no text."""
    return not isinstance(node, _UNTOLD) and node.end > node.start


def _operands(node: Binary) -> list[Binary]:
    """Return the links of a chain of one logical operator, from the left; of others there is one link."""
    family = next((names for names in _FAMILIES if node.operator in names), None)
    links = [node]
    while family and isinstance(links[-1].left, Binary) and links[-1].left.operator in family:
        links.append(links[-1].left)
    return links[::-1]


def explain(tree: ExprNode, source: str, evaluator: Callable[[type[Evaluator]], Evaluator]) -> ExprExplanation:
    """Evaluate a tree and explain it; a failure is part of the explanation."""
    watcher = evaluator(_RecordingEvaluator)
    if not isinstance(watcher, _RecordingEvaluator):
        raise TypeError("the evaluator must be of the class it is given")
    try:
        value, error = watcher.visit(tree), ""
    except EvaluationFault as fault:
        value, error = None, str(fault)
    except RecursionError:
        value, error = None, "recursion depth exceeded"
    except UNSUPPORTED:
        value, error = None, UNSUPPORTED_VALUE
    if not watcher.top:  # the whole expression is a literal
        return ExprExplanation(tree, source[tree.start : tree.end], value, error)
    root = watcher.top[0]
    root.error = root.error or error
    return _freeze(root, source)


def _freeze(record: _Record, source: str) -> ExprExplanation:
    """Return a record as an explanation, with what was not needed put in its place."""
    node = record.node
    return ExprExplanation(
        node,
        source[node.start : node.end],
        record.value,
        record.error,
        record.skipped,
        tuple(_freeze(child, source) for child in _complete(record)),
        tuple(ExplainedRound(index, item, _freeze(body, source)) for index, item, body in record.rounds),
        record.omitted,
    )


def _complete(record: _Record) -> list[_Record]:
    """Return the records below, and one for each term that was not evaluated, in source order."""
    if record.skipped and not record.below:
        return []
    seen = {id(child.node) for child in record.below}
    missing = [part for part in _parts(record.node) if _is_term(part) and id(part) not in seen]
    skipped = [_Record(part, skipped=True) for part in missing]
    return sorted(record.below + skipped, key=lambda child: child.node.start)


def _parts(node: ExprNode) -> tuple[ExprNode, ...]:
    """Return the terms below a node as `binary` evaluates them."""
    if isinstance(node, Binary):
        links = _operands(node)
        parts: tuple[ExprNode, ...] = (links[0].left, *(link.right for link in links))
    else:
        parts = node.children()
    return tuple(part.body if isinstance(part, Chain) else part for part in parts)
