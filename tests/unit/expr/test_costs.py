"""What a function does, its caller pays for: every built-in and operator, by the size of what it is given."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprBudgetError, ExprRuntimeError
from hyperfleet.expr import INT, Array, Func
from hyperfleet.expr.runtime.budget import CELLS, STEPS
from hyperfleet.expr.signatures import BUILTINS, PREDICATES
from hyperfleet.expr.syntax.precedence import BINARY

LARGE, ROUNDS = 100_000, 100  # together more than all steps pay for, at 64 characters or elements a step
TINY = 1
SIZES = {"large": LARGE, "tiny": TINY}

# By built-in: a call on something of the size that the values below have.
SIZED = {
    **{name: f"{name}(list, # == nil)" for name in PREDICATES},
    "count": "count(list, # == nil)",
    "map": "map(list, #)",
    "sum": "sum(numbers)",
    "groupBy": "groupBy(numbers, #)",
    "sortBy": "sortBy(numbers, -#)",
    "reduce": "reduce(numbers, #)",
    "trim": 'trim(text, "b")',
    "trimPrefix": "trimPrefix(text, other)",
    "trimSuffix": "trimSuffix(text, other)",
    "upper": "upper(text)",
    "lower": "lower(text)",
    "split": 'split(text, "b")',
    "splitAfter": 'splitAfter(text, "a")',
    "replace": 'replace(text, "b", "c")',
    "repeat": "repeat(text, 0)",
    "join": "join(blanks)",
    "indexOf": 'indexOf(text, "b")',
    "lastIndexOf": 'lastIndexOf(text, "b")',
    "hasPrefix": "hasPrefix(text, other)",
    "hasSuffix": "hasSuffix(text, other)",
    "max": "max(numbers)",
    "min": "min(numbers)",
    "mean": "mean(numbers)",
    "median": "median(numbers)",
    "take": f"take(numbers, {LARGE})",
    "reverse": "reverse(numbers)",
    "uniq": "uniq(numbers)",
    "concat": "concat(numbers, numbers)",
    "flatten": "flatten(numbers)",
    "sort": "sort(numbers)",
    "keys": "keys(table)",
    "values": "values(table)",
    "toPairs": "toPairs(table)",
    "fromPairs": "fromPairs(pairs)",
    "float": "float(digits)",
    "string": "string(numbers)",
    "toJSON": "toJSON(numbers)",
    "fromJSON": "fromJSON(quoted)",
    "toBase64": "toBase64(text)",
    "fromBase64": "fromBase64(base64)",
    "get": "get(accents, 0)",
    "first": "first(accents)",
    "last": "last(accents)",
    "duration": "duration(zeros)",
    "date": "date(stamp, layout)",
}
# What looks at no more than a few bytes of anything, however large it is.
CONSTANT = {
    "len": "len(table)",
    "type": "type(numbers)",
    "abs": "abs(-1)",
    "ceil": "ceil(0.5)",
    "floor": "floor(0.5)",
    "round": "round(0.5)",
    "int": 'int("12")',
    "now": "now()",
    "timezone": 'timezone("UTC")',
    **{f"bit{name}": f"bit{name}(1, 2)" for name in ("and", "or", "xor", "nand", "shl", "shr", "ushr")},
    "bitnot": "bitnot(1)",
}
# Comparisons and other operators that look at their operands.
OPERATIONS = {
    "==": [
        "text == other",
        "list == others",
        "table == tables",
        "pairs == pairs2",
        "[table] == [tables]",
        "raw == raws",
    ],
    "!=": ["text != other", "table != tables"],
    "<": ["text < other"],
    "<=": ["text <= other"],
    ">": ["text > other"],
    ">=": ["text >= other"],
    "in": ["nil in numbers", "other in names", "other in {(text): 1}", "other in [text, 1]", "other in raw"],
    "contains": ['text contains "b"'],
    "matches": ['text matches "b"'],
    "startsWith": ["text startsWith other"],
    "endsWith": ["text endsWith other"],
    "+": ["text + other"],
    "..": ["0..size"],
    ".": [
        "names[other]",
        "get(names, other)",
        "{(text): 1}[other]",
        "{(text): 1, (other): 2}",
        "fromPairs([[text, 1]])[other]",
    ],
    "[]": ["text[0:]", "numbers[0:]", "accents[0]"],
    "groups": ["groupBy([text, other], #)", "uniq([text, other])", "sort([text, other])", "string(raw)"],
}
# What has no size: numbers and truth values, or no work of its own.
SCALAR = {"-", "*", "/", "%", "**", "^", "and", "&&", "or", "||", "??", "|"}


def values_of(size: int) -> dict[str, Any]:
    """Return values of a size; those that a comparison must look at to the end are equal, but not the same."""
    text = "a" * size
    table = {str(place): place for place in range(size)}
    return {
        "size": size,
        "text": text,
        "other": "".join(["a"] * size),
        "names": {text: 1},
        "digits": "0" * size,
        "quoted": f'"{text}"',
        "zeros": "0s" * size,
        "accents": "é" * size,
        "base64": "aaaa" * size,
        "stamp": "-" * size,
        "layout": "-" * size,
        "list": list(range(size)),
        "others": list(range(size)),
        "numbers": list(range(size)),
        "blanks": [""] * size,
        "table": table,
        "tables": dict(reversed(table.items())),
        "pairs": [[place, place] for place in range(size)],
        "pairs2": [[place, place] for place in range(size)],
        "raw": b"a" * size,
        "raws": bytes(bytearray(b"a" * size)),
    }


VALUES = {name: values_of(size) for name, size in SIZES.items()}


def repeated(call: str) -> expr.Program:
    return expr.compile(f"count(1..{ROUNDS}, {{{call}; true}})")


def test_the_sizes_are_beyond_the_budget() -> None:
    assert max(64 * STEPS, CELLS) < LARGE * ROUNDS


def test_every_builtin_and_operator_has_its_row() -> None:
    assert SIZED.keys() | CONSTANT.keys() == BUILTINS
    assert not SIZED.keys() & CONSTANT.keys()
    assert BINARY.keys() - OPERATIONS.keys() == SCALAR


@pytest.mark.parametrize("how", ["evaluate", "interpret"])
@pytest.mark.parametrize("call", [*SIZED.values(), *(call for calls in OPERATIONS.values() for call in calls)])
def test_what_looks_at_a_value_pays_for_its_size(call: str, how: str) -> None:
    program = repeated(call)
    assert getattr(program, how)(VALUES["tiny"]) == ROUNDS
    with pytest.raises(ExprBudgetError, match="budget exceeded"):
        getattr(program, how)(VALUES["large"])


# Built-ins that handle the elements of a list or map one by one, which takes far longer than copying them.
ONE_BY_ONE = ["keys", "values", "toPairs", "fromPairs", "uniq", "flatten", "sort", "sortBy", "groupBy", "reduce", "map"]
ONE_BY_ONE += ["filter", "join", "string", "toJSON", "max", "min", "mean", "median"]


@pytest.mark.parametrize(
    "call", [*map(SIZED.__getitem__, ONE_BY_ONE), "list == others", "table == tables", "nil in list"]
)
def test_an_element_costs_half_a_step_at_least(call: str) -> None:
    size, rounds = 3_000, 1_000
    assert size * rounds // 64 < STEPS < size * rounds // 2
    with pytest.raises(ExprBudgetError, match="budget exceeded"):
        expr.compile(f"count(1..{rounds}, {{{call}; true}})").evaluate(values_of(size))


@pytest.mark.parametrize("call", [call for name, call in CONSTANT.items() if name != "now"])
def test_what_looks_at_nothing_pays_no_more_for_a_large_value(call: str) -> None:
    assert repeated(call).evaluate(VALUES["large"]) == ROUNDS


@pytest.mark.parametrize(
    "source",
    [
        "let x = groupBy(1..3000, #); count(1..9000, toPairs(x) == [])",
        'let s = repeat("a", 300000); let t = repeat("a", 300000); sort(map(1..5000, # % 2 == 0 ? s : t))',
        'let s = repeat("a", 300000); let t = repeat("a", 300000); count(1..20000, [{a: s}] == [{a: t}])',
    ],
)
def test_what_used_to_run_for_seconds_runs_out_of_budget(source: str) -> None:
    with pytest.raises(ExprBudgetError, match="budget exceeded"):
        expr.compile(source).evaluate({})


@pytest.mark.parametrize("end", ["x", ".", "e", "_", "1.5.5"])
@pytest.mark.parametrize("start", ["", "0x", "-."])
def test_a_long_text_that_is_no_number_is_read_once(start: str, end: str) -> None:
    """A pattern that can match a digit in two ways would need years for these."""
    with pytest.raises(ExprRuntimeError, match=r"invalid operation: float\("):
        expr.compile("float(text)").evaluate({"text": start + "9" * 500_000 + end})


def test_no_search_takes_quadratic_time() -> None:
    """Python's `rfind` would need minutes for this one."""
    assert expr.compile('lastIndexOf(repeat("a", 500000), "ab" + repeat("a", 250000))').evaluate({}) == -1


