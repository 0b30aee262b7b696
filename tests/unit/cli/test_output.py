"""The parts of output: ages, tables, trees, paths, sorting, colours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperfleet.cli.output.ages import format_age, format_length
from hyperfleet.cli.output.formats import parse_format
from hyperfleet.cli.output.jsonpath import PathError, compile_path, compile_template
from hyperfleet.cli.output.outline import OutlineItem, write_outline
from hyperfleet.cli.output.table import Column, Look, RunningTable, cut, width_of, write_table
from hyperfleet.cli.output.tree import TreeNode, write_tree
from hyperfleet.cli.session import wants_colour

NOW = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (186, "3m6s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (731 * 86400, "2y1d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages_get_coarser(seconds: int, text: str) -> None:
    assert format_length(timedelta(seconds=seconds)) == text
    assert format_age(NOW - timedelta(seconds=seconds), NOW) == text


def test_unknown_and_invalid_ages() -> None:
    assert format_age(None, NOW) == "<unknown>"
    assert format_age("soon", NOW) == "<unknown>"
    assert format_age("2025-10-17T11:59:00Z", NOW) == "60s"
    assert format_age(NOW + timedelta(seconds=1), NOW) == "0s", "clocks are never quite the same"
    assert format_age(NOW + timedelta(minutes=1), NOW) == "<invalid>"


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = (
    Column("NAME"),
    Column("PHASE", is_coloured=True),
    Column("ID", is_wide=True),
    Column("MESSAGE", is_elastic=True),
)
ROW = ("payments", "Failed", "cls-1", "a message that is quite long")


def test_columns_are_as_wide_as_their_cells() -> None:
    assert write_table(COLUMNS, [ROW, ("x", "Ready", "cls-2", "")], Look()) == [
        "NAME       PHASE    MESSAGE",
        "payments   Failed   a message that is quite long",
        "x          Ready    <none>",
    ]


def test_wide_shows_more_and_headers_can_be_left_out() -> None:
    (line,) = write_table(COLUMNS, [ROW], Look(is_wide=True, has_headers=False))
    assert line == "payments   Failed   cls-1   a message that is quite long"


def test_a_window_cuts_the_last_column_and_has_colours() -> None:
    line = write_table(COLUMNS, [ROW], Look(has_colour=True, width=42))[1]
    assert line == "payments   \x1b[31mFailed\x1b[0m   a message that is qui…"


def test_texts_cannot_move_the_cursor() -> None:
    (line,) = write_table([Column("A")], [("a\x1b[31mb\nc",)], Look(has_headers=False))
    assert line == "a [31mb c"


def test_wide_characters_count_twice() -> None:
    assert (width_of("漢字"), width_of("e\u0301")) == (4, 1)
    assert cut("漢字漢字", 5) == "漢字…"
    lines = write_table([Column("A"), Column("B")], [("漢字", "x"), ("ab", "y")], Look(has_headers=False))
    assert lines == ["漢字   x", "ab     y"]


def test_a_running_table_keeps_its_columns() -> None:
    table = RunningTable([Column("A"), Column("B")], Look())
    assert table.add([("long", "1")]) == ["A      B", "long   1"]
    assert table.add([("s", "2")]) == ["s      2"]
    assert table.add([]) == []


# ── trees ────────────────────────────────────────────────────────────────────────────────────────────────────────


TREE = TreeNode(
    "a",
    ("Failed", "first\nsecond"),
    [
        TreeNode("b", ("Ready", "one two three four five six seven eight")),
        TreeNode("c", ("", "* a point that is longer than the window is")),
    ],
)
TREE_COLUMNS = (Column("N"), Column("S"), Column("M"))


def test_long_messages_are_wrapped_below_the_tree_lines() -> None:
    assert write_tree(TREE_COLUMNS, TREE, Look(width=43)) == [
        "N    S       M",
        "a    Failed  first",
        "│            second",
        "├─b  Ready   one two three four five six",
        "│            seven eight",
        "└─c          * a point that is longer than",
        "               the window is",
    ]


def test_in_a_narrow_window_messages_are_below() -> None:
    assert write_tree(TREE_COLUMNS, TREE, Look(width=34)) == [
        "N    S",
        "a    Failed",
        "│ first",
        "│ second",
        "├─b  Ready",
        "│   one two three four five six",
        "│   seven eight",
        "└─c",
        "    * a point that is longer than",
        "      the window is",
    ]


def test_outlines() -> None:
    root = OutlineItem("a", [OutlineItem("b", [OutlineItem("c")]), OutlineItem("d\n  e")])
    assert list(write_outline(root)) == ["a", "├─ b", "│  └─ c", "└─ d e"]


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────

DOCUMENT: dict[str, Any] = {
    "name": "x",
    "labels": {"app.kubernetes.io/name": "n", "a": "1"},
    "items": [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3}],
    "nothing": None,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".name", ["x"]),
        ("name", ["x"]),
        ("{.name}", ["x"]),
        ("$.name", ["x"]),
        (".missing.deep", []),
        (".items[*].n", [1, 2, 3]),
        (".items[0].n", [1]),
        (".items[-1].n", [3]),
        (".items[7].n", []),
        (".items[0,2].n", [1, 3]),
        (".items[0:2].n", [1, 2]),
        (".items[::2].n", [1, 3]),
        (".items[?(@.t=='b')].n", [2]),
        ('.items[?(@.t == "b")].n', [2]),
        (".items[?(@.n>=2)].n", [2, 3]),
        (".items[?(@.n!=2)].n", [1, 3]),
        (".items[?(@.t)].n", [1, 2]),
        (".items[?(@.t>1)].n", []),
        ("..t", ["a", "b"]),
        (r".labels.app\.kubernetes\.io/name", ["n"]),
        (".labels['app.kubernetes.io/name']", ["n"]),
        (".labels['a','app.kubernetes.io/name']", ["1", "n"]),
        (".labels.*", ["n", "1"]),
        (".nothing", [None]),
        ("", [DOCUMENT]),
        (".", [DOCUMENT]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert compile_path(path)(DOCUMENT) == found


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.name}", "x"),
        ("name: {.name}!", "name: x!"),
        (".name", "x"),
        ("{.items[*].n}", "1 2 3"),
        ("{.nothing} {.items[0]}", 'null {"n":1,"t":"a"}'),
        ('{range .items[*]}{.n}{"\\t"}{.t}{"\\n"}{end}', "1\ta\n2\tb\n3\t\n"),
        ('{range .items[*]}{range .t}{"<"}{@}{">"}{end}{end}', "<a><b>"),
        ("{'}'}", "}"),
    ],
)
def test_templates(template: str, text: str) -> None:
    assert compile_template(template)(DOCUMENT) == text


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{.a", "is not closed"),
        ("{.a[}", "was expected"),
        ("{.items[?(@.t ~ 1)]}", '")" was expected'),
        ("{range .a}x", "{range …} without {end}"),
        ("x{end}", "{end} without {range …}"),
        ("{.a b}", "is not understood"),
        ("{.a['x}", "is not closed"),
        ("{.a[x]}", "a number, a name in quotes"),
    ],
)
def test_errors_in_templates_have_positions(template: str, said: str) -> None:
    with pytest.raises(PathError, match=r".") as caught:
        compile_template(template)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["json=x", "custom-columns=A:.a,B", "custom-columns=", "xml"])
def test_invalid_formats(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_format(text)


def test_columns_may_have_commas_in_brackets() -> None:
    columns = parse_format("custom-columns=A:.items[0,1].n,B:.name").columns
    assert [(heading, find(DOCUMENT)) for heading, find in columns] == [("A", [1, 2]), ("B", ["x"])]


@pytest.mark.parametrize(
    ("is_terminal", "environment", "wanted"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_when_colours_are_used(is_terminal: bool, environment: dict[str, str], wanted: bool) -> None:
    assert wants_colour(is_terminal, environment) is wanted
