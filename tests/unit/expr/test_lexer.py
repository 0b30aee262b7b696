"""Tokens: where they begin and end, what literals mean, and where a bad one is reported."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.errors import ExprSyntaxError
from hyperfleet.expr.syntax.lexer import tokenize
from hyperfleet.expr.syntax.literals import go_quote, read_number


def shown(text: str) -> list[str]:
    return [str(token) for token in tokenize(text)][:-1]


def fault(text: str) -> str:
    with pytest.raises(ExprSyntaxError) as caught:
        list(tokenize(text))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "tokens", "because"),
    [
        ("", [], "an empty text has no tokens but the end"),
        ("1..3", ['Number("1")', 'Operator("..")', 'Number("3")'], "two dots make a range"),
        ("1.5..2", ['Number("1.5")', 'Operator("..")', 'Number("2")'], "also after a fraction"),
        (".5 1. 1e9 0x2A_F", ['Number(".5")', 'Number("1.")', 'Number("1e9")', 'Number("0x2A_F")'], "numbers"),
        ("a?.b", ['Identifier("a")', 'Operator("?.")', 'Identifier("b")'], "optional access"),
        ("a??b?c", ['Identifier("a")', 'Operator("??")', 'Identifier("b")', 'Operator("?")', 'Identifier("c")'], "?"),
        ("#index ##", ['Operator("#")', 'Identifier("index")', 'Operator("##")'], "a pointer is two tokens"),
        ("# 1#2", ['Operator("#")', 'Number("1")', 'Operator("#")', 'Identifier("2")'], "a name may be a number there"),
        ("a /* b */ // c\n + d", ['Identifier("a")', 'Operator("+")', 'Identifier("d")'], "comments are blank"),
        ("$env größe _x1", ['Identifier("$env")', 'Identifier("größe")', 'Identifier("_x1")'], "letters"),
        ("x not in y", ['Identifier("x")', 'Operator("not")', 'Operator("in")', 'Identifier("y")'], "word operators"),
        ("<=*!&", ['Operator("<=")', 'Operator("*")', 'Operator("!&")'], "a second sign is taken, sense or not"),
        ("a ::b", ['Identifier("a")', 'Operator("::")', 'Identifier("b")'], "the builtin's name"),
        ("b'x' b", ['Bytes("x")', 'Identifier("b")'], "bytes need a quote right behind the b"),
        ("''", ["String"], "an empty value is not shown"),
    ],
)
def test_tokens(text: str, tokens: list[str], because: str) -> None:
    assert shown(text) == tokens, because


@pytest.mark.parametrize(
    ("text", "value", "because"),
    [
        ('"a"', "a", "double quotes"),
        ("'it\\'s'", "it's", "the own quote can be escaped"),
        (r'"\a\b\f\n\r\t\v\\"', "\a\b\f\n\r\t\v\\", "short escapes"),
        (r'"\x41\101\u0041\U00000041\u{41}"', "AAAAA", "five ways to number a character"),
        (r'"\u{1F600}"', "\U0001f600", "up to six digits in braces"),
        (r'"\ud800"', "\ufffd", "half a surrogate pair is no character"),
        (r'"\xff"', "\u00ff", "a number is a code point, not a byte"),
        ("`a\\n`", "a\\n", "raw text has no escapes"),
        ("`a``b\n`", "a`b\n", "but a doubled quote, and lines"),
        ('"a\rb\\t"', "a\nb\t", "a carriage return is a line feed"),
        (r"b'\xff\101'", "\xffA", "bytes, one character each"),
        ("b'\u00e9'", "\xc3\xa9", "other characters in bytes are UTF-8"),
    ],
)
def test_literals(text: str, value: str, because: str) -> None:
    assert next(iter(tokenize(text))).value == value, because


@pytest.mark.parametrize(
    ("text", "message", "because"),
    [
        ("@", "unrecognized character: U+0040 '@' (1:1)\n | @\n | ^", "not of this language"),
        ("if\x00", "unrecognized character: U+0000 (1:3)\n | if\x00\n | ..^", "unprintable: only its number"),
        ("\u00b2", "unrecognized character: U+00B2 '\u00b2' (1:1)\n | \u00b2\n | ^", "numeric, but no decimal digit"),
        ("0b15", 'bad number syntax: "0b15" (1:4)\n | 0b15\n | ...^', "points at the digit at fault"),
        ("'a", "literal not terminated (1:3)\n | 'a\n | ..^", "at the end of the text"),
        ("'a\nb'", "literal not terminated (1:3)\n | 'a\n | ..^", "at the end of the line"),
        ("`a", "literal not terminated (1:3)\n | `a\n | ..^", "raw text too"),
        ("/* a", "unclosed comment (1:5)\n | /* a\n | ....^", "comments as well"),
        (r'"\q"', 'invalid char escape (1:3)\n | "\\q"\n | ..^', "no such escape"),
        ('"\\\'"', 'invalid char escape (1:3)\n | "\\\'"\n | ..^', "the other quote needs none"),
        (r'"\x4"', 'invalid char escape (1:5)\n | "\\x4"\n | ....^', "too few digits"),
        (r'"\u{}"', 'invalid char escape (1:4)\n | "\\u{}"\n | ...^', "no digits"),
        (r'"\400"', 'unable to unescape string (1:6)\n | "\\400"\n | .....^', "beyond a byte"),
        (r'"\U00110000"', 'unable to unescape string (1:12)\n | "\\U00110000"\n | ...........^', "beyond Unicode"),
        (r"b'\u0041'", "unable to unescape string (1:9)\n | b'\\u0041'\n | ........^", "bytes have no code points"),
        ("a\n\t@", "unrecognized character: U+0040 '@' (2:2)\n |  @\n | .^", "second line; a tab shows as a blank"),
    ],
)
def test_faults(text: str, message: str, because: str) -> None:
    assert fault(text) == message, because


def test_tokens_are_read_lazily() -> None:
    tokens = tokenize('a "')
    assert str(next(tokens)) == 'Identifier("a")'
    with pytest.raises(ExprSyntaxError):
        next(tokens)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1_000", 1000),
        ("007", 7),
        ("0x2A", 42),
        ("0o52", 42),
        ("0b101010", 42),
        (".5", 0.5),
        ("1.", 1.0),
        ("1E3", 1000.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    number = read_number(text)
    assert (number, type(number)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "9223372036854775808",
            'invalid integer literal: strconv.ParseInt: parsing "9223372036854775808": value out of range',
        ),
        ("0x", 'invalid hex literal: strconv.ParseInt: parsing "0x": invalid syntax'),
        ("0x1.8", 'invalid hex literal: strconv.ParseInt: parsing "0x1.8": invalid syntax'),
        ("0b1E", 'invalid float literal: strconv.ParseFloat: parsing "0b1E": invalid syntax'),
        ("1e999", 'invalid float literal: strconv.ParseFloat: parsing "1e999": value out of range'),
    ],
)
def test_bad_numbers(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="literal") as caught:
        read_number(text)
    assert str(caught.value) == message


def test_a_number_of_many_digits_is_out_of_range() -> None:
    with pytest.raises(ValueError, match="value out of range"):
        read_number("9" * 10_000)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("a", '"a"'), ('"\\', '"\\"\\\\"'), ("\n\x00", '"\\n\\x00"'), ("\u00e9", '"\u00e9"'), ("\u200b", '"\\u200b"')],
)
def test_quotes(text: str, quoted: str) -> None:
    assert go_quote(text) == quoted


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ExprSyntaxError):
        *tokens, last = tokenize(text)
        assert [token.offset for token in tokens] == sorted(token.offset for token in tokens)
        assert last.kind == "EOF"
