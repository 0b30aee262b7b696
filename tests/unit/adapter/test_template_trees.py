"""Manifests: every text is rendered by itself, and a value cannot leave its leaf."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hyperfleet.adapter.templates import parse_text, parse_tree, place_tree_faults, render_tree, render_yaml
from hyperfleet.adapter.templates.trees import MAX_LEVELS
from hyperfleet.documents import Places, read
from hyperfleet.documents.nodes import to_plain

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOSTILE = "a\"b': {c}\n- d: &x *y #z\n---\n{{ .other }}"


def render(structure: object, **variables: Any) -> Any:
    parsed = parse_tree(structure)
    assert parsed.tree, parsed.faults
    value, fault = parsed.tree.render(variables, NOW)
    assert fault is None, fault
    return value


def test_texts_and_keys_are_rendered_and_the_rest_stays() -> None:
    manifest = {
        "kind": "Job",
        "metadata": {"name": "{{ .id }}-job", "labels": {"{{ .key }}": "v", "b": "{{ .id }}"}},
        "spec": {"replicas": 3, "on": True, "none": None, "args": ["-x", "{{ .id }}", 1.5]},
    }
    assert render(manifest, id="c1", key="k") == {
        "kind": "Job",
        "metadata": {"name": "c1-job", "labels": {"k": "v", "b": "c1"}},
        "spec": {"replicas": 3, "on": True, "none": None, "args": ["-x", "c1", 1.5]},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, "3"), (True, "true"), ("3", "3"), ("null", "null"), ("", ""), (1_000_000, "1000000"), (None, "<no value>")],
)
def test_a_leaf_is_always_a_string(value: object, expected: str) -> None:
    assert render({"a": "{{ .v }}"}, v=value) == {"a": expected}


def test_a_value_cannot_alter_the_structure() -> None:
    manifest = {"a": "{{ .v }}", "b": ["x{{ .v }}y"], "{{ .v }}": 1}
    assert render(manifest, v=HOSTILE) == {"a": HOSTILE, "b": [f"x{HOSTILE}y"], HOSTILE: 1}


def test_a_tree_is_not_changed_by_rendering() -> None:
    manifest = {"a": ["{{ .v }}"], "b": {"c": 1}}
    tree = parse_tree(manifest).tree
    assert tree
    first = tree.render({"v": 1}, NOW).value
    first["b"]["c"] = 2
    first["a"].append("x")
    assert tree.render({"v": 2}, NOW).value == {"a": ["2"], "b": {"c": 1}}
    assert manifest == {"a": ["{{ .v }}"], "b": {"c": 1}}


def test_every_fault_of_a_tree_is_found_with_its_pointer() -> None:
    faults = parse_tree({"a": "{{ nope }}", "b/c": ["x", "{{ .y "], "{{ % }}": "{{ end }}"}).faults
    assert [(each.pointer, each.fault.column, each.is_key) for each in faults] == [
        ("/a", 4, False),
        ("/b~1c/1", 1, False),
        ("/{{ % }}", 4, True),
        ("/{{ % }}", 1, False),
    ]


def test_the_faults_of_a_tree_are_placed_in_the_file() -> None:
    source = 'resources:\n- manifest:\n    kind: Job\n    "{{ % }}": x\n    list: ["a", "b {{ nope }}"]\n'
    document = read(source, "dns.yaml").documents[0]
    structure = to_plain(document.root)
    assert isinstance(structure, dict)
    faults = parse_tree(structure["resources"][0]["manifest"]).faults
    problems = place_tree_faults(faults, Places(document), "/resources/0/manifest")
    assert [(str(each.place), each.code) for each in problems] == [
        ("dns.yaml:4:5", "Template"),
        ("dns.yaml:5:23", "Template"),
    ]


def test_a_structure_is_parsed_and_rendered_at_once() -> None:
    assert render_tree({"a": "{{ .x }}"}, {"x": 1}, NOW).value == {"a": "1"}
    fault = render_tree(["{{ nope }}"], {}, NOW).fault
    assert fault
    assert fault.pointer == "/0"


def test_a_fault_of_the_rendering_has_its_pointer() -> None:
    tree = parse_tree({"a": [{"b": "{{ .missing }}"}]}).tree
    assert tree
    value, fault = tree.render({}, NOW)
    assert value is None
    assert fault
    assert (fault.pointer, fault.fault.column, fault.fault.message) == ("/a/0/b", 4, "there is no missing")


def test_two_keys_with_one_name_are_a_fault() -> None:
    tree = parse_tree({"{{ .a }}": 1, "{{ .b }}": 2}).tree
    assert tree
    fault = tree.render({"a": "x", "b": "x"}, NOW).fault
    assert fault
    assert (fault.pointer, fault.is_key) == ("/{{ .b }}", True)


def test_the_levels_are_bounded() -> None:
    deep: Any = "{{ .x }}"
    for _ in range(MAX_LEVELS + 1):
        deep = [deep]
    (fault,) = parse_tree(deep).faults
    assert fault.fault.message == f"more than {MAX_LEVELS} levels"


def test_the_variables_of_a_tree_have_their_pointers() -> None:
    tree = parse_tree({"a": "{{ .x }}", "{{ .k }}": ["{{ .y.z }}"], "n": 1}).tree
    assert tree
    assert [(each.pointer, str(each.use)) for each in tree.variables()] == [
        ("/a", ".x"),
        ("/{{ .k }}", ".k"),
        ("/{{ .k }}/0", ".y"),
        ("/{{ .k }}/0", ".y.z"),
    ]


def render_text(text: str, **variables: Any) -> Any:
    template = parse_text(text).template
    assert template
    return render_yaml(template, variables, NOW)


def test_a_text_manifest_that_takes_long_to_read_is_refused() -> None:
    fault = render_text("a: {{ .v }}", v="x" * 300_000).fault
    assert fault
    assert "the rendered text is not a manifest" in fault.fault.message


def test_a_text_manifest_is_rendered_and_then_read_as_yaml() -> None:
    text = "kind: Job\nspec:\n  replicas: {{ .n }}\n{{- range .l }}\n  {{ . }}: true\n{{- end }}\n"
    assert render_text(text, n=3, l=["a", "b"]).value == {"kind": "Job", "spec": {"replicas": 3, "a": True, "b": True}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {{ .v }}", "line 1, column 5: this is not valid YAML"),
        ("{{ if false }}a: 1{{ end }}", "it holds 0 documents; one is wanted"),
        ("a: 1\n---\nb: {{ .n }}", "it holds 2 documents; one is wanted"),
        ("- {{ .n }}", "it is no object with fields"),
        ("{}{{/**/}}", "it is no object with fields"),
        ("{{ .missing }}", "there is no missing"),
    ],
)
def test_a_text_that_is_no_manifest_is_a_fault(text: str, message: str) -> None:
    value, fault = render_text(text, v="x: y: hunter2", n=1)
    assert value is None
    assert fault
    assert message in fault.fault.message
    assert "hunter2" not in str(fault)
