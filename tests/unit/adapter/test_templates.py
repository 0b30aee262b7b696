"""Rendering: what the recorded answers of Go do not cover, and the bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from hyperfleet.adapter.templates import parse_text, variables_of
from hyperfleet.adapter.templates.budget import MAX_OUTPUT, MAX_STEPS
from hyperfleet.adapter.templates.commands import MAX_PARENTHESES
from hyperfleet.adapter.templates.parser import MAX_BLOCKS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))


def render(template: str, **variables: Any) -> str:
    parsed = parse_text(template)
    assert parsed.template, parsed.faults
    text, fault = parsed.template.render(variables, NOW)
    assert fault is None, fault
    return text


def fault_of(template: str, **variables: Any) -> str:
    parsed = parse_text(template)
    assert parsed.template, parsed.faults
    fault = parsed.template.render(variables, NOW).fault
    assert fault
    return fault.message


def test_a_text_without_actions_stays_as_it_is() -> None:
    assert render("100% }} { { $x \\n") == "100% }} { { $x \\n"


def test_now_is_an_argument_and_in_utc() -> None:
    assert render('{{ now | date "2006-01-02T15:04:05Z07:00" }}') == "2026-01-02T01:04:05Z"


def test_one_template_renders_many_times() -> None:
    template = parse_text("{{ $x := .a }}{{ $x }}").template
    assert template
    assert [template.render({"a": number}, NOW).text for number in range(3)] == ["0", "1", "2"]


def test_numbers_of_an_answer_print_whole() -> None:
    assert render("{{ .n }}/{{ .f }}", n=1_000_000, f=1_000_000.0) == "1000000/1e+06"


def test_a_missing_key_is_a_fault_also_with_default() -> None:
    assert fault_of('{{ .x | default "d" }}') == "there is no x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello world", "Hello World"),
        ("HELLO wORLD", "Hello World"),
        ("us-east-1", "Us-East-1"),
        ("o'neil example.com", "O'neil Example.com"),
        ("foo_bar", "Foo_bar"),
        ("élan", "Élan"),
        ("", ""),
    ],
)
def test_title(text: str, expected: str) -> None:
    assert render("{{ title .t }}", t=text) == expected


@pytest.mark.parametrize(
    ("template", "expected", "because"),
    [
        ("{{ range $i, $c := .l }}{{ if $i }},{{ end }}{{ $c.n }}{{ end }}", "1,2", "a list with commas"),
        ("{{ range $k, $v := .m }}{{ $k }}={{ $v }}\n{{ end }}", "a=1\nb=2\n", "a map in the order of its keys"),
        ("{{- range .l }}\n- {{ .n }}\n{{- end }}\n", "\n- 1\n- 2\n", "YAML lines"),
        ('{{ index .m "a" }}{{ (index .l 0).n }}', "11", "parentheses"),
        ('{{ if and (eq .m.a 1) (gt (len .l) 1) }}y{{ end }}', "y", "functions in functions"),
        ('{{ with (index .l 1) }}{{ .n }}{{ end }}', "2", "with parentheses"),
        ('{{ .s | upper | replace "xSx" "S" }}', "xTx", "a pipe gives the last argument"),
        ("{{ not (not .m) }}", "true", "twice"),
    ],
)  # fmt: skip
def test_what_adapters_write(template: str, expected: str, because: str) -> None:
    assert render(template, l=[{"n": 1}, {"n": 2}], m={"b": 2, "a": 1}, s="t") == expected, because


@pytest.mark.parametrize(
    "template",
    [
        "{{ range 1000000000 }}{{ end }}",
        "{{ range .l }}{{ range $.l }}{{ range $.l }}{{ end }}{{ end }}{{ end }}",
        '{{ $x := "a" }}{{ range 10000 }}{{ $x = print $x $x }}{{ end }}',
        '{{ $x := "aa" }}{{ range 10000 }}{{ $x = replace $x "a" "aaaaaaaaaa" }}{{ end }}',
        "{{ range 5000 }}{{ len $.t }}{{ end }}",
        '{{ range 5000 }}{{ contains $.t "b" }}{{ end }}',
        "{{ range 5000 }}{{ eq (print $.l) (print $.l) }}{{ end }}",
        '{{ $x := "\\"" }}{{ range 10000 }}{{ $x = quote $x }}{{ end }}',
    ],
)
def test_the_work_is_bounded(template: str) -> None:
    message = fault_of(template, l=list(range(200)), t="a" * 500_000)
    assert message in (
        f"the template takes more than {MAX_STEPS} steps",
        f"a text would have more than {MAX_OUTPUT} characters",
    )


def test_the_output_is_bounded_in_bytes() -> None:
    assert len(render("{{ .t }}{{ .t }}", t="é" * (MAX_OUTPUT // 4)).encode()) == MAX_OUTPUT
    assert fault_of("{{ .t }}{{ .t }}x", t="é" * (MAX_OUTPUT // 4)) == f"the result has more than {MAX_OUTPUT} bytes"


def test_the_deepest_template_renders() -> None:
    operand = "(print " * MAX_PARENTHESES + ".x" + ")" * MAX_PARENTHESES
    blocks = "{{ range .l }}{{ with $ }}" * (MAX_BLOCKS // 2)
    assert render(f"{blocks}{{{{ {operand} }}}}" + "{{ end }}" * MAX_BLOCKS, x=1, l=[0]) == "1"


def test_a_deep_value_is_a_fault() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert fault_of("{{ .d }}", d=deep) == "the value has more than 64 levels"


@pytest.mark.parametrize(
    ("template", "expected", "because"),
    [
        ("{{ .a }} {{ .b.c }}", ".a .b .b.c", "paths with what they go through"),
        ("{{ .a | lower | printf .b }}", ".a .b", "pipes"),
        ("{{ if .a }}{{ .b }}{{ else if eq .c 1 }}{{ .d }}{{ else }}{{ .e }}{{ end }}", ".a .b .c .d .e", "blocks"),
        ("{{ with .a }}{{ .b }}{{ else }}{{ .c }}{{ end }}", ".a .a.b .c", "with moves the dot, else does not"),
        ("{{ range .a }}{{ .b }}{{ else }}{{ .c }}{{ end }}", ".a .a.*.b .c", "range moves the dot"),
        ("{{ range $k, $v := .a }}{{ $v.b }}{{ $k.c }}{{ end }}", ".a .a.*.b", "a position has no fields"),
        ("{{ range .a }}{{ $.b }}{{ end }}", ".a .b", "the root"),
        ("{{ $x := .a }}{{ $x.b }}", ".a .a.b", "variables"),
        ("{{ $x := .a }}{{ if .c }}{{ $x := .b }}{{ $x.d }}{{ end }}{{ $x.e }}", ".a .c .b .b.d .a.e", "scopes"),
        ("{{ $x := .a }}{{ range .l }}{{ $x.b }}{{ $x = $.c }}{{ end }}", ".a .l .a.b .c.b .c", "a loop"),
        ("{{ (.a).b }}", ".a .a.b", "parentheses"),
        ('{{ index .a "b" "c" }}', ".a .a.b .a.b.c", "names given to index"),
        ("{{ (index .a 0).b }}", ".a .a.* .a.*.b", "positions given to index"),
        ("{{ (default .a .b).c }}", ".a .b", "after a function the origin is not known"),
        ("{{ now.UTC }}", "", "methods of times are no variables"),
        ("{{/* .a */}}{{ \".b\" }} .c", "", "comments, strings and text"),
        ("{{ .a }}{{ .a }}", ".a", "once"),
    ],
)  # fmt: skip
def test_the_variables_that_a_template_reads(template: str, expected: str, because: str) -> None:
    parsed = parse_text(template).template
    assert parsed, parse_text(template).faults
    assert " ".join(map(str, variables_of(parsed))) == expected, because


def test_a_variable_has_its_place() -> None:
    template = parse_text("x {{ .a.b }}").template
    assert template
    assert [(use.path, template.source[use.offset :][:2]) for use in variables_of(template)] == [
        (("a",), ".a"),
        (("a", "b"), ".b"),
    ]


def test_the_scan_for_variables_is_bounded() -> None:
    grow = parse_text("{{ $x := . }}" + "{{ $x = $x.a }}" * 4_000 + "{{ $x.b }}").template
    deep = parse_text("{{ $x0 := . }}" + "".join(f"{{{{ $x{n + 1} := $x{n}.a }}}}" for n in range(4_000))).template
    assert grow
    assert deep
    assert len(variables_of(grow)) < 100
    assert len(variables_of(deep)) < 100


def test_utc_stays_utc() -> None:
    template = parse_text("{{ now.Hour }}").template
    assert template
    assert template.render({}, datetime(2026, 1, 2, 23, tzinfo=UTC)).text == "23"
