"""`field` paths: what they find, what is missing, and where a wrong one is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.adapter.field_parsing import MAX_FILTERS, MAX_PATH
from hyperfleet.adapter.field_paths import MAX_VISITS, parse_field

ANSWER: dict[str, Any] = {
    "status": {"phase": "Ready", "blank": " \n", "null": None, "zero": 0, "foo.bar/baz": 5},
    "items": [
        {"adapter": "dns", "data": {"zone": "z1"}, "n": 1, "ok": True},
        {"adapter": "landing-zone", "data": {"zone": "z2"}, "n": 2.0, "ok": False},
        {"n": 3},
    ],
    "wanted": "dns",
    "names": ["a", "b", "c", "d"],
}


@pytest.mark.parametrize(
    ("path", "value", "because"),
    [
        ("status.phase", "Ready", "plain a.b"),
        (".status.phase", "Ready", "with a dot"),
        ("{.status.phase}", "Ready", "kubectl's form"),
        (" {.status.phase} ", "Ready", "blanks around it"),
        ("{$.status.phase}", "Ready", "from the root"),
        ("{@.status.phase}", "Ready", "from the root"),
        ("{status.phase}", "Ready", "without the first dot"),
        ("{.}", ANSWER, "the whole"),
        ("{.status['foo.bar/baz']}", 5, "a name in quotes"),
        ('{.status["foo.bar/baz"]}', 5, "a name in quotes"),
        ("{.status.foo\\.bar/baz}", 5, "an escaped dot"),
        ("{.items[0].adapter}", "dns", "a position"),
        ("items[0].adapter", "dns", "a position in the plain form"),
        ("{.items[-1].n}", 3, "a position from the end"),
        ("{.names[1:3]}", ["b", "c"], "a slice"),
        ("{.names[::2]}", ["a", "c"], "a slice with a step"),
        ("{.names[0,2]}", ["a", "c"], "a union of positions"),
        ("{.items[0]['adapter','n']}", ["dns", 1], "a union of names"),
        ("{.items[*].n}", [1, 2.0, 3], "several hits are a list"),
        ("{.items[*].adapter}", ["dns", "landing-zone"], "items without it are passed over"),
        ("{.items[0].data.*}", "z1", "one hit is the value, also through a wildcard"),
        ("{..zone}", ["z1", "z2"], "everything below"),
        ("{.items[?(@.adapter=='dns')].data.zone}", "z1", "a filter"),
        ('{.items[?(@.adapter == "dns")].data.zone}', "z1", "a filter with blanks"),
        ("{.items[?(@.adapter!='dns')].data.zone}", "z2", "an item without the field does not pass"),
        ("{.items[?(@.n>=2)].n}", [2.0, 3], "an order"),
        ("{.items[?(@.n<2)].n}", 1, "an order"),
        ("{.items[?(@.n<=2)].n}", [1, 2.0], "an order"),
        ("{.items[?(@.n>2)].n}", 3, "an order"),
        ("{.items[?(@.n==2)].n}", 2.0, "3 is 3.0"),
        ("{.items[?(@.ok==true)].n}", 1, "a boolean"),
        ("{.items[?(@.ok)].n}", [1, 2.0], "a field that is there, whatever it is"),
        ("{.items[?(@.adapter==$.wanted)].n}", 1, "a value from the root"),
        ("{.items[?('dns'==@.adapter)].n}", 1, "the other way round"),
        ("{.names[?(@=='b')]}", "b", "the item itself"),
        ("{.items[?(@.n=='1')].n}", None, "another type is not equal"),
        ("{.status.zero}", 0, "0 is a value"),
        ("{.status.blank}", None, "a blank string is null"),
        ("{.status.null}", None, "null"),
    ],
)
def test_a_path_finds_its_value(path: str, value: object, because: str) -> None:
    parsed = parse_field(path).path
    assert parsed, parse_field(path).faults
    assert parsed.find(ANSWER).value == value, because


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("nope.x", "nothing at .nope"),
        ("status.phase.x", "nothing at .x"),
        ("{.items[9].n}", "nothing at [9]"),
        ("{.items[?(@.adapter=='x')].n}", "nothing at [?(…)]"),
        ("{.status[0]}", "nothing at [0]"),
        ("{.status[?(@.a==1)]}", "nothing at [?(…)]"),
        ("{.wanted[*]}", "nothing at [*]"),
        ("{.status[1:2]}", "nothing at [1:2]"),
    ],
)
def test_what_is_missing_is_no_fault(path: str, missing: str) -> None:
    parsed = parse_field(path).path
    assert parsed
    assert parsed.find(ANSWER) == (None, missing)


def test_a_null_that_is_there_is_not_missing() -> None:
    parsed = parse_field("status.null").path
    assert parsed
    assert parsed.find(ANSWER).missing == ""


@pytest.mark.parametrize(
    ("path", "column", "message"),
    [
        ("", 1, "the path is empty"),
        ("{}", 1, "the path is empty"),
        ("{.a", 4, "the path is not closed: } is missing"),
        ("a b", 3, "unexpected b after the path"),
        ("{.a}x", 5, "unexpected x after the path"),
        ("{.a}{.b}", 5, "unexpected { after the path"),
        ("a..", 4, "a name is missing before the end of the path"),
        ("{.a.}", 5, "a name is missing before }"),
        ("{.a[}", 5, "expected a position, a name in quotes, * or ?( and not }"),
        ("{.a[x]}", 5, "expected a position, a name in quotes, * or ?( and not x"),
        ("{.a['x]}", 5, "the string is not closed"),
        ("{.a[0}", 6, "expected ] and not }"),
        ("{.a[::0]}", 5, "the step of a slice must be 1 or more"),
        ("{.a[?(@.x=='y']}", 15, "expected ==, !=, <, <=, >, >= or ) and not ]; a filter has one comparison"),
        ("{.a[?(@.x=y)]}", 10, "expected ==, !=, <, <=, >, >= or ) and not =; a filter has one comparison"),
        ("{.a[?(@.x==y)]}", 12, "expected @.field or a value and not y; text is in quotes"),
        ("{.a[?(@.x==1 && @.y==2)]}", 14, "expected ==, !=, <, <=, >, >= or ) and not &; a filter has one comparison"),
        ("x" * (MAX_PATH + 1), 1, f"the path has more than {MAX_PATH} characters"),
        ("{.a" + "[?(@" * 20, 39, f"more than {MAX_FILTERS} filters inside each other"),
    ],
)
def test_a_wrong_path_is_a_fault_with_its_place(path: str, column: int, message: str) -> None:
    (fault,) = parse_field(path).faults
    assert (fault.line, fault.column, fault.message) == (1, column, message)


def test_the_search_is_bounded() -> None:
    parsed = parse_field("{..*..*..*}").path
    assert parsed
    wide = {str(index): {str(inner): [0] * 10 for inner in range(100)} for index in range(100)}
    assert parsed.find(wide).missing == f"the path looks at more than {MAX_VISITS} values"


def test_a_deep_value_is_no_danger() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    parsed = parse_field("{..x}").path
    assert parsed
    assert parsed.find(deep).missing == "nothing at .x"


@pytest.mark.parametrize(
    ("path", "name"), [("a.b", "a"), ("{.a[0]}", "a"), ("{['a'].b}", "a"), ("{..a}", ""), ("{.}", "")]
)
def test_the_first_name_says_which_variable_is_read(path: str, name: str) -> None:
    parsed = parse_field(path).path
    assert parsed
    assert parsed.first_name == name
