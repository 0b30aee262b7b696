"""Build the payloads of a file: trees of templates and expressions become documents. Pure.

All expressions see one snapshot of the variables; templates also see the payloads before theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hyperfleet.adapter.config import BuildConstant, BuildList, BuildMap, BuildNode, ComputedValue
from hyperfleet.adapter.expressions import Evaluated, ExpressionScope
from hyperfleet.adapter.templates import TextTemplate


class BuiltValue(NamedTuple):
    """A value, or why there is none."""

    value: Any
    fault: str = ""


class BuildFault(Exception):  # noqa: N818 - internal to payloads: `build` returns it
    """A template has no value."""


class ValueBuilder:
    """Builds values for one event."""

    def __init__(self, scope: ExpressionScope, texts: Mapping[str, Any]) -> None:
        """Take the scope of expressions and the variables of templates."""
        self.scope = scope
        self.texts = texts
        self.warnings: list[str] = []  # expressions that failed and were replaced by a default

    def build(self, node: BuildNode) -> BuiltValue:
        """Build a tree; a template without a value is a fault."""
        try:
            return BuiltValue(self._build(node))
        except BuildFault as fault:
            return BuiltValue(None, str(fault))

    def compute(self, value: ComputedValue) -> Evaluated:
        """Evaluate an expression; if it fails or is null, the default takes its place, if there is one."""
        outcome = value.expression.evaluate(self.scope)
        if not outcome.failure and outcome.value is not None:
            return outcome
        if outcome.failure:
            self.warnings.append(f"{value.expression.source.strip()}: {outcome.failure}")
        return outcome if value.default is None else Evaluated(value.default)

    def render(self, template: TextTemplate) -> str:
        """Render a template; raises `BuildFault`."""
        text, fault = template.render(self.texts, self.scope.now)
        if fault is not None:
            raise BuildFault(f"{template.source.strip()[:80]}: {fault.message}")
        return text

    def _build(self, node: BuildNode) -> Any:
        match node:
            case BuildConstant():
                return node.value
            case BuildMap():
                return {self.render(key): self._build(item) for key, item in node.entries}
            case BuildList():
                return [self._build(item) for item in node.items]
            case ComputedValue():
                return self.compute(node).value
        return self.render(node)
