"""docs/expr.md says nothing that is not so: every example runs, every built-in has one, every figure is current.

Three notations, explained on the page: lines `expression // → result` (or `// ✗ error`) in blocks `expr`, the same in
blocks `rule` for the rules of a policy, and `expression` → `result` in running text and tables. Besides these, `python`
blocks are doctests and `console` blocks are commands with their output.
"""

from __future__ import annotations

import doctest
import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from hyperfleet import expr
from hyperfleet.aggregation.loading.policy_loader import check_policies, load_policies
from hyperfleet.aggregation.vocabulary import ADAPTER, CONDITION, SCHEMA
from hyperfleet.cli import command
from hyperfleet.errors import ExprError
from hyperfleet.expr.nodes import Builtin, walk
from hyperfleet.expr.options import DEFAULT
from hyperfleet.expr.runtime.budget import open_budget
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import type_name
from hyperfleet.expr.signatures import BUILTINS, METHODS
from hyperfleet.expr.syntax.lexer import tokenize
from hyperfleet.expr.syntax.precedence import BINARY, UNARY
from hyperfleet.expr.types import infer_schema
from hyperfleet.model.resource import Resource
from tests.conformance import expr as conformance
from tests.conformance.expr_excused import EXCUSED
from tests.world import START, World, make_report

