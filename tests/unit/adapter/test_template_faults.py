"""What is wrong with a template is found all at once, and each fault has its place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hyperfleet.adapter.faults import place_source_faults
from hyperfleet.adapter.templates import parse_text
from hyperfleet.adapter.templates.commands import MAX_PARENTHESES
from hyperfleet.adapter.templates.lexer import MAX_FAULTS
from hyperfleet.adapter.templates.parser import MAX_BLOCKS, MAX_SOURCE
from hyperfleet.documents import Places, read

NOW = datetime(2026, 1, 2, tzinfo=UTC)
VARIABLES: dict[str, Any] = {
    "clusterId": "c1",
    "n": 3,
    "list": [1],
    "secret": {"token": "hunter2"},
    "big": 2**70,
}


def faults_of(template: str) -> list[tuple[int, int, str]]:
    return [(fault.line, fault.column, fault.message) for fault in parse_text(template).faults]


@pytest.mark.parametrize(
    ("template", "column", "message"),
    [
        ("a {{ .x", 3, "the action is not closed: }} is missing"),
        ("{{ .x {{ .y }}", 1, "the action is not closed: there is another {{ before }}"),
        ("{{/* a", 1, "the comment is not closed: */ is missing"),
        ("{{/* a */ b }}", 10, "only }} may follow a comment"),
        ('{{ "a }}', 4, "the string is not closed"),
        ("{{ `a }}", 4, "the raw string is not closed"),
        ("{{ 'a }}", 4, "the character is not closed"),
        ("{{ 'ab' }}", 4, "'ab' is not one character; strings are in double quotes"),
        ('{{ "a\\qb" }}', 6, "\\q is not an escape"),
        ('{{ "\\xff" }}', 4, "the escapes of this string make no text"),
        ("{{ .a-b }}", 6, "unexpected character '-' after .a"),
        ("{{ 3x }}", 4, "3x is not a number"),
        ("{{ 1i }}", 4, "1i: imaginary numbers have no use here"),
        ("{{ 1e999 }}", 4, "1e999 does not fit into 64 bits"),
        ("{{ 08 }}", 4, "08 is not a number"),
        ("{{ % }}", 4, "unexpected character '%'"),
        ("{{ }}", 4, "a value is missing: action has none"),
        ("{{ .x | }}", 9, "a command is missing"),
        ("{{ .x | 3 }}", 9, "only a function takes arguments"),
        ("{{ 3 .x }}", 4, "only a function takes arguments"),
        ("{{ nil }}", 4, "nil is not a command"),
        ("{{ (.x }}", 4, "the parenthesis is not closed"),
        ("{{ .x) }}", 6, "unexpected ) after action"),
        ("{{ .x.y(3) }}", 8, "a blank is missing before ("),
        ("{{ $x }}", 4, "$x is not declared"),
        ("{{ $x = 1 }}", 4, "$x is not declared; $x := declares it"),
        ("{{ $a, $b := .x }}", 4, "too many variables for action"),
        ("{{ range $a, $b }}{{ end }}", 17, "expected := after the variables"),
        ("{{ or true ($x := 1) }}", 13, "variables cannot be set inside parentheses"),
        ("{{ lowr .x }}", 4, 'there is no function lowr, did you mean "lower"?'),
        ("{{ clusterId }}", 4, "there is no function clusterId; a variable is written .clusterId"),
        ("{{ lower }}", 4, "lower takes 1 argument, and gets 0"),
        ('{{ .x | replace "a" }}', 9, "replace takes 3 arguments, and gets 2"),
        ("{{ eq .x }}", 4, "eq takes at least 2 arguments, and gets 1"),
        ("{{ print (lower) }}", 11, "lower takes 1 argument, and gets 0"),
        ("{{ now 3 }}", 4, "now takes no argument, and gets 1"),
        ("{{ true.x }}", 8, "unexpected .x: a value has no fields here"),
        ("{{ if .x }}", 1, "if has no {{ end }}"),
        ("{{ if }}{{ end }}", 7, "a value is missing: if has none"),
        ("{{ end }}", 1, "end without if, with or range"),
        ("{{ else }}", 1, "else without if, with or range"),
        ("{{ if .x }}{{ else }}{{ else }}{{ end }}", 22, "if has two else"),
        ("{{ if .x }}{{ end .y }}", 19, "unexpected .y after end"),
        ("{{ with .x }}{{ else if .y }}{{ end }}", 25, "unexpected .y after else"),
        ("{{ break }}", 1, "break outside of range"),
        ("{{ if .x }}{{ continue }}{{ end }}", 12, "continue outside of range"),
        ('{{ define "x" }}', 4, "define is not supported: write the text where it is used"),
        ('{{ template "x" }}', 4, "template is not supported: write the text where it is used"),
        ("{{ " + "(" * 40 + " }}", 4 + MAX_PARENTHESES, f"more than {MAX_PARENTHESES} parentheses inside each other"),
    ],
)
def test_a_fault_has_its_place(template: str, column: int, message: str) -> None:
    assert faults_of(template)[0] == (1, column, message)


def test_all_faults_are_found_at_once() -> None:
    template = "{{ lowr .a }}\n{{ if .b }}\n  {{ .c- }}{{ $d }}\n{{ end }}\n{{ end }}\n{{ .e"
    assert faults_of(template) == [
        (1, 4, 'there is no function lowr, did you mean "lower"?'),
        (3, 8, "unexpected character '-' after .c"),
        (3, 15, "$d is not declared"),
        (5, 1, "end without if, with or range"),
        (6, 1, "the action is not closed: }} is missing"),
    ]


def test_a_fault_in_an_action_does_not_unbalance_its_block() -> None:
    assert len(faults_of("{{ if .a- }}x{{ else }}y{{ end }}{{ range % }}{{ end }}")) == 2


def test_the_number_of_faults_is_bounded() -> None:
    assert len(parse_text("{{" * 100_000).faults) == MAX_FAULTS
    assert len(parse_text("{{ nope }}" * 1_000).faults) == MAX_FAULTS


def test_the_size_and_the_nesting_are_bounded() -> None:
    assert faults_of("{{" + " " * MAX_SOURCE)[0][2] == f"the template has more than {MAX_SOURCE} characters"
    deep = "{{ if .x }}" * 500 + "{{ end }}" * 500
    assert faults_of(deep) == [(1, 11 * MAX_BLOCKS + 1, f"more than {MAX_BLOCKS} blocks inside each other")]
    chain = "{{ if .x }}" + "{{ else if .x }}" * 500 + "{{ end }}"
    assert "blocks inside each other" in faults_of(chain)[0][2]


@pytest.mark.parametrize(
    ("template", "column", "message"),
    [
        ("{{ .clusterID }}", 4, 'there is no clusterID, did you mean "clusterId"?'),
        ("{{ .secret.x }}", 11, "there is no x"),
        ("{{ .n.x }}", 6, "there is no x in an integer"),
        ("{{ .n | .n }}", 9, "only a function takes arguments"),
        ("{{ lower .n }}", 10, "lower takes a string here, not an integer"),
        ("{{ .n | lower }}", 9, "lower takes a string here, not an integer"),
        ('{{ date "2006" .n }}', 16, "date takes a time here, not an integer; `now` is one"),
        ("{{ range .clusterId }}{{ end }}", 10, "range cannot go through a string"),
        ("{{ index .list 1 }}", 4, "the position 1 is out of range"),
        ('{{ index .list "a" }}', 4, "a position is an integer, not a string"),
        ("{{ index .secret 1 }}", 4, "the key of a map is a string, not an integer"),
        ("{{ eq .list .list }}", 4, "a list cannot be compared"),
        ('{{ eq .n "3" }}', 4, "an integer and a string cannot be compared"),
        ("{{ lt .list 1 }}", 4, "a list and an integer have no order"),
        ("{{ len .n }}", 4, "an integer has no length"),
        ('{{ printf "%d" .clusterId }}', 4, "%d of printf cannot write a string"),
        ('{{ printf "%d" }}', 4, "printf has no value for %d"),
        ('{{ printf "x" .n .n }}', 4, "printf gets 2 values, and the layout uses 0"),
        ('{{ printf "%9999d" .n }}', 4, "a width or precision of printf is an integer from 0 to 1000"),
        ('{{ printf "%y" .n }}', 4, "printf knows no %y"),
        ('{{ slice "é" 1 }}', 4, "the part would begin or end inside a character: positions count bytes"),
        ("{{ now.Nope }}", 7, "a time has no method Nope"),
        ("{{ now.Format }}", 7, "Format takes a layout, not 0 arguments"),
        ("{{ now.Year 3 }}", 7, "Year takes no argument"),
        ("{{ .big }}", 4, "the number does not fit into 64 bits"),
    ],
)
def test_a_fault_of_the_rendering_has_its_place(template: str, column: int, message: str) -> None:
    parsed = parse_text(template).template
    assert parsed, faults_of(template)
    text, fault = parsed.render(VARIABLES, NOW)
    assert fault
    assert (text, fault.column, fault.message) == ("", column, message)


@pytest.mark.parametrize("template", ["{{ lower .secret }}", "{{ .secret.token.x }}", "{{ index .secret.token 99 }}"])
def test_a_fault_never_shows_a_value(template: str) -> None:
    parsed = parse_text(template).template
    assert parsed
    fault = parsed.render(VARIABLES, NOW).fault
    assert fault
    assert "hunter2" not in str(fault)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ('name: "{{ .a }}-{{ lowr .b }}"\n', "dns.yaml:1:20"),
        ("name: |\n  kind: Job\n  name: {{ lowr .b }}\n", "dns.yaml:3:12"),
        ("name: '{{ lowr .b }}'\n", "dns.yaml:1:11"),
        ("name: a{{ lowr .b }}\n", "dns.yaml:1:11"),
    ],
)
def test_a_fault_is_placed_in_the_file(source: str, place: str) -> None:
    document = read(source, "dns.yaml").documents[0]
    text = document.root.find("name").value.text  # type: ignore[union-attr]
    (problem,) = place_source_faults(parse_text(text).faults, Places(document), "/name", "Template")
    assert (str(problem.place), problem.code) == (place, "Template")
    assert "lowr" in problem.snippet
