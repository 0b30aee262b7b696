"""Manifests: written and read unchanged, whatever a spec contains; answers of the server are manifests, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.cli.manifests import parse_manifests, read_manifests, write_manifest
from hyperfleet.cli.output.documents import write_json, write_yaml
from hyperfleet.cli.resources import CLUSTER, NODE_POOL
from hyperfleet.errors import DocumentError
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal

# Texts that YAML might take for something else, and what people really write.
TRICKY = [
    "",
    " ",
    "~",
    "null",
    "yes",
    "on",
    "No",
    "1",
    "1_000",
    "0777",
    "0o17",
    "0x1F",
    "1e3",
    ".5",
    "-",
    "- a",
    "a: b",
]
TRICKY += [
    "2025-10-17",
    "12:30",
    "=",
    "<<",
    "&a",
    "*a",
    "!x",
    "%",
    "@",
    "`",
    "'",
    '"',
    "#",
    "a #b",
    "\n",
    "a\nb",
    "\ta",
    "é",
]
TRICKY += [
    "true",
    "False",
    "---",
    "...",
    "1.0",
    "+1",
    ".inf",
    "NaN",
    "a\x85b",
    "\u2028",
    "\x7f",
    "\ufeff",
    "x" * 200,
    "{",
    "]",
]
TEXTS = st.one_of(st.sampled_from(TRICKY), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e300, 1e300), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)


@pytest.mark.parametrize("text", TRICKY)
@pytest.mark.parametrize("write", [write_yaml, write_json])
def test_a_text_stays_a_text(text: str, write: Any) -> None:
    document = write_manifest(CLUSTER, "payments", {"value": text, "list": [text], text: 1}, {})
    manifests, problems = parse_manifests(write(document), "test")
    assert problems == []
    assert manifests[0].spec == {"value": text, "list": [text], text: 1}


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_is_what_is_read(spec: dict[str, Any]) -> None:
    manifests, problems = parse_manifests(write_yaml(write_manifest(CLUSTER, "payments", spec, {})), "test")
    assert problems == []
    assert manifests[0].spec == spec


@given(st.text(max_size=60))
def test_any_text_is_parsed_without_a_crash(text: str) -> None:
    parse_manifests(text, "test")


@pytest.mark.parametrize("format_", ["yaml", "json"])
@pytest.mark.parametrize("kind", ["clusters", "nodepools", "clusters,nodepools"])
def test_an_answer_of_the_server_is_a_manifest(
    terminal: Terminal, scene: Scene, tmp_path: Path, kind: str, format_: str
) -> None:
    file = tmp_path / f"told.{format_}"
    file.write_text(terminal.run("get", kind, "-o", format_).out)
    done = terminal.run("apply", "-f", str(file))
    assert (done.code, done.err) == (0, "")
    assert {line.rpartition(" ")[2] for line in done.out.splitlines()} == {"unchanged"}
    assert len(done.out.splitlines()) == sum({"clusters": 4, "nodepools": 4}[each] for each in kind.split(","))


def test_errors_in_an_answer_of_the_server_have_positions(tmp_path: Path) -> None:
    file = tmp_path / "told.yaml"
    file.write_text("type: Cluster\nid: cls-1\nname: Bad_Name\nmetadata:\n  labels: {a: 'b!'}\nspec: {}\n")
    with pytest.raises(DocumentError) as raised:
        read_manifests([str(file)])
    assert [(problem.place.line, problem.place.column) for problem in raised.value.problems] == [(3, 7), (5, 15)]


def test_clusters_come_before_their_node_pools(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: NodePool\nclusterName: c\nmetadata: {name: p}\nspec: {}\n")
    (tmp_path / "b.yml").write_text("kind: Cluster\nmetadata: {name: c}\nspec: {}\n---\n")
    assert [each.noun for each in read_manifests([str(tmp_path)])] == [CLUSTER, NODE_POOL]


def test_a_whole_fleet_fits_in_a_file(tmp_path: Path) -> None:
    one = "kind: Cluster\nmetadata: {{name: c{number}}}\nspec: {{region: eu-west-1, note: {note}}}\n---\n"
    file = tmp_path / "fleet.yaml"
    file.write_text("".join(one.format(number=number, note="x" * 1000) for number in range(400)))
    assert len(read_manifests([str(file)])) == 400
