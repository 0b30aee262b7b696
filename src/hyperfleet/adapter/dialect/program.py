"""The front door of the dialect: parse once, evaluate for every report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from hyperfleet.adapter.dialect.evaluator import Evaluation
from hyperfleet.adapter.dialect.nodes import (
    AccessPath,
    Choice,
    DialectNode,
    FallbackChain,
    FirstMatchStep,
    IndexStep,
    LogicalNot,
    LogicChain,
    MemberStep,
    OrderTest,
    RootName,
)
from hyperfleet.adapter.dialect.parser import parse_tree
from hyperfleet.adapter.faults import FaultSignal, SourceFault, make_fault


class DialectOutcome(NamedTuple):
    """The value of an expression, whether it came from a `??`, or why there is none."""

    value: Any
    is_fallback: bool = False
    fault: SourceFault | None = None


class PathUse(NamedTuple):
    """A path that an expression reads, up to its first filter or computed index, and where it is written."""

    path: tuple[str, ...]
    line: int
    column: int


class DialectProgram(Struct, frozen=True):
    """An expression without faults."""

    source: str
    tree: DialectNode

    def evaluate(self, variables: Mapping[str, Any]) -> DialectOutcome:
        """Return the value of the expression; a variable that is not there is nil."""
        try:
            value, is_fallback = Evaluation(variables).evaluate(self.tree)
        except FaultSignal as fault:
            return DialectOutcome(None, fault=make_fault(self.source, fault.offset, fault.message))
        return DialectOutcome(value, is_fallback)

    def paths(self) -> list[PathUse]:
        """Return the paths that the expression reads, for a check of their names."""
        found = []
        for path, offset in _paths(self.tree):
            place = make_fault(self.source, offset, "")
            found.append(PathUse(path, place.line, place.column))
        return found


class ParsedDialect(NamedTuple):
    """An expression, or what is wrong with its text."""

    program: DialectProgram | None
    faults: tuple[SourceFault, ...] = ()


def parse_dialect(source: str) -> ParsedDialect:
    """Parse an expression."""
    try:
        return ParsedDialect(DialectProgram(source, parse_tree(source)))
    except FaultSignal as fault:
        return ParsedDialect(None, (make_fault(source, fault.offset, fault.message),))


def _paths(node: DialectNode) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(node, RootName):
        yield (node.name,), node.offset
    elif isinstance(node, AccessPath):
        yield from _paths_of_access(node)
    for child in _children(node):
        yield from _paths(child)


def _paths_of_access(node: AccessPath) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(node.origin, RootName):
        names = [node.origin.name]
        for step in node.steps:
            if not isinstance(step, MemberStep):
                break
            names.append(step.name)
        yield tuple(names), node.offset


def _children(node: DialectNode) -> Iterator[DialectNode]:
    match node:
        case AccessPath():
            if not isinstance(node.origin, RootName):
                yield node.origin
            for step in node.steps:
                if isinstance(step, IndexStep):
                    yield step.index
                elif isinstance(step, FirstMatchStep):
                    yield step.condition
        case LogicalNot():
            yield node.operand
        case LogicChain() | FallbackChain():
            yield from node.operands
        case OrderTest():
            yield from (node.left, node.right)
        case Choice():
            yield from (node.condition, node.positive, node.negative)