@pytest.mark.parametrize(
    ("text", "part", "place"), [("abcabc", "bc", 4), ("abc", "", 3), ("éaéa", "é", 3), ("abc", "x", -1), ("", "", 0)]
)
def test_the_last_place_is_found_from_the_end(text: str, part: str, place: int) -> None:
    assert expr.compile("lastIndexOf(text, part)").evaluate({"text": text, "part": part}) == place


def test_programs_can_share_a_budget() -> None:
    first, second = expr.compile("count(1..30000, # > 0) > 0"), expr.compile("count(xs, # > 0)", {"xs": Array(INT)})
    shared = expr.open_budget()
    assert first.evaluate({}, shared) is True
    before = expr.steps_left(shared)
    assert before == STEPS - 30_000
    with pytest.raises(ExprBudgetError):
        second.evaluate({"xs": [1] * 99_000}, shared)
    assert expr.steps_left(shared) == before, "what could not be paid was not done"
    assert second.evaluate({"xs": [1] * 1_000}, shared) == 1_000
    assert expr.steps_left(shared) < before
    assert second.evaluate({"xs": [1] * 90_000}) == 90_000


def test_memory_and_calls_are_counted_for_each_program_alone() -> None:
    schema: expr.Schema = {"f": Func((), INT), "n": INT}
    range_, call, sum_ = (expr.compile(source, schema) for source in ("len(1..700000)", "f() > 0", "n + 1 > 0"))
    shared = expr.open_budget(steps=1_000_000)
    for _ in range(3):
        assert range_.evaluate({}, shared) == 700_000
    assert call.evaluate({"f": lambda: 1}, shared) is True
    with pytest.raises(ExprRuntimeError, match=r"invalid operation: <nil> \+ int"):
        sum_.evaluate({"n": None}, shared)