PAGE = (Path(__file__).parents[2] / "docs" / "expr.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"\s*// (→|✗) ")
CODE = r"(`{1,2})((?:(?!\%d).)+)\%d"
INLINE = re.compile(rf"(?<!`){CODE % (1, 1)} (→|✗) {CODE % (4, 4)}")
OPTIONS = expr.ExprOptions(clock=lambda: datetime(2026, 8, 21, 12, tzinfo=UTC))


class Example(NamedTuple):
    """An expression and what the page says of it: its value, spelled as an expression, or an error."""

    source: str
    outcome: str
    fails: bool


def blocks(kind: str) -> list[str]:
    return [text for found, text in FENCE.findall(PAGE) if found == kind]


def read_lines(block: str) -> Iterator[Example]:
    """Yield the examples of a block; lines without an outcome go on in the next."""
    begun = ""
    for line in block.splitlines():
        source, *rest = MARK.split(line)
        begun = f"{begun}\n{source}".lstrip("\n")
        if rest:
            yield Example(begun, rest[1], rest[0] == "✗")
            begun = ""
    assert not begun.strip(), f"no outcome is given for {begun}"


def read_inline() -> Iterator[Example]:
    """Yield the examples of running text; in tables a bar is escaped."""
    for _, source, mark, _, outcome in INLINE.findall(FENCE.sub("", PAGE)):
        yield Example(source.replace("\\|", "|"), outcome.replace("\\|", "|"), mark == "✗")


EXAMPLES = [*(example for block in blocks("expr") for example in read_lines(block)), *read_inline()]
RULES = [example for block in blocks("rule") for example in read_lines(block)]
DATA: dict[str, Any] = json.loads(blocks("json")[0])


def value_of(source: str) -> Any:
    return expr.compile(source, infer_schema(DATA), options=OPTIONS).evaluate(DATA)


def spell(value: Any) -> object:
    """Return a value in a form that tells 1 from 1.0 and true, at any depth."""
    if isinstance(value, list):
        return [spell(item) for item in value]
    if isinstance(value, dict):
        return {key: spell(item) for key, item in value.items()}
    return type_name(value), show(value, open_budget())


def by_source(example: Example) -> str:
    return example.source


@pytest.mark.parametrize("example", EXAMPLES, ids=by_source)
def test_an_expression_gives_what_the_page_says(example: Example) -> None:
    if not example.fails:
        assert spell(value_of(example.source)) == spell(value_of(example.outcome))
        return
    with pytest.raises(ExprError) as caught:
        value_of(example.source)
    assert str(caught.value).splitlines()[0] == example.outcome


def test_every_link_on_the_page_leads_somewhere() -> None:
    headings = re.findall(r"^##+ (.+)$", FENCE.sub("", PAGE), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert sorted(set(re.findall(r"\]\(#([^)]+)\)", PAGE)) - anchors) == []


def test_python_examples_run() -> None:
    session = doctest.DocTestParser().get_doctest("\n".join(blocks("python")), {}, "expr.md", None, 0)
    report: list[str] = []
    failed, attempted = doctest.DocTestRunner().run(session, out=report.append)
    assert not failed, "".join(report)
    assert attempted > 40


def commands() -> Iterator[tuple[str, str]]:
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield line, output


@pytest.mark.parametrize(("line", "output"), list(commands()))
def test_commands_print_what_the_page_says(
    line: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.json").write_text(json.dumps(DATA), encoding="utf-8")
    program, *arguments = shlex.split(line)
    assert program == "hyperfleet"
    assert CliRunner().invoke(command, arguments).output == output


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table with this header, row by row."""
    _, _, rest = PAGE.partition(f"\n{header}\n")
    assert rest, f"no table {header}"
    lines = rest.split("\n\n", 1)[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines]


ADAPTERS = rows("| adapter | listed as | Available | Applied | Health | generation | minutes ago |")


def policy_with(source: str) -> str:
    """Write a policy with one rule, for the adapters of the page's table."""
    listed = {kind: [row[0] for row in ADAPTERS if row[1] == kind] for kind in ("required", "optional")}
    rule = {"type": "Example", "evaluate": {"expr": source}}
    document = {
        "requiredAdapters": listed["required"],
        "optionalAdapters": listed["optional"],
        "clusterConditions": [rule],
    }
    return json.dumps(document)


def status_of_rule(source: str) -> str:
    """Let the adapters say what the page's table says, and return what a policy with this rule makes of it."""
    resource = Resource("cls-1", "Cluster", "one", 2, START, START)
    world = World(load_policies(policy_with(source)).select(resource), resource=resource)
    now = START + timedelta(hours=1)
    reported = [row for row in ADAPTERS if row[6] != "-"]
    for name, _, available, applied, health, generation, minutes in sorted(reported, key=lambda row: -int(row[6])):
        world.set_clock(now - timedelta(minutes=int(minutes)))
        world.report(make_report(name, available, applied=applied, health=health, generation=int(generation)))
    world.set_clock(now)
    return next(condition.status for condition in world.write().conditions if condition.type == "Example")


@pytest.mark.parametrize("example", RULES, ids=by_source)
def test_a_rule_gives_what_the_page_says(example: Example) -> None:
    problems = [problem for problem in check_policies(policy_with(example.source)).problems if problem.level == "error"]
    if example.fails:
        assert [problem.message for problem in problems] == [example.outcome]
    else:
        assert problems == []
        assert status_of_rule(example.source) == example.outcome.capitalize()


def test_every_name_of_a_policys_rules_is_on_the_page() -> None:
    section = PAGE[PAGE.index("## Rules of a policy") : PAGE.index("## Embedding")]
    names = {*SCHEMA, *ADAPTER.fields, *CONDITION.fields}
    assert sorted(name for name in names if not re.search(rf"`{name}\b", section)) == []


def test_every_builtin_has_an_example_that_succeeds() -> None:
    trees = [expr.parse(example.source, infer_schema(DATA)) for example in EXAMPLES if not example.fails]
    used = {node.name for tree in trees for node in walk(tree) if isinstance(node, Builtin)}
    assert len(BUILTINS) == 71
    assert sorted(BUILTINS - used) == []


def test_every_builtin_has_its_row() -> None:
    listed = set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))
    assert sorted(BUILTINS - listed) == []


def test_every_operator_has_an_example_that_succeeds() -> None:
    tokens = [token for example in EXAMPLES if not example.fails for token in tokenize(example.source)]
    used = {token.value for token in tokens if token.kind == "Operator"}
    assert sorted({*BINARY, *UNARY} - used) == []


def test_every_method_is_on_the_page() -> None:
    section = PAGE[PAGE.index("### Methods") : PAGE.index("## Traps")]
    names = {name for methods in METHODS.values() for name in methods}
    assert sorted(name for name in names if f"`{name}(" not in section) == []


def test_the_limits_are_those_in_force() -> None:
    stated = {row[0].strip("`"): row[1] for row in rows("| option | default | what it bounds | beyond it |")}
    assert list(stated) == list(expr.ExprOptions.__slots__)
    for name in ("length", "nodes", "nesting", "memory", "work"):
        assert stated[name] == f"{getattr(DEFAULT, name):,}"


def test_excused_cases_are_counted_by_group() -> None:
    stated = [int(count) for count, _ in rows("| cases | excused because |")]
    assert stated == [len(cases) for cases in EXCUSED.values()]


def test_the_conformance_table_is_about_all_sets() -> None:
    assert [row[0] for row in conformance_rows()] == list(conformance.SETS)
    assert [row[0].strip("`") for row in rows("| set | what it is |")][:-1] == list(conformance.SETS[:-2])


@pytest.mark.parametrize(
    "sets",
    [
        conformance.OWN_SETS,
        pytest.param(
            conformance.SHARED_SETS,
            marks=pytest.mark.skipif(not conformance.DATA.exists(), reason=conformance.MISSING),
        ),
    ],
)
def test_the_conformance_table_is_current(sets: tuple[str, ...]) -> None:
    totals = dict.fromkeys(conformance.SETS, 0)
    excused = dict.fromkeys(conformance.SETS, 0)
    for case in conformance.load_cases():
        totals[case["set"]] += 1
        excused[case["set"]] += conformance.excuse(case) is not None
    assert f"{sum(int(row[1]) for row in conformance_rows()):,} expressions" in PAGE
    for name, total, passed, failed, left_out, share in conformance_rows():
        if name not in sets:
            continue
        assert (int(total), int(left_out)) == (totals[name], excused[name])
        assert int(passed) + int(failed) + int(left_out) == int(total)
        assert share == f"{100 * int(passed) / (int(total) - int(left_out)):.2f}"


def conformance_rows() -> list[list[str]]:
    """Return the lines of the printed table, without its head."""
    (table,) = blocks("text")
    return [line.split() for line in table.splitlines()[2:]]
