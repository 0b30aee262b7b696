"""The reader: what YAML means, and every way in which text can be wrong before it is bound."""

from __future__ import annotations

import math

import pytest

from hyperfleet.documents.composer import MAX_DEPTH
from hyperfleet.documents.nodes import MappingNode, to_plain
from hyperfleet.documents.reader import MAX_CHARACTERS, read


def plain(text: str) -> object:
    """Read one document without problems."""
    reading = read(text, "f.yaml")
    assert reading.problems == ()
    (document,) = reading.documents
    return to_plain(document.root)


def problems(text: str) -> list[tuple[str, str]]:
    """Return code and text of every problem."""
    return [(problem.code, str(problem)) for problem in read(text, "f.yaml").problems]


@pytest.mark.parametrize(
    ("text", "value", "because"),
    [
        ("10m", "10m", "a duration is text"),
        ("yes", "yes", "yes is a boolean only in YAML 1.1"),
        ("2025-01-01", "2025-01-01", "the core schema has no dates"),
        ("1_000", "1_000", "underscores are of YAML 1.1"),
        ("010", 10, "a leading zero is not octal"),
        ("0o10", 8, "this is"),
        ("0xfF", 255, "hexadecimal"),
        ("-5", -5, "a sign"),
        ("1.5e3", 1500.0, "a float"),
        (".5", 0.5, "a float without whole part"),
        ("-.inf", -math.inf, "infinity"),
        ("True", True, "three spellings are booleans"),
        ("tRue", "tRue", "others are not"),
        ("~", None, "null"),
        ("''", "", "quotes make text"),
        ('"true"', "true", "quotes make text"),
        ("!!str 5", "5", "a tag makes text"),
        ("! 5", "5", "so does the short one"),
        ("!!int 5", 5, "a tag that fits"),
        ("!!float 5", 5.0, "an int is a float when asked"),
        ("|\n a\n  b\n", "a\n b\n", "literal"),
        (">\n a\n b\n", "a b\n", "folded"),
        ("\ufeffa", "a", "a byte order mark is no content"),
        ("{}", {}, "an empty mapping"),
        ("[a, [b]]", ["a", ["b"]], "lists"),
        ("{true: 1, 'false': 2, 3: x}", {"true": 1, "false": 2, "3": "x"}, "keys are names"),
        ("%YAML 1.1\n---\nno", "no", "one meaning for all documents"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object, because: str) -> None:
    assert plain(text) == value, because
    assert type(plain(text)) is type(value), because


def test_not_a_number() -> None:
    value = plain(".nan")
    assert isinstance(value, float)
    assert math.isnan(value)


def test_aliases_and_merge_keys() -> None:
    text = """
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: 5}
two: {<<: [*base, *more], d: *base}
quoted: {"<<": x}
"""
    value = plain(text)
    assert isinstance(value, dict)
    assert value["one"] == {"b": 5, "a": 1}
    assert value["two"] == {"d": {"a": 1, "b": 2}, "a": 1, "b": 2, "c": 4}
    assert value["quoted"] == {"<<": "x"}


def test_every_node_knows_where_it_is() -> None:
    (document,) = read("a: 1\nlonger:\n  - x\n  -   y\n", "f.yaml").documents
    root = document.root
    assert isinstance(root, MappingNode)
    entry = root.find("longer")
    assert entry is not None
    assert (entry.key.line, entry.key.column) == (2, 1)
    assert (entry.value.line, entry.value.column) == (3, 3)


def test_several_documents_each_with_its_own_anchors() -> None:
    reading = read("---\na: &x 1\n---\nb: &x 2\nc: *x\n", "f.yaml")
    assert [to_plain(document.root) for document in reading.documents] == [{"a": 1}, {"b": 2, "c": 2}]
    assert problems("a: &x 1\n---\nb: *x\n") == [
        ("UnknownAlias", "f.yaml:3:4: the alias *x has no anchor &x before it")
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_no_document(text: str) -> None:
    assert read(text, "f.yaml").documents == ()
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "DuplicateKey", 'f.yaml:3:1: the key "a" is here twice, first in line 1'),
        ("true: 1\n'true': 3\n", "DuplicateKey", 'f.yaml:2:1: the key "true" is here twice, first in line 1'),
        ("a:\n  [1]: 2\n", "NotAllowed", "f.yaml:2:3: a key must be a single value"),
        ("a: !foo x\n", "NotAllowed", "f.yaml:1:4: the tag !foo is not supported here"),
        ("a: !foo [x]\n", "NotAllowed", "f.yaml:1:4: the tag !foo is not supported here"),
        ("a: !!binary aGk=\n", "NotAllowed", "f.yaml:1:4: the tag !!binary is not supported here"),
        ("a: !!int x\n", "NotAllowed", 'f.yaml:1:4: the tag !!int does not fit "x"'),
        ('a: "\\ud800"\n', "NotAllowed", "f.yaml:1:4: half of a surrogate pair is not a character"),
        ("a: 1" + "0" * 100, "NotAllowed", "f.yaml:1:4: a number has at most 100 digits, this one has 101"),
        ("<<: x\n", "WrongType", "f.yaml:1:5: the merge key << needs a mapping or a list of mappings"),
        ("a: *b\n", "UnknownAlias", "f.yaml:1:4: the alias *b has no anchor &b before it"),
        ("a: &b [*b]\n", "RecursiveAlias", "f.yaml:1:8: the alias *b stands inside its own anchor"),
    ],
)
def test_problems_of_the_text(text: str, code: str, message: str) -> None:
    assert problems(text) == [(code, message)]


