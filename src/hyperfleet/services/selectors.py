"""Parses selectors, with the grammar of Kubernetes: `env=prod,tier in (web, db),!legacy`.

    selector     = requirement *( "," requirement )
    requirement  = key | "!" key | key ( "=" | "==" | "!=" ) [ value ] | key ( "in" | "notin" ) "(" values ")"

`filters` uses it for labels and for conditions, and checks keys and values.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

from hyperfleet.documents.wording import quote

MAX_VALUES: Final = 100  # in one pair of parentheses; each is a token of the query

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!,()<>]|[^\s=!,()<>]+|\Z)")
_OPERATORS: Final = "=, ==, !=, in, notin or a comma"
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", ",", "(", ")", "<", ">", ""})


class SelectorWord(Struct, frozen=True):
    """A key or a value, and its first character, from 1."""

    text: str
    at: int


class Requirement(Struct, frozen=True):
    """One requirement: the key has one of the values or none of them, or it exists or does not."""

    key: SelectorWord
    operator: Literal["in", "notin", "exists", "absent"]
    values: tuple[SelectorWord, ...] = ()


class SelectorFault(Struct, frozen=True):
    """An error in a selector, and its character, from 1."""

    at: int
    message: str


def parse_selector(text: str) -> tuple[list[Requirement], list[SelectorFault]]:
    """Parse a selector; after an error continue at the next comma, so that every error is found."""
    parser = _Parser(text)
    requirements: list[Requirement] = []
    faults: list[SelectorFault] = []
    while True:
        try:
            requirements.append(parser.requirement())
        except _FaultError as error:
            faults.append(error.fault)
            parser.skip_requirement()
        if not parser.take(","):
            return requirements, faults


class _FaultError(Exception):
    """Ends the parsing of one requirement; never leaves this module."""

    def __init__(self, found: SelectorWord, expected: str) -> None:
        what = f"found {quote(found.text)}" if found.text else "the selector ends here"
        self.fault = SelectorFault(found.at, f"{what}, expected {expected}")


class _Parser:
    """Parses the tokens of one selector; the last one is empty and stays."""

    def __init__(self, text: str) -> None:
        self._tokens = [SelectorWord(match[1], match.start(1) + 1) for match in _TOKEN.finditer(text)]
        self._start = self._next = 0

    def requirement(self) -> Requirement:
        """Parse one requirement; a comma or the end must follow."""
        self._start = self._next
        if self.take("!"):
            requirement = Requirement(self._word("a key after !"), "absent")
        else:
            requirement = self._comparison(self._word("a key"))
        if self._peek().text not in (",", ""):
            raise _FaultError(self._peek(), "a comma" if requirement.operator != "exists" else _OPERATORS)
        return requirement

    def take(self, symbol: str) -> bool:
        """Consume a symbol if it is the next token."""
        found = self._peek().text == symbol
        self._next += found
        return found

    def skip_requirement(self) -> None:
        """Skip to the comma that ends the faulty requirement: the next one outside parentheses."""
        self._next, depth = self._start, 0
        while (text := self._peek().text) and not (text == "," and depth <= 0):
            depth += (text == "(") - (text == ")")
            self._next += 1

    def _comparison(self, key: SelectorWord) -> Requirement:
        if self.take("=") or self.take("=="):
            return Requirement(key, "in", (self._value(),))
        if self.take("!="):
            return Requirement(key, "notin", (self._value(),))
        if self.take("in"):
            return Requirement(key, "in", self._values())
        if self.take("notin"):
            return Requirement(key, "notin", self._values())
        return Requirement(key, "exists")

    def _values(self) -> tuple[SelectorWord, ...]:
        opening = self._peek()
        if not self.take("("):
            raise _FaultError(opening, "( and a list of values")
        values = [self._word("a value")]
        while self.take(","):
            values.append(self._word("a value"))
        if not self.take(")"):
            raise _FaultError(self._peek(), "a comma or )")
        if len(values) > MAX_VALUES:
            raise _FaultError(values[MAX_VALUES], f"): at most {MAX_VALUES} values are allowed")
        return tuple(values)

    def _value(self) -> SelectorWord:
        """Parse a value; it may be empty, like that of a label."""
        following = self._peek()
        return SelectorWord("", following.at) if following.text in (",", "") else self._word("a value")

    def _word(self, expected: str) -> SelectorWord:
        word = self._peek()
        if word.text in _SYMBOLS:
            raise _FaultError(word, expected)
        self._next += 1
        return word

    def _peek(self) -> SelectorWord:
        return self._tokens[self._next]
