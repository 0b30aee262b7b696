"""The syntax of `search` (Tree Search Language): from text to a tree of tests. `search` gives fields their meaning.

It accepts more than the original: hyphens and capitals in names, `in (…)` beside `in […]`, and NOT anywhere. The scope
of the caller is combined with the tree, never with the text, so no text can escape it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from hyperfleet.api.compat.problems import BAD_REQUEST, CompatRefused
from hyperfleet.documents.wording import quote

MAX_SEARCH: Final = 4096  # bytes, as in the original
MAX_DEPTH: Final = 50  # of parentheses and NOTs: far more than needed, and safe for the recursive parser

Operator = Literal["=", "<", "<=", ">", ">=", "in", "like", "ilike", "between", "null"]
Value: TypeAlias = str | float | bool


class Test(Struct, frozen=True):
    """A comparison of a field with values; for an absent field, only `null` holds."""

    field: str
    operator: Operator
    values: tuple[Value, ...] = ()


class AllOf(Struct, frozen=True):
    """Holds when every part does."""

    parts: tuple[Node, ...]


class AnyOf(Struct, frozen=True):
    """Holds when some part does."""

    parts: tuple[Node, ...]


class Negation(Struct, frozen=True):
    """Holds when its part does not; an absent field is not equal to anything."""

    part: Node


Node: TypeAlias = Test | AllOf | AnyOf | Negation

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`\\]|\\.)*`)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?(?:[kKMGTP]i?)?(?![\w.]))
  | (?P<word>[A-Za-z_][\w./-]*)
  | (?P<sign>==|!=|<>|<=|>=|[=<>()\[\],])
  | (?P<end>$)
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_COMPARISONS: Final[dict[str, Operator]] = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_RESERVED: Final = frozenset(
    {"and", "or", "not", "like", "ilike", "in", "between", "is", "null", "true", "false", "len", "any", "all", "sum"}
)
_POWERS: Final = "kmgtp"


class _Token(Struct, frozen=True):
    kind: str
    text: str
    at: int

    @property
    def keyword(self) -> str:
        return self.text.lower() if self.kind in ("word", "sign") else ""


def parse(text: str) -> Node:
    """Parse a search; an error ends the request."""
    if len(text.encode()) > MAX_SEARCH:
        raise fail(f"a search has at most {MAX_SEARCH} bytes")
    if "\0" in text:  # databases do not accept it in text
        raise fail("the text contains NUL")
    parser = _Parser(_split(text))
    node = parser.alternatives()
    parser.expect_end()
    return node


def fail(message: str) -> CompatRefused:
    """Return the problem of an invalid search."""
    return CompatRefused(BAD_REQUEST, f"search: {message}")


def _split(text: str) -> list[_Token]:
    tokens, at = [], 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            raise fail(f"cannot read {quote(text[at:].strip()[:40])} at character {at + 1}")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
        if kind == "end":
            return tokens
        at = match.end()


class _Parser:
    """Parses the tokens of one search."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    def alternatives(self) -> Node:
        """Read parts with OR between them."""
        parts = [self._conjunction()]
        while self._accept("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def expect_end(self) -> None:
        """Refuse further tokens."""
        if self._next.kind != "end":
            raise self._unexpected("and, or, or the end")

    def _conjunction(self) -> Node:
        parts = [self._part()]
        while self._accept("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _part(self) -> Node:
        if self._accept("not"):
            return Negation(self._deeper(self._part))
        if self._accept("("):
            node = self._deeper(self.alternatives)
            self._expect(")")
            return node
        return self._test()

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise fail(f"nested deeper than {MAX_DEPTH} levels")
        node = read()
        self._depth -= 1
        return node

    def _test(self) -> Node:
        field = self._next
        if field.kind != "word" or field.keyword in _RESERVED:
            raise self._unexpected("the name of a field")
        self._index += 1
        if self._accept("is"):
            is_negated = self._accept("not")
            self._expect("null")
            return _negate(Test(field.text, "null"), is_negated)
        if self._accept("!=") or self._accept("<>"):
            return Negation(Test(field.text, "=", (self._value(),)))
        for sign, operator in _COMPARISONS.items():
            if self._accept(sign):
                return Test(field.text, operator, (self._value(),))
        return self._worded_test(field.text)

    def _worded_test(self, field: str) -> Node:
        is_negated = self._accept("not")
        if self._accept("in"):
            return _negate(Test(field, "in", self._list()), is_negated)
        if self._accept("like"):
            return _negate(Test(field, "like", (self._value(),)), is_negated)
        if self._accept("ilike"):
            return _negate(Test(field, "ilike", (self._value(),)), is_negated)
        if self._accept("between"):
            low = self._value()
            self._expect("and")
            return _negate(Test(field, "between", (low, self._value())), is_negated)
        raise self._unexpected("a comparison such as = or in")

    def _list(self) -> tuple[Value, ...]:
        closing = "]" if self._accept("[") else ")"
        if closing == ")":
            self._expect("(")
        values = [self._value()]
        while self._accept(","):
            values.append(self._value())
        self._expect(closing)
        return tuple(values)

    def _value(self) -> Value:
        token = self._next
        self._index += 1
        if token.kind == "text":
            return _ESCAPED.sub(lambda found: found[1] or found[0][0], token.text[1:-1])
        if token.kind == "number":
            return _read_number(token.text)
        if token.keyword in ("true", "false"):
            return token.keyword == "true"
        self._index -= 1
        raise self._unexpected("a value such as 'x', 1 or true")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._index]

    def _accept(self, keyword: str) -> bool:
        found = self._next.keyword == keyword
        self._index += found
        return found

    def _expect(self, keyword: str) -> None:
        if not self._accept(keyword):
            raise self._unexpected(keyword)

    def _unexpected(self, wanted: str) -> CompatRefused:
        token = self._next
        found = quote(token.text[:40]) if token.text else "the end"
        return fail(f"found {found} at character {token.at}, expected {wanted}")


def _negate(node: Node, is_negated: bool) -> Node:
    return Negation(node) if is_negated else node


def _read_number(text: str) -> float:
    """Read a number; `2k` is 2000, `2Ki` is 2048."""
    bare = text.rstrip("kKMGTPi")
    suffix = text[len(bare) :]
    if not suffix:
        return float(bare)
    base = 1024.0 if suffix.endswith("i") else 1000.0
    return float(bare) * base ** (1 + _POWERS.index(suffix[0].lower()))
