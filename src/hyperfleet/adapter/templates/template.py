"""A template that is ready to be rendered, many times and with other variables each time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from hyperfleet.adapter.faults import FaultSignal, SourceFault, make_fault
from hyperfleet.adapter.templates.evaluator import Rendering
from hyperfleet.adapter.templates.nodes import Block, LiteralText
from hyperfleet.adapter.templates.parser import parse_source
from hyperfleet.adapter.templates.values import Value
from hyperfleet.adapter.templates.variables import VariableUse, find_variables
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.temporal.zones import UTC

OPENING = "{{"


class RenderedText(NamedTuple):
    """The text of a template, or why there is none."""

    text: str
    fault: SourceFault | None = None


class TextTemplate(Struct, frozen=True):
    """A template without faults."""

    source: str
    body: Block

    def render(self, variables: Mapping[str, Value], now: datetime) -> RenderedText:
        """Return the text; a variable that is missing is a fault. `now` is for the function `now`."""
        if len(self.body) == 1 and isinstance(self.body[0], LiteralText):
            return RenderedText(self.body[0].text)
        try:
            return RenderedText(Rendering(variables, Time.from_datetime(now).within(UTC)).render(self.body))
        except FaultSignal as fault:
            return RenderedText("", make_fault(self.source, fault.offset, fault.message))


class ParsedTemplate(NamedTuple):
    """A template, or everything that is wrong with its text."""

    template: TextTemplate | None
    faults: tuple[SourceFault, ...] = ()


def parse_text(source: str) -> ParsedTemplate:
    """Parse a template; a text without `{{` is one too, and stays as it is."""
    if OPENING not in source:
        return ParsedTemplate(TextTemplate(source, (LiteralText(0, source),)))
    body, faults = parse_source(source)
    return ParsedTemplate(None, faults) if faults else ParsedTemplate(TextTemplate(source, body))


def variables_of(template: TextTemplate) -> tuple[VariableUse, ...]:
    """Return every variable path that a template reads."""
    return find_variables(template.body)
