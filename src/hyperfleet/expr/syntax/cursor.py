"""The parser's place in a text: the current token, the budgets, and errors that point at it.

`parser` builds on it; nothing here knows the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from hyperfleet.errors import ExprSyntaxError
from hyperfleet.expr.nodes import ExprNode
from hyperfleet.expr.source import error_at
from hyperfleet.expr.syntax.lexer import LexerToken, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection

N = TypeVar("N", bound=ExprNode)


@dataclass(frozen=True, slots=True)
class Grammar:
    """What of the language depends on the caller: hidden and disabled builtins, and the budgets.

    `overridden` builtins are reached by `::name` only. Nesting is limited because Python's stack is; a chain of
    operators is not nesting. A longer text is no rule, and reading it would take longer than 50 ms.
    """

    overridden: Collection[str] = field(default=frozenset())
    disabled: Collection[str] = field(default=frozenset())
    max_length: int = 100_000
    max_nodes: int = 10_000
    max_depth: int = 150


class Cursor:
    """The state of one parse: the current token, and how much of the budgets is used."""

    __slots__ = ("_tokens", "ahead", "count", "depth", "end", "grammar", "predicates", "text", "token")

    def __init__(self, text: str, grammar: Grammar) -> None:
        """Stand at the first token of `text`."""
        self.text = text
        self.grammar = grammar
        self._tokens = tokenize(text)
        self.ahead: LexerToken | None = None
        self.end = 0  # where the last consumed token ended
        self.count = 0
        self.depth = 0
        self.predicates = 0  # how many predicates enclose the current token
        self.token = next(self._tokens)

    # Tokens

    def advance(self) -> LexerToken:
        """Consume the current token and return it."""
        token = self.token
        self.end = token.end
        if self.ahead is not None:
            self.token, self.ahead = self.ahead, None
        elif token.kind == "EOF":
            raise self.error("unexpected end of expression")
        else:
            self.token = next(self._tokens)
        return token

    def at(self, kind: str, value: str) -> bool:
        """Tell whether the current token is this one."""
        token = self.token
        return token.value == value and token.kind == kind

    def expect(self, kind: str, value: str) -> LexerToken:
        """Consume the current token, which must be this one."""
        if not self.at(kind, value):
            raise self.unexpected()
        return self.advance()

    def expect_name(self) -> LexerToken:
        """Consume the current token, which must be an identifier."""
        if self.token.kind != "Identifier":
            raise self.unexpected()
        return self.advance()

    # Errors and budgets

    def error(self, message: str, offset: int | None = None) -> ExprSyntaxError:
        """Build an error at `offset`, or at the current token."""
        return error_at(ExprSyntaxError, self.text, self.token.offset if offset is None else offset, message)

    def unexpected(self) -> ExprSyntaxError:
        """Build the error that the current token cannot stand here."""
        return self.error(f"unexpected token {self.token}")

    def too_deep(self) -> ExprSyntaxError:
        """Build the error that the nesting budget is used up."""
        return self.error(f"expression is nested too deeply (at most {self.grammar.max_depth} levels)")

    def too_many(self) -> ExprSyntaxError:
        """Build the error that the node budget is used up."""
        return self.error("compilation failed: expression exceeds maximum allowed nodes")

    def place(self, node: N, offset: int, start: int) -> N:
        """Count a new node and say where it stands: its text begins at `start` and ends here."""
        self.count += 1
        if self.count > self.grammar.max_nodes > 0:
            raise self.too_many()
        node.offset = offset
        node.start = start
        node.end = max(self.end, start)  # the `#` that `.name` implies has no text
        return node

    def charge(self, nodes: int) -> None:
        """Count nodes against the budget."""
        self.count += nodes
        if self.count > self.grammar.max_nodes > 0:
            raise self.too_many()
