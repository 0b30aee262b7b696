"""Render a parsed template: walk its tree and write the text.

The last stage; `TextTemplate.render` calls it. Every operation that fails on its values becomes a `FaultSignal` with
the place of the operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from hyperfleet.adapter.faults import FaultSignal
from hyperfleet.adapter.templates.budget import RenderBudget, RenderingFault
from hyperfleet.adapter.templates.functions import FUNCTIONS
from hyperfleet.adapter.templates.methods import call_method
from hyperfleet.adapter.templates.nodes import (
    Block,
    BreakAction,
    ChainOperand,
    ContinueAction,
    DotOperand,
    FieldName,
    FieldOperand,
    FunctionOperand,
    IfAction,
    LiteralOperand,
    LiteralText,
    NilOperand,
    Operand,
    Pipeline,
    PipelineAction,
    RangeAction,
    TemplateCommand,
    TemplateNode,
    VariableOperand,
    WithAction,
)
from hyperfleet.adapter.templates.scopes import ScopedNames
from hyperfleet.adapter.templates.signatures import SIGNATURES
from hyperfleet.adapter.templates.values import NO_VALUE, Value, is_true, name_kind, show, sorted_keys
from hyperfleet.documents.wording import suggest
from hyperfleet.expr.temporal.times import Time

_MANY: Final = 200  # keys; comparing more of them with a misspelt one takes long
_NOTHING: Final = object()  # no value comes through the pipe


class _Break(Exception):  # noqa: N818 - control flow
    pass


class _Continue(Exception):  # noqa: N818 - control flow
    pass


class Rendering:
    """One rendering: the variables that are declared, and the text so far."""

    def __init__(self, variables: Mapping[str, Value], now: Time) -> None:
        """Begin with the variables of the adapter; `now` is what the function `now` returns."""
        self._now = now
        self._budget = RenderBudget()
        self._root = variables
        self._names: ScopedNames[Value] = ScopedNames(variables)
        self._output: list[str] = []

    def render(self, body: Block) -> str:
        """Return the text of a template."""
        self._walk_all(self._root, body)
        return "".join(self._output)

    def _walk_all(self, dot: Value, body: Block) -> None:
        for node in body:
            self._walk(dot, node)

    def _walk(self, dot: Value, node: TemplateNode) -> None:
        match node:
            case LiteralText():
                self._write(node.offset, node.text)
            case PipelineAction():
                value = self._run(dot, node.pipeline)
                if not node.pipeline.names:
                    self._print(node.pipeline.offset, value)
            case IfAction() | WithAction():
                self._choose(dot, node)
            case RangeAction():
                self._repeat(dot, node)
            case BreakAction():
                raise _Break
            case ContinueAction():
                raise _Continue

    # `break`, `continue` and faults skip the resets below on purpose: the range around them resets further, or the
    # rendering is over.

    def _choose(self, dot: Value, node: IfAction | WithAction) -> None:
        mark = self._names.mark()
        value = self._run(dot, node.pipeline)
        if is_true(value):
            self._walk_all(value if isinstance(node, WithAction) else dot, node.body)
        else:
            self._walk_all(dot, node.otherwise)
        self._names.reset(mark)

    def _repeat(self, dot: Value, node: RangeAction) -> None:
        mark = self._names.mark()
        is_empty = True
        try:
            for key, item in self._pairs(node, self._run(dot, node.pipeline)):
                is_empty = False
                self._repeat_once(node, key, item)
        except _Break:
            pass
        if is_empty:
            self._walk_all(dot, node.otherwise)
        self._names.reset(mark)

    def _repeat_once(self, node: RangeAction, key: Value, item: Value) -> None:
        self._spend(node.offset)
        mark = self._names.mark()
        names = node.pipeline.names
        for name, value in zip(names, (key, item) if len(names) == 2 else (item,), strict=False):
            self._names.assign(name, value)
        with suppress(_Continue):
            self._walk_all(item, node.body)
        self._names.reset(mark)

    def _pairs(self, node: RangeAction, value: Value) -> Iterator[tuple[Value, Value]]:
        """Return keys or positions with the items; maps come in the order of their keys."""
        if isinstance(value, dict):
            return iter([(key, value[key]) for key in sorted_keys(value)])
        if isinstance(value, list):
            return iter(list(enumerate(value)))
        if value is None:
            return iter(())
        if type(value) is int and len(node.pipeline.names) < 2:
            return ((None, number) for number in range(value))
        raise FaultSignal(node.pipeline.offset, f"range cannot go through {name_kind(value)}")

    def _run(self, dot: Value, pipeline: Pipeline) -> Value:
        value: Value = _NOTHING
        for command in pipeline.commands:
            value = self._command(dot, command, value)
        for name in pipeline.names:
            if pipeline.is_assignment:
                self._names.assign(name, value)
            else:
                self._names.declare(name, value)
        return value

    def _command(self, dot: Value, command: TemplateCommand, piped: Value) -> Value:
        first = command.first
        if isinstance(first, FunctionOperand):
            return self._call(dot, first, command.arguments, piped)
        if not command.arguments and piped is _NOTHING:
            return self._evaluate(dot, first)
        arguments = [self._evaluate(dot, each) for each in command.arguments]
        return self._call_path(dot, first, arguments if piped is _NOTHING else [*arguments, piped])

    def _evaluate(self, dot: Value, operand: Operand) -> Value:
        self._spend(operand.offset)
        match operand:
            case DotOperand():
                return dot
            case NilOperand():
                return None
            case LiteralOperand():
                return operand.value
            case FunctionOperand():
                return self._call(dot, operand, (), _NOTHING)
            case Pipeline():
                return self._run(dot, operand)
            case FieldOperand() | VariableOperand() | ChainOperand():
                return self._follow(self._origin(dot, operand), operand.path)

    def _origin(self, dot: Value, operand: FieldOperand | VariableOperand | ChainOperand) -> Value:
        """Return the value at which a path begins."""
        if isinstance(operand, FieldOperand):
            return dot
        if isinstance(operand, VariableOperand):
            return self._names.get(operand.name)
        return self._evaluate(dot, operand.operand)

    def _follow(self, value: Value, path: tuple[FieldName, ...]) -> Value:
        for field in path:
            self._spend(field.offset)
            value = self._field(value, field)
        return value

    def _field(self, value: Value, field: FieldName) -> Value:
        name = field.name
        if isinstance(value, Mapping):
            if name in value:
                return value[name]
            hint = suggest(name, tuple(map(str, value))) if len(value) < _MANY else ""
            raise FaultSignal(field.offset, f"there is no {name}{hint}")
        if isinstance(value, Time):
            return self._guard(field.offset, call_method, value, name, [])
        raise FaultSignal(field.offset, f"there is no {name} in {name_kind(value)}")

    def _call_path(self, dot: Value, operand: Operand, arguments: list[Value]) -> Value:
        """Call the method at the end of a path; only times have methods."""
        if isinstance(operand, FieldOperand | VariableOperand | ChainOperand) and operand.path:
            receiver = self._follow(self._origin(dot, operand), operand.path[:-1])
            if isinstance(receiver, Time):
                last = operand.path[-1]
                return self._guard(last.offset, call_method, receiver, last.name, arguments)
        raise FaultSignal(operand.offset, "only a function takes arguments")

    def _call(self, dot: Value, function: FunctionOperand, operands: tuple[Operand, ...], piped: Value) -> Value:
        self._spend(function.offset)
        if function.name == "now":
            return self._now
        if function.name in ("and", "or"):
            return self._decide(dot, function.name == "or", operands, piped)
        arguments = [self._evaluate(dot, each) for each in operands]
        if piped is not _NOTHING:
            arguments.append(piped)
        for index, argument in enumerate(arguments):
            place = operands[index].offset if index < len(operands) else function.offset
            self._check_kind(place, function.name, index, argument)
        result = self._guard(function.offset, FUNCTIONS[function.name], self._budget, *arguments)
        return self._guard(function.offset, self._budget.hold, result) if isinstance(result, str) else result

    def _check_kind(self, place: int, name: str, index: int, argument: Value) -> None:
        if isinstance(argument, str):
            self._spend(place, len(argument))
        kind = SIGNATURES[name].kind_of(index)
        if kind == "string":
            if not isinstance(argument, str):
                raise FaultSignal(place, f"{name} takes a string here, not {name_kind(argument)}")
        elif kind == "time" and not isinstance(argument, Time):
            raise FaultSignal(place, f"{name} takes a time here, not {name_kind(argument)}; `now` is one")

    def _decide(self, dot: Value, wanted: bool, operands: tuple[Operand, ...], piped: Value) -> Value:
        """Return the first argument whose truth is `wanted`, or the last; those behind it are not evaluated."""
        value: Value = None
        for operand in operands:
            value = self._evaluate(dot, operand)
            if is_true(value) == wanted:
                return value
        return value if piped is _NOTHING else piped

    def _print(self, offset: int, value: Value) -> None:
        text = NO_VALUE if value is None else self._guard(offset, show, value, self._budget)
        self._write(offset, text)

    def _write(self, offset: int, text: str) -> None:
        self._output.append(self._guard(offset, self._budget.write, text))

    def _spend(self, offset: int, characters: int = 0) -> None:
        try:
            self._budget.spend(characters)
        except RenderingFault as fault:
            raise FaultSignal(offset, str(fault)) from None

    def _guard(self, offset: int, call: Value, *arguments: Value) -> Value:
        """Call something that may fail on its values, and add the place."""
        try:
            return call(*arguments)
        except RenderingFault as fault:
            raise FaultSignal(offset, str(fault)) from None
