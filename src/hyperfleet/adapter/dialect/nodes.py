"""The nodes of an expression of the contract's dialect. Chains are flat, so that long ones do not recurse."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Order = Literal["==", "!=", "<", "<=", ">", ">="]


class ConstantValue(Struct, frozen=True):
    """A string, number, boolean or nil."""

    offset: int
    value: str | int | float | bool | None


class RootName(Struct, frozen=True):
    """A variable: `resources`."""

    offset: int
    name: str


class FilterItem(Struct, frozen=True):
    """`@`: the item that a filter looks at."""

    offset: int


class MemberStep(Struct, frozen=True):
    """`.name` or `['name']`."""

    offset: int
    name: str


class IndexStep(Struct, frozen=True):
    """`[expression]`."""

    offset: int
    index: DialectNode


class FirstMatchStep(Struct, frozen=True):
    """`[?(condition)]`: the first item that matches; a bare path as the condition must be there."""

    offset: int
    condition: DialectNode


AccessStep: TypeAlias = MemberStep | IndexStep | FirstMatchStep


class AccessPath(Struct, frozen=True):
    """A value and the steps into it."""

    offset: int
    origin: DialectNode
    steps: tuple[AccessStep, ...]


class LogicalNot(Struct, frozen=True):
    """`!a`."""

    offset: int
    operand: DialectNode


class LogicChain(Struct, frozen=True):
    """`a && b && c`, or the same with `||`."""

    offset: int
    is_and: bool
    operands: tuple[DialectNode, ...]


class OrderTest(Struct, frozen=True):
    """A comparison of two values."""

    offset: int
    operator: Order
    left: DialectNode
    right: DialectNode


class FallbackChain(Struct, frozen=True):
    """`a ?? b ?? c`: the first that is not nil."""

    offset: int
    operands: tuple[DialectNode, ...]


class Choice(Struct, frozen=True):
    """`condition ? a : b`."""

    offset: int
    condition: DialectNode
    positive: DialectNode
    negative: DialectNode


DialectNode: TypeAlias = (
    ConstantValue | RootName | FilterItem | AccessPath | LogicalNot | LogicChain | OrderTest | FallbackChain | Choice
)
