"""The nodes of a template: what the parser makes, and the evaluator and the variable scan read.

`offset` is the place in the source, for messages. A pipeline is also an operand: that is what parentheses are.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from msgspec import Struct


class FieldName(NamedTuple):
    """One `.name` of a path."""

    offset: int
    name: str


class DotOperand(Struct, frozen=True):
    """`.`: the current value."""

    offset: int


class NilOperand(Struct, frozen=True):
    """`nil`."""

    offset: int


class LiteralOperand(Struct, frozen=True):
    """A string, number, boolean or character."""

    offset: int
    value: str | int | float | bool


class FieldOperand(Struct, frozen=True):
    """`.a.b`: a path from the current value."""

    offset: int
    path: tuple[FieldName, ...]


class VariableOperand(Struct, frozen=True):
    """`$x.a.b`; the name has its `$`, and `$` alone is the root."""

    offset: int
    name: str
    path: tuple[FieldName, ...] = ()


class FunctionOperand(Struct, frozen=True):
    """The name of a function."""

    offset: int
    name: str


class ChainOperand(Struct, frozen=True):
    """`(pipeline).a.b`: a path from the value of an operand."""

    offset: int
    operand: Operand
    path: tuple[FieldName, ...]


class TemplateCommand(Struct, frozen=True):
    """An operand, or a function with its arguments."""

    offset: int
    first: Operand
    arguments: tuple[Operand, ...] = ()


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`; each value is the last argument of the next. `names` are declared or assigned."""

    offset: int
    commands: tuple[TemplateCommand, ...]
    names: tuple[str, ...] = ()
    is_assignment: bool = False


Operand: TypeAlias = (
    DotOperand
    | NilOperand
    | LiteralOperand
    | FieldOperand
    | VariableOperand
    | FunctionOperand
    | ChainOperand
    | Pipeline
)


class LiteralText(Struct, frozen=True):
    """Text between actions."""

    offset: int
    text: str


class PipelineAction(Struct, frozen=True):
    """`{{ pipeline }}`: prints its value, unless it declares or assigns."""

    offset: int
    pipeline: Pipeline


class IfAction(Struct, frozen=True):
    """`{{ if }}`; an `else if` is an IfAction alone in `otherwise`."""

    offset: int
    pipeline: Pipeline
    body: Block
    otherwise: Block


class WithAction(Struct, frozen=True):
    """`{{ with }}`: like `if`, and the value becomes the current one."""

    offset: int
    pipeline: Pipeline
    body: Block
    otherwise: Block


class RangeAction(Struct, frozen=True):
    """`{{ range }}`: once for each item; `otherwise` if there is none."""

    offset: int
    pipeline: Pipeline
    body: Block
    otherwise: Block


class BreakAction(Struct, frozen=True):
    """`{{ break }}`."""

    offset: int


class ContinueAction(Struct, frozen=True):
    """`{{ continue }}`."""

    offset: int


TemplateNode: TypeAlias = (
    LiteralText | PipelineAction | IfAction | WithAction | RangeAction | BreakAction | ContinueAction
)
Block: TypeAlias = tuple[TemplateNode, ...]
