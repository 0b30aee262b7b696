"""Our templates give what Go's text/template gives, except where `DIFFERENT` says why."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.adapter.templates import parse_text
from tests.conformance.adapter import record
from tests.conformance.adapter.template_cases import NOW, TEMPLATES, VARIABLES

ANSWERS = record.read()
FAULT = object()

# The template, our answer, and why it is another one than Go's.
_BY_VALUE = "numbers compare by value: an API answer does not tell 3 from 3.0"
_NO_COMPLAINT = "Go writes its complaint into the text; no object should hold that"
_EITHER = "whole and other numbers fit the verbs of each other: an API answer does not tell them apart"
DIFFERENT: dict[str, tuple[object, str]] = {
    "{{ eq .count 3.0 }}": ("true", _BY_VALUE),
    "{{ lt .half 1 }}": ("true", _BY_VALUE),
    '{{ printf "%d" .name }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "%s" .count }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "%d" }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "a" 1 }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "%z" 1 }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "%" }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "%s" .nothing }}': (FAULT, _NO_COMPLAINT),
    '{{ printf "%.0f" .count }}': ("3", _EITHER),
    '{{ printf "%d" 3.0 }}': ("3", _EITHER),
    '{{ printf "%f %.1e" .half .million }}': ("0.500000 1.0e+06", _EITHER),
}


def answer(template: str) -> object:
    """Render with our own code; a fault of any stage is FAULT."""
    parsed = parse_text(template).template
    if parsed is None:
        return FAULT
    text, fault = parsed.render(VARIABLES, NOW)
    return FAULT if fault else text


def test_the_recorded_templates_are_those_of_the_table() -> None:
    assert [each["template"] for each in ANSWERS] == TEMPLATES, "run make record-template-cases"


@pytest.mark.parametrize("recorded", ANSWERS, ids=lambda recorded: recorded["template"])
def test_a_template_renders_as_in_go(recorded: dict[str, Any]) -> None:
    template = recorded["template"]
    if template in DIFFERENT:
        expected, because = DIFFERENT[template]
        assert because
        assert expected is FAULT or expected != recorded.get("text"), "no longer different"
    else:
        expected = recorded.get("text", FAULT)
    assert answer(template) == expected, recorded.get("error")