def test_two_escapes_may_be_one_character_as_in_json() -> None:
    (document,) = read('{"\\ud83d\\ude00": "a\\ud83d\\ude00b"}', "f.yaml").documents
    assert to_plain(document.root) == {"\U0001f600": "a\U0001f600b"}
    reading = read('{"\\ud83d": 1}', "f.yaml")
    assert [problem.code for problem in reading.problems] == ["NotAllowed"]


def test_a_duplicate_key_carries_its_pointer_and_the_first_one_counts() -> None:
    reading = read("x:\n  - a/b: 1\n    a/b: 2\n", "f.yaml")
    assert [problem.place.path for problem in reading.problems] == ["/x/0/a~1b"]
    assert to_plain(reading.documents[0].root) == {"x": [{"a/b": 1}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb: c: d\n",
            (
                "f.yaml:2:5: this is not valid YAML: mapping values are not allowed here"
                ' (a value that contains ": " must be in quotes)\n'
                "    b: c: d\n"
                "        ^"
            ),
        ),
        (
            "a:\n\tb: 1\n",
            (
                "f.yaml:2:1: this is not valid YAML: while scanning for the next token, found character '\\t'"
                " that cannot start any token (indent with spaces, not with tabs)\n"
                "     b: 1\n"
                "    ^"
            ),
        ),
        (
            "a: [1,\n",
            (
                "f.yaml:2:1: this is not valid YAML: while parsing a flow node, expected the node content,"
                " but found '<stream end>'\n"
                "    \n"
                "    ^"
            ),
        ),
        ("a: \x01", "f.yaml:1:4: the character U+0001 is not allowed in YAML\n    a: \x01\n       ^"),
        (
            'a: 1\nb: "\\U00110000"\n',
            "f.yaml:2:1: this is not valid YAML after here: chr() arg not in range(0x110000)",
        ),
    ],
)
def test_a_syntax_error_is_one_problem(text: str, message: str) -> None:
    assert problems(text) == [("Syntax", message)]


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    message = "f.yaml:6:8: with its aliases the text holds more than 200,000 values"
    assert problems(bomb) == [("TooLarge", message)]


def test_a_merge_bomb_is_refused() -> None:
    keys = ", ".join(f"k{index}: 1" for index in range(1000))
    text = f"a: &a {{{keys}}}\nb:\n" + "- {<<: *a}\n" * 1000
    assert [code for code, _ in problems(text)] == ["TooLarge"]


@pytest.mark.parametrize("text", ["[" * 10_000, "- " * 10_000, "{a: " * 10_000, "? " * 10_000])
def test_deep_nesting_is_refused(text: str) -> None:
    ((code, message),) = problems(text)
    assert code == "TooDeep"
    assert message.endswith(f"the text is nested more than {MAX_DEPTH} levels deep")


def test_nesting_through_aliases_counts() -> None:
    text = "- &a0 [x]\n" + "".join(f"- &a{index} [*a{index - 1}]\n" for index in range(1, 100))
    assert [code for code, _ in problems(text)] == ["TooDeep"]


def test_a_huge_text_is_not_even_parsed() -> None:
    text = "a" * (MAX_CHARACTERS + 1)
    message = "f.yaml:1:1: the file has 262,145 characters, more than the 262,144 allowed"
    assert problems(text) == [("TooLarge", message)]
