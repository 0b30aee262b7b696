"""Laws of the texts in adapter files: no input crashes anything, and every fault has a place in its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from hyperfleet.adapter.dialect import choose_language, parse_dialect
from hyperfleet.adapter.faults import SourceFault
from hyperfleet.adapter.field_paths import parse_field
from hyperfleet.adapter.operators import OPERATORS, apply_operator, check_operator
from hyperfleet.adapter.templates import parse_text, parse_tree, render_yaml, variables_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMES = ["a", "b", "c", "type"]

any_text = st.text(max_size=6) | st.text(alphabet=st.characters(categories=["Cs", "Cc", "Zs", "L"]), max_size=3)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.sampled_from(["a", "x y", "3"])
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | any_text, inner, max_size=4),
    max_leaves=12,
)
variables = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=4)


def texts(*fragments: str) -> st.SearchStrategy[str]:
    """Write texts of fragments, with anything between them."""
    return st.lists(st.sampled_from(fragments) | any_text, max_size=14).map("".join)


template_texts = texts(
    "{{ ", " }}", "{{- ", " -}}", "{{", "}}", ".a", ".b.c", "$", "$x", "$x := ", "$x = ", "$i, $x := ", "if ", "else",
    "else if ", "end", "range ", "with ", "break", "continue", " | ", "(", ")", '"s"', "`r`", "'c'", "3", "-1.5",
    "0x1f", "1e9", "nil", "true", "eq ", "lt ", "and ", "or ", "not ", "index ", "slice ", "len ", "print ",
    "printf ", '"%d %s %v %5.2f%%" ', "html ", "urlquery ", "now", ".Format ", "date ", "lower ", "title ", "trim ",
    "replace ", "contains ", "quote ", "default ", "int ", "float ", "string ", "/*", "*/", "\n", " ", "{{ end }}",
    "{{ if .a }}", "{{ range .a }}", "{{ with $x := .b }}", "{{ else }}", "{{ . }}", "{{ .a }}",
)  # fmt: skip


def well_formed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Write blocks around templates."""
    operand = st.sampled_from(
        [".a", ".b", ".a.b", "$", "$.c", ".", "3", '"a"', "(len .a)", '(index . "b")', "(or .a .c)"]
    )
    shape = st.sampled_from(
        [
            "{{{{ if {0} }}}}{1}{{{{ else }}}}{2}{{{{ end }}}}", "{{{{ range {0} }}}}{1}{{{{ else }}}}{2}{{{{ end }}}}",
            "{{{{ with {0} }}}}{1}{{{{ end }}}}{2}", "{{{{ range $k, $v := {0} }}}}{1}{{{{ $v }}}}{{{{ end }}}}{2}",
            "{{{{ $x := {0} }}}}{1}{{{{ $x }}}}{2}", "{{{{ {0} | print }}}}{1}{2}", "{1}{{{{ printf \"%v\" {0} }}}}{2}",
        ]
    )  # fmt: skip
    return st.tuples(shape, operand, inner, inner).map(lambda parts: parts[0].format(*parts[1:]))


good_templates = st.recursive(
    st.sampled_from(["", "x", "{{ .a }}", "{{ .b.c }}", "{{ $.c }}"]), well_formed, max_leaves=6
)


def is_placed(fault: SourceFault, source: str) -> bool:
    """Tell whether a fault has a text for people and lies in its source, and can be printed."""
    lines = source.split("\n")
    (fault.message + fault.snippet).encode()
    return bool(fault.message) and 0 < fault.line <= len(lines) and 0 < fault.column <= len(lines[fault.line - 1]) + 1


class Recorder(Mapping[str, Any]):
    """Variables that remember which were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@given(template_texts | good_templates, variables)
@example("{{ \ud800", {})
@example("{{ .a }}", {"a": "\ud800"})
@example("{{ quote .a }}{{ urlquery .a }}{{ len .a }}{{ title .a }}", {"a": "\ud800"})
def test_no_template_crashes(source: str, values: dict[str, Any]) -> None:
    template, faults = parse_text(source)
    assert (template is None) == bool(faults)
    assert all(is_placed(fault, source) for fault in faults)
    if template:
        variables_of(template)
        text, fault = template.render(values, NOW)
        assert fault is None or (text == "" and is_placed(fault, source))
        render_yaml(template, values, NOW)


@given(good_templates, variables)
def test_nothing_is_read_that_the_scan_does_not_find(source: str, values: dict[str, Any]) -> None:
    template = parse_text(source).template
    assert template
    recorder = Recorder(values)
    template.render(recorder, NOW)
    assert recorder.read <= {use.path[0] for use in variables_of(template)}


@given(json_values, st.text(max_size=20))
def test_a_value_stays_in_its_leaf(structure: Any, value: str) -> None:
    def spread(part: Any, leaf: str) -> Any:
        """Put a leaf in the place of every text."""
        if isinstance(part, dict):
            return {key: spread(item, leaf) for key, item in part.items() if "{{" not in key}
        if isinstance(part, list):
            return [spread(item, leaf) for item in part]
        return leaf if isinstance(part, str) else part

    tree = parse_tree(spread(structure, "{{ .v }}")).tree
    assert tree
    rendered, fault = tree.render({"v": value}, NOW)
    assert fault is None
    assert repr(rendered) == repr(spread(structure, value))  # as repr, since nan is not equal to itself


dialect_texts = texts(
    "a", "b", ".c", "?.c", "[", "]", "[0]", "['a']", "[?(", ")]", "[?(@.type=='a')]", "@", "@.a", " ?? ", " == ",
    " != ", " < ", ">=", " && ", " || ", "!", "-", " ? ", " : ", "(", ")", "nil", "true", "1", "2.5", "'s'", '"t"',
    "'", "\n", " ", "{", "in", "size(",
)  # fmt: skip


@given(dialect_texts, variables)
@example("a[?(@.b)].c ?? 'x'", {"a": [{"b": None}, 3, {"b": 1, "c": "\ud800"}]})
def test_no_expression_of_the_dialect_crashes(source: str, values: dict[str, Any]) -> None:
    choose_language(source, is_contract_block=True)
    program, faults = parse_dialect(source)
    assert (program is None) == bool(faults)
    assert all(is_placed(fault, source) for fault in faults)
    if program:
        program.paths()
        fault = program.evaluate(values).fault
        assert fault is None or is_placed(fault, source)


field_texts = texts(
    "{", "}", ".a", "a", ".b", "..", ".*", "[*]", "[0]", "[-1]", "[1:]", "[::2]", "['a']", "['a','b']",
    "[?(@.a=='x')]", "[?(@.b>1)]", "[?(", ")]", "@", "$", "==", "<", "'s'", "1", "\\", "\n", " ",
)  # fmt: skip


@given(field_texts, json_values)
def test_no_field_path_crashes(source: str, data: Any) -> None:
    path, faults = parse_field(source)
    assert (path is None) == bool(faults)
    assert all(is_placed(fault, source) for fault in faults)
    if path:
        found = path.find(data)
        assert found.value is None or not found.missing
        assert isinstance(path.first_name, str)


@given(st.sampled_from(OPERATORS) | any_text, json_values, json_values)
def test_no_operator_crashes(name: str, field: Any, value: Any) -> None:
    outcome = apply_operator(name, field, value)
    assert not (outcome.is_met and outcome.failure)
    assert isinstance(check_operator(name, value, has_value=True), str)
