"""Compile `preconditions`."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from hyperfleet.adapter.compiling.compiler import NO_PATH, Compiler
from hyperfleet.adapter.config import Capture, Comparison, Precondition
from hyperfleet.adapter.documents.preconditions import CapturePart, ConditionPart, PreconditionPart
from hyperfleet.adapter.operators import check_operator
from hyperfleet.documents import good_items


def compile_preconditions(parts: tuple[PreconditionPart, ...], compiler: Compiler) -> tuple[Precondition, ...]:
    """Compile preconditions; each sees the captures of those before it, and its own."""
    seen: set[str] = set()
    compiled = []
    for index, part in good_items(parts):
        pointer = f"/preconditions/{index}"
        if part.name and part.name in seen:
            compiler.report(f"{pointer}/name", f"there is already a precondition {part.name}", "DuplicateName")
        seen.add(part.name)
        compiled.append(_compile(part, compiler, pointer))
    return tuple(compiled)


def _compile(part: PreconditionPart, compiler: Compiler, pointer: str) -> Precondition:
    _check_shape(part, compiler, pointer)
    log = compiler.log(part.log, f"{pointer}/log")
    call = None
    captures: tuple[Capture, ...] = ()
    if part.api_call is not None:
        call = compiler.call(part.api_call, f"{pointer}/api_call")
        captures = _compile_captures(part.capture, compiler, f"{pointer}/capture")
        for name in filter(None, (part.name, *(each.name for each in captures))):
            compiler.names.reveal(name)
    conditions = tuple(
        _compare(each, compiler, f"{pointer}/conditions/{index}") for index, each in good_items(part.conditions)
    )
    expression = compiler.optional_gate(part.expression, f"{pointer}/expression")
    return Precondition(
        name=part.name, log=log, call=call, captures=captures, conditions=conditions, expression=expression
    )


def _check_shape(part: PreconditionPart, compiler: Compiler, pointer: str) -> None:
    if part.api_call is not None:
        message = "api_call in a precondition is deprecated: use a param with source.api_call"
        compiler.report(f"{pointer}/api_call", message, "Deprecated", "warning", is_key=True)
    elif part.capture:
        compiler.report(f"{pointer}/capture", "capture reads an answer, and there is no api_call", "MissingKey")
    is_empty = part.api_call is None and part.expression is None and not part.conditions
    if is_empty and not any(compiler.places.is_given(f"{pointer}/{key}") for key in ("api_call", "conditions")):
        compiler.report(pointer, "conditions or an expression is missing", "MissingKey")
    if part.conditions and part.expression is not None:
        message = "the expression has no effect: there are conditions"
        compiler.report(f"{pointer}/expression", message, "NoEffect", "warning", is_key=True)


def _compile_captures(parts: tuple[CapturePart, ...], compiler: Compiler, pointer: str) -> tuple[Capture, ...]:
    return tuple(_capture(part, compiler, f"{pointer}/{index}") for index, part in good_items(parts))


def _capture(part: CapturePart, compiler: Compiler, pointer: str) -> Capture:
    if (part.field is None) == (part.expression is None):
        compiler.report(pointer, "exactly one of field and expression is needed", "ExactlyOne")
    if part.expression is None:
        expression: Any = compiler.field(part.field, f"{pointer}/field", is_open=True)
        return Capture(name=part.name, expression=expression, environment=compiler.environment, default=part.default)
    if part.default is not UNSET:
        compiler.report(f"{pointer}/default", "only a capture of a field has a default", "NotAllowed", is_key=True)
    expression, environment = compiler.open_expression(part.expression, f"{pointer}/expression")
    return Capture(name=part.name, expression=expression, environment=environment)


def _compare(part: ConditionPart, compiler: Compiler, pointer: str) -> Comparison:
    has_both = part.value is not UNSET and part.values is not UNSET
    if has_both:
        compiler.report(f"{pointer}/values", "values is the same as value; give one of them", "ExactlyOne", is_key=True)
    value = part.values if part.value is UNSET else part.value
    path = compiler.field(part.field, f"{pointer}/field").path if part.field else NO_PATH
    if part.operator is not None:
        message = check_operator(part.operator, None if value is UNSET else value, has_value=value is not UNSET)
        if message:
            compiler.report(f"{pointer}/operator", message, "Operator")
    return Comparison(path, part.operator, None if value is UNSET else value)
