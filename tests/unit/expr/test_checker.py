"""Types: what every kind of node gives, what is refused, in which words and where."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.errors import ExprError, ExprTypeError
from hyperfleet.expr.checking.checker import check
from hyperfleet.expr.checking.environment import Environment
from hyperfleet.expr.nodes import Call, ExprNode, Integer, walk
from hyperfleet.expr.signatures import BUILTINS, PREDICATES
from hyperfleet.expr.syntax.cursor import Grammar
from hyperfleet.expr.syntax.parser import parse
from hyperfleet.expr.types import (
    ANY,
    ANY_ARRAY,
    ANY_MAP,
    BOOL,
    DURATION,
    FLOAT,
    INT,
    NIL,
    STRING,
    TIME,
    Array,
    Func,
    Map,
    Method,
    Nullable,
    Struct,
    Type,
    infer,
    infer_schema,
)

PET = Struct(
    "main.Pet",
    {"name": STRING, "age": INT},
    {"Speak": Method(Func((STRING,), STRING), lambda pet, word: f"{pet['name']}: {word}")},
)
SCHEMA: dict[str, Type] = {
    "ok": BOOL,
    "i": INT,
    "f": FLOAT,
    "s": STRING,
    "x": ANY,
    "none": NIL,
    "t": TIME,
    "d": DURATION,
    "ints": Array(INT),
    "anys": ANY_ARRAY,
    "pet": PET,
    "pets": Array(PET),
    "by_name": Map(STRING, PET),
    "strict": Map(STRING, ANY, fields={"a": INT}, strict=True),
    "maybe": Nullable(INT),
    "add": Func((INT, INT), INT),
    "half": Func((FLOAT,), FLOAT),
    "join_all": Func((STRING,), STRING, variadic=True),
    "nothing": Func((), None),
    "either": Func((INT,), INT, overloads=(Func((INT,), INT), Func((STRING,), STRING))),
}
ENVIRONMENT = Environment(SCHEMA)


def checked(text: str, environment: Environment = ENVIRONMENT) -> tuple[ExprNode, Type]:
    tree = parse(text, Grammar(overridden=environment.overridden()))
    return tree, check(tree, text, environment)


def faults(text: str, environment: Environment = ENVIRONMENT) -> list[str]:
    with pytest.raises(ExprTypeError) as caught:
        checked(text, environment)
    return [str(error).split("\n", maxsplit=1)[0] for error in (caught.value, *caught.value.others)]


@pytest.mark.parametrize(
    ("text", "name", "because"),
    [
        ("i + 1", "int", "integers stay integers"),
        ("i + f", "float64", "a float wins"),
        ("i / 1", "float64", "division is always float"),
        ("7 % i", "int", "a remainder is an integer"),
        ("2 ** 3", "float64", "so is a power"),
        ("x + 1", "interface {}", "open until run time"),
        ("t - t", "time.Duration", "times are apart by a duration"),
        ("t + d", "time.Time", "and moved by one"),
        ("2 * d", "time.Duration", "which can be multiplied"),
        ("s + 'a'", "string", "texts are joined"),
        ("maybe + 1", "int", "operators look through nullable"),
        ("1..3", "[]interface {}", "a range"),
        ("ok ? 1 : 2", "int", "both branches agree"),
        ("ok ? 1 : 'a'", "interface {}", "or nothing is known"),
        ("ok ? nil : 'a'", "string", "nil agrees with all"),
        ("x ?? 1", "interface {}", "an alternative to the unknown"),
        ("none ?? 1", "int", "and to nil"),
        ("pet.name", "string", "a field"),
        ("pet.Speak('hi')", "string", "a method"),
        ("by_name.rex.age", "int", "an entry"),
        ("by_name['rex']", "main.Pet", "by its key"),
        ("strict.a", "int", "a typed entry"),
        ("pets[0]", "main.Pet", "an element"),
        ("pets[1:]", "[]main.Pet", "a slice"),
        ("$env.i", "int", "by way of the environment"),
        ("$env?.nope", "interface {}", "which need not have it"),
        ("filter(pets, .age > 1)", "[]interface {}", "prints as anything"),
        ("filter(pets, .age > 1)[0].age", "int", "but its elements are known"),
        ("map(pets, .name)[0]", "string", "so are mapped ones"),
        ("find(ints, # > 1)", "int", "an element"),
        ("sum(pets, .age)", "int", "of the predicate's type"),
        ("count(ints)", "int", "without a predicate"),
        ("groupBy(pets, .age)", "map[interface {}][]interface {}", "groups"),
        ("sortBy(pets, .age, 'desc')[0]", "main.Pet", "the same list"),
        ("reduce(ints, #acc + #, 0)", "interface {}", "what has come together is unknown"),
        ("len(s)", "int", "a length"),
        ("first(ints)", "int", "of a typed list"),
        ("first([1])", "interface {}", "a literal's elements are forgotten"),
        ("abs(f)", "float64", "the same type"),
        ("trim(s, ' ')", "string", "the second signature"),
        ("now().Year()", "int", "a method of times"),
        ("now().Month()", "time.Month", "which is no integer"),
        ("duration('1h').Hours()", "float64", "a method of durations"),
        ("either('a')", "string", "the signature that fits"),
        ("let y = i; y * 2", "int", "a variable"),
        ("1; 'a'", "string", "the last one counts"),
        ("[1, 2][0]", "int", "one kind"),
        ("[1, 'a'][0]", "interface {}", "several"),
        ("{a: 1}.a", "interface {}", "literals have open values"),
        ("any", "func([]interface {}, func(interface {}) bool) bool", "a builtin as a value"),
    ],
)
def test_types(text: str, name: str, because: str) -> None:
    assert checked(text)[1].name == name, because


@pytest.mark.parametrize(
    ("text", "message", "because"),
    [
        ("nope", "unknown name nope (1:1)", "not declared"),
        ("$env.nope", "unknown name nope (1:6)", "nowhere"),
        ("i + s", "invalid operation: + (mismatched types int and string) (1:3)", "at the operator"),
        ("i == s", "invalid operation: == (mismatched types int and string) (1:3)", "never equal"),
        (
            "now().Month() == 5",
            "invalid operation: == (mismatched types time.Month and int) (1:15)",
            "a type of its own",
        ),
        ("nil + 1", "invalid operation: + (mismatched types unknown and int) (1:5)", "nil has no name"),
        ("not i", "invalid operation: not (mismatched type int) (1:1)", "no truth"),
        ("1 and ok", "invalid operation: and (mismatched types int and bool) (1:3)", "spelled as written"),
        ("i ? 1 : 2", "non-bool expression (type int) used as condition (1:1)", "at the test"),
        ("s in ints", "cannot use string as type int in array (1:3)", "never in it"),
        ("1 in by_name", "cannot use int as type string in map key (1:3)", "no key"),
        ('s matches "["', "error parsing regexp: missing closing ]: `[` (1:3)", "a bad pattern"),
        ("pet.nme", "type main.Pet has no field nme (1:5)", "misspelled"),
        ("pet.Bark()", "type main.Pet has no method Bark (1:5)", "not taught"),
        ("pets.name", "array elements can only be selected using an integer (got string) (1:6)", "a list"),
        ("by_name[1]", "cannot use int to get an element from map[string]main.Pet (1:9)", "at the key"),
        ("strict.b", "unknown field b (1:8)", "not among the fields"),
        ("(nil).a", "type nil has no field a (1:7)", "nothing there"),
        ("s[0]", "type string[int] is undefined (1:2)", "texts have no elements"),
        ("ok[1:]", "cannot slice bool (1:3)", "nothing to cut"),
        ("ints['a':]", "non-integer slice index string (1:6)", "at the bound"),
        ("all(by_name, true)", "builtin all takes only array (got map[string]main.Pet) (1:5)", "a map"),
        ("filter(ints, #)", "predicate should return boolean (got int) (1:14)", "at the predicate"),
        ("map(ints, nil)", "predicate should has one input and one output param (1:11)", "always nil"),
        ("map(ints, #acc)", "unknown pointer #acc (1:11)", "of reduce only"),
        ("sortBy(ints, #, 1)", "sortBy order argument must be a string (got int) (1:17)", "the order"),
        ("add(1)", "not enough arguments to call add (1:1)", "too few"),
        ("add(1, 2, 3)", "too many arguments to call add (1:1)", "too many"),
        ("add(1, s)", "cannot use string as argument (type int) to call add  (1:8)", "with the original's blank"),
        ("add(1, nil)", "cannot use nil as argument (type int) to call add (1:8)", "and without"),
        ("join_all('a', 1)", "cannot use int as argument (type string) to call join_all  (1:15)", "a repeated one"),
        ("either(ok)", "cannot use bool as argument (type string) to call either  (1:8)", "the last signature's words"),
        ("nothing()", "func nothing doesn't return value (1:1)", "no result"),
        ("none()", "none is nil; cannot call nil as function (1:1)", "nil"),
        ("i()", "int is not callable (1:1)", "a number"),
        ("$env()", "map[string]interface {} is not callable (1:1)", "the environment"),
        ("len(i)", "invalid argument for len (type int) (1:1)", "at the function"),
        ("len(nil)", "invalid argument for len (type %!s(<nil>)) (1:1)", "the original's slip"),
        ("len()", "invalid number of arguments (expected 1, got 0) (1:1)", "none"),
        ("max(1, s)", "invalid argument for max (type string) (1:1)", "no number"),
        ("keys(ints)", "cannot get keys from []int (1:1)", "no map"),
        ("get(i, 1)", "type int does not support indexing (1:5)", "no parts"),
        ("now(1)", "invalid number of arguments (expected 0, got 1) (1:1)", "only a zone"),
        ("let i = 1; i", "cannot redeclare i (1:5)", "taken by the environment"),
        ("let len = 1; len", "cannot redeclare builtin len (1:5)", "by the language"),
        ("let y = 1; let y = 2; y", "cannot redeclare variable y (1:16)", "by another variable"),
    ],
)
def test_faults(text: str, message: str, because: str) -> None:
    assert faults(text) == [message], because


@pytest.mark.parametrize(
    ("text", "messages", "because"),
    [
        ("nope + nada", ["unknown name nope (1:1)", "unknown name nada (1:8)"], "both operands"),
        ("nope.a.b == nope", ["unknown name nope (1:1)", "unknown name nope (1:13)"], "parts of it are not"),
        ("nope(nada)", ["unknown name nope (1:1)", "unknown name nada (1:6)"], "arguments too"),
        (
            "i ? nope : nada",
            [
                "non-bool expression (type int) used as condition (1:1)",
                "unknown name nope (1:5)",
                "unknown name nada (1:12)",
            ],
            "test and branches",
        ),
        (
            "all(i, # == nope)",
            ["builtin all takes only array (got int) (1:5)", "unknown name nope (1:13)"],
            "predicates",
        ),
        (
            "(i + s) + nope",
            ["invalid operation: + (mismatched types int and string) (1:4)", "unknown name nope (1:11)"],
            "",
        ),
        ("1 < nope < 3", ["unknown name nope (1:5)"], "what sugar repeats is said once"),
        (
            "add(s, nope)",
            ["cannot use string as argument (type int) to call add  (1:5)", "unknown name nope (1:8)"],
            "",
        ),
    ],
)
def test_all_faults_are_found(text: str, messages: list[str], because: str) -> None:
    assert faults(text) == messages, because


def test_the_number_of_faults_is_bounded() -> None:
    assert len(faults(" + ".join(f"nope{number}" for number in range(1_000)))) == 20


def test_without_a_schema_names_are_unknown() -> None:
    free = Environment()
    assert checked("nope.a + other(1)", free)[1] == ANY
    assert faults("1 == true", free) == ["invalid operation: == (mismatched types int and bool) (1:3)"]
    assert checked("unknown(1 + 'a')", free)[1] == ANY, "arguments of an unknown function are not looked at"


def test_functions_come_after_variables() -> None:
    environment = Environment({"f": INT}, functions={"f": Func((), STRING), "g": Func((), STRING)})
    assert checked("f", environment)[1] == INT
    assert checked("g()", environment)[1] == STRING
    assert faults("let g = 1; g", environment) == ["cannot redeclare function g (1:5)"]


@pytest.mark.parametrize(
    ("text", "expect", "message"),
    [
        ("ok", BOOL, None),
        ("x", BOOL, None),
        ("f", INT, None),
        ("s", BOOL, "expected bool, but got string"),
        ("nil", BOOL, "expected bool, but got unknown"),
        ("ok", FLOAT, "expected float64, but got bool"),
    ],
)
def test_expected_results(text: str, expect: Type, message: str | None) -> None:
    tree = parse(text)
    if message is None:
        check(tree, text, ENVIRONMENT, expect=expect)
        return
    with pytest.raises(ExprTypeError) as caught:
        check(tree, text, ENVIRONMENT, expect=expect)
    assert str(caught.value) == message


def test_an_open_result_can_be_refused() -> None:
    with pytest.raises(ExprTypeError, match=r"expected bool, but got interface \{\}"):
        check(parse("x"), "x", ENVIRONMENT, expect=BOOL, allow_any=False)


def test_integer_literals_become_floats_where_floats_are_wanted() -> None:
    tree, _ = checked("half(-(1 + 2))")
    assert isinstance(tree, Call)
    assert {node.type for node in walk(tree.arguments[0])} == {FLOAT}
    tree, _ = checked("half(i)")
    assert isinstance(tree, Call)
    assert tree.arguments[0].type == INT, "a variable stays what it is"


def test_every_node_is_typed() -> None:
    tree, _ = checked("all(pets, .age + 1 > 2 && .name in ['a'])")
    assert all(node.type != ANY for node in walk(tree))
    assert all(node.type == INT for node in walk(tree) if isinstance(node, Integer))


def test_long_chains_need_no_stack() -> None:
    text = " && ".join(["ok"] * 10_000)
    assert check(parse(text, Grammar(max_nodes=0)), text, ENVIRONMENT) == BOOL
    text = "let a = 1; " + "".join(f"let a{number} = 1; " for number in range(2_000)) + "a"
    assert checked(text)[1] == INT


def test_a_very_long_access_is_an_error_not_a_crash() -> None:
    text = "x" + ".a" * 4_000
    with pytest.raises(ExprTypeError, match="expression is nested too deeply"):
        checked(text)


def test_plain_data_has_types() -> None:
    assert infer_schema({"a": True, "b": 1, "c": [1], "d": {"e": 1}, "f": None}) == {
        "a": BOOL,
        "b": INT,
        "c": ANY_ARRAY,
        "d": ANY_MAP,
        "f": NIL,
    }
    assert infer(len) == Func((ANY,), ANY, variadic=True)


def test_the_language_has_71_functions() -> None:
    assert len(BUILTINS) == 71
    assert len(PREDICATES) == 15
    assert set(PREDICATES) <= BUILTINS


terms = st.sampled_from([*SCHEMA, "1", "1.5", "'a'", "nil", "true", "[]", "[1]", "{a: 1}", "nope", "now()", "#"])
joints = st.sampled_from(
    [
        "{} + {}",
        "{} == {}",
        "{} in {}",
        "{} ? {} : x",
        "{}[{}]",
        "{}.name + {}",
        "all({}, {})",
        "max({}, {})",
        "get({}, {})",
        "[{}, {}]",
        "{} ?? ({})",
    ]
)
texts = st.recursive(
    terms, lambda inner: st.builds(lambda joint, left, right: f"({joint.format(left, right)})", joints, inner, inner)
)


@given(texts)
def test_any_expression_is_typed_or_refused(text: str) -> None:
    with suppress(ExprError):
        assert checked(text)[1].name
