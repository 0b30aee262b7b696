"""Evaluate an expression of the contract's dialect on plain values.

Nil goes through everything: an access into nil is nil, an order with nil is false, and nil counts as false where a
boolean is wanted. A value of a wrong type is a fault with its place, never a guess: the text "False" is no boolean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hyperfleet.adapter.comparison import is_less, is_same_value
from hyperfleet.adapter.dialect.nodes import (
    AccessPath,
    AccessStep,
    Choice,
    ConstantValue,
    DialectNode,
    FallbackChain,
    FilterItem,
    FirstMatchStep,
    IndexStep,
    LogicalNot,
    LogicChain,
    MemberStep,
    OrderTest,
    RootName,
)
from hyperfleet.adapter.faults import FaultSignal
from hyperfleet.model.json_value import name_type

MAX_STEPS: Final = 100_000  # nodes that are evaluated; filters go through lists of any length


class TracedValue(NamedTuple):
    """A value, and whether it came from the right side of a `??`."""

    value: Any
    is_fallback: bool = False


class Evaluation:
    """One evaluation, with what is left of its steps."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        """Begin with the variables by name."""
        self._variables = variables
        self._steps = MAX_STEPS

    def evaluate(self, node: DialectNode, item: Any = None) -> TracedValue:
        """Return the value of a node; `item` is what `@` stands for."""
        self._spend(node.offset)
        match node:
            case ConstantValue():
                return TracedValue(node.value)
            case RootName():
                return TracedValue(self._variables.get(node.name))
            case FilterItem():
                return TracedValue(item)
            case AccessPath():
                return self._access(node, item)
            case FallbackChain():
                return self._fall_back(node, item)
            case Choice():
                chosen = node.positive if self._is_true(node.condition, item) else node.negative
                return self.evaluate(chosen, item)
        return TracedValue(self._test(node, item))

    def _test(self, node: LogicalNot | LogicChain | OrderTest, item: Any) -> bool:
        if isinstance(node, LogicalNot):
            return not self._is_true(node.operand, item)
        if isinstance(node, OrderTest):
            return self._compare(node, item)
        if node.is_and:
            return all(self._is_true(each, item) for each in node.operands)
        return any(self._is_true(each, item) for each in node.operands)

    def _spend(self, offset: int) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise FaultSignal(offset, f"the expression takes more than {MAX_STEPS} steps")

    def _is_true(self, node: DialectNode, item: Any) -> bool:
        value = self.evaluate(node, item).value
        if value is None:
            return False
        if not isinstance(value, bool):
            raise FaultSignal(node.offset, f"a boolean is wanted here, and this is {name_type(value)}")
        return value

    def _fall_back(self, node: FallbackChain, item: Any) -> TracedValue:
        result = self.evaluate(node.operands[0], item)
        for operand in node.operands[1:]:
            if result.value is not None:
                break
            result = TracedValue(self.evaluate(operand, item).value, is_fallback=True)
        return result

    def _compare(self, node: OrderTest, item: Any) -> bool:
        left = self.evaluate(node.left, item).value
        right = self.evaluate(node.right, item).value
        if node.operator in ("==", "!="):
            return is_same_value(left, right) == (node.operator == "==")
        if left is None or right is None:
            return False
        is_reversed = node.operator in (">", "<=")
        is_before = is_less(right, left) if is_reversed else is_less(left, right)
        if is_before is None:
            raise FaultSignal(node.offset, f"{name_type(left)} and {name_type(right)} have no order")
        return is_before == (node.operator in ("<", ">"))

    def _access(self, node: AccessPath, item: Any) -> TracedValue:
        value, is_fallback = self.evaluate(node.origin, item)
        for step in node.steps:
            self._spend(step.offset)
            value = self._step(value, step, item)
        return TracedValue(value, is_fallback)

    def _step(self, value: Any, step: AccessStep, item: Any) -> Any:
        match step:
            case MemberStep():
                return value.get(step.name) if isinstance(value, Mapping) else None
            case FirstMatchStep():
                return self._find_first(value, step) if isinstance(value, list) else None
            case IndexStep():
                return _pick(value, self.evaluate(step.index, item).value)

    def _find_first(self, items: list[Any], step: FirstMatchStep) -> Any:
        """Return the first item that matches; a bare path asks whether something is there."""
        is_path = isinstance(step.condition, AccessPath | FilterItem)
        for each in items:
            if is_path:
                matches = self.evaluate(step.condition, each).value is not None
            else:
                matches = self._is_true(step.condition, each)
            if matches:
                return each
        return None


def _pick(value: Any, index: Any) -> Any:
    """Return an item by position or key; what is not there is nil."""
    if isinstance(value, list) and type(index) is int and 0 <= index < len(value):
        return value[index]
    if isinstance(value, Mapping) and isinstance(index, str):
        return value.get(index)
    return None
