"""Which variables a template reads, through `if`, `range`, `with`, variables of its own and parentheses.

`check` compares them with the variables that an adapter has. The Go adapter sees `{{ .x }}` and `{{ .x | f }}` only.
A path goes as far as the template says: `{{ range .items }}{{ .name }}` reads `items` and `items.*.name`. Where the
origin of a value is not known, as after a function, its fields are not reported.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hyperfleet.adapter.templates.nodes import (
    Block,
    ChainOperand,
    DotOperand,
    FieldName,
    FieldOperand,
    FunctionOperand,
    IfAction,
    LiteralOperand,
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

ITEM: Final = "*"  # stands for any item of a list or map

_MAX_PATH: Final = 16  # names; the first ones tell which variable it is
_MAX_ORIGINS: Final = 4  # of one variable; with more it counts as unknown

Path = tuple[str, ...]
Origins = frozenset[Path]  # what a value may be; empty if that is not known

_ROOT: Final[Origins] = frozenset({()})
_UNKNOWN: Final[Origins] = frozenset()


class VariableUse(NamedTuple):
    """A path that is read: `("resources", "ns", "status")`, and the offset of its last name in the template."""

    path: Path
    offset: int

    def __str__(self) -> str:
        """Write the path as in a template."""
        return "." + ".".join(self.path)


def find_variables(body: Block) -> tuple[VariableUse, ...]:
    """Return every path that a template reads, each with the first place, in the order of the places."""
    scan = _Scan()
    scan.visit_all(_ROOT, body)
    scan.visit_all(_ROOT, body)  # again: an assignment in a loop reaches what is written above it
    return tuple(sorted((VariableUse(path, offset) for path, offset in scan.found.items()), key=lambda use: use.offset))


class _Scan:
    def __init__(self) -> None:
        self.found: dict[Path, int] = {}
        self._names: ScopedNames[Origins] = ScopedNames(_ROOT)
        self._assigned: dict[str, Origins] = {}  # by `$x =`, anywhere in the template

    def visit_all(self, dot: Origins, body: Block) -> None:
        mark = self._names.mark()
        for node in body:
            self._visit(dot, node)
        self._names.reset(mark)

    def _visit(self, dot: Origins, node: TemplateNode) -> None:
        if isinstance(node, PipelineAction):
            self._run(dot, node.pipeline)
        elif isinstance(node, IfAction | WithAction | RangeAction):
            mark = self._names.mark()
            value = self._run(dot, node.pipeline, is_range=isinstance(node, RangeAction))
            self.visit_all(dot if isinstance(node, IfAction) else value, node.body)
            self.visit_all(dot, node.otherwise)
            self._names.reset(mark)

    def _run(self, dot: Origins, pipeline: Pipeline, *, is_range: bool = False) -> Origins:
        """Visit a pipeline and set its names; those of a range get the position and the item."""
        values = [self._command(dot, command) for command in pipeline.commands]
        value = values[0] if len(values) == 1 else _UNKNOWN
        if is_range:
            value = _extend(value, ITEM)
        for index, name in enumerate(pipeline.names):
            is_position = len(pipeline.names) == 2 and index == 0
            self._set(name, _UNKNOWN if is_position else value, is_assignment=pipeline.is_assignment)
        return value

    def _set(self, name: str, value: Origins, *, is_assignment: bool) -> None:
        """Set a name; what is assigned to it elsewhere may have come first, in a loop."""
        known = self._assigned.get(name, _UNKNOWN)
        if is_assignment:
            self._assigned[name] = _merge(known, value)
            self._names.assign(name, _merge(self._names.get(name), value))
        else:
            self._names.declare(name, _merge(known, value))

    def _command(self, dot: Origins, command: TemplateCommand) -> Origins:
        first = self._evaluate(dot, command.first)
        arguments = [self._evaluate(dot, each) for each in command.arguments]
        if isinstance(command.first, FunctionOperand):
            is_index = command.first.name == "index" and arguments
            return self._index(arguments[0], command.arguments[1:]) if is_index else _UNKNOWN
        return first

    def _index(self, origins: Origins, keys: tuple[Operand, ...]) -> Origins:
        for key in keys:
            is_name = isinstance(key, LiteralOperand) and isinstance(key.value, str)
            origins = _extend(origins, str(key.value) if is_name and isinstance(key, LiteralOperand) else ITEM)
            self._record(origins, key.offset)
        return origins

    def _evaluate(self, dot: Origins, operand: Operand) -> Origins:
        match operand:
            case DotOperand():
                return dot
            case FieldOperand():
                return self._follow(dot, operand.path)
            case VariableOperand():
                return self._follow(self._names.get(operand.name), operand.path)
            case ChainOperand():
                return self._follow(self._evaluate(dot, operand.operand), operand.path)
            case Pipeline():
                return self._run(dot, operand)
        return _UNKNOWN

    def _follow(self, origins: Origins, path: tuple[FieldName, ...]) -> Origins:
        for field in path:
            origins = _extend(origins, field.name)
            self._record(origins, field.offset)
        return origins

    def _record(self, origins: Origins, offset: int) -> None:
        for path in origins:
            self.found.setdefault(path, offset)


def _extend(origins: Origins, name: str) -> Origins:
    return frozenset(path if len(path) >= _MAX_PATH else (*path, name) for path in origins)


def _merge(one: Origins, other: Origins) -> Origins:
    merged = one | other
    return merged if len(merged) <= _MAX_ORIGINS else _UNKNOWN
