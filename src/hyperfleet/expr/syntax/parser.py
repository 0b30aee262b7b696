"""Tokens to a tree: operator precedence by recursive descent.

`parse` is called by the front door and by tools that look at trees. The parser desugars (see `nodes`), counts nodes
and nesting against budgets, and reports the first error with the original's text. It knows no types: of the
environment it needs only the names that hide functions of the language.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from hyperfleet.errors import ExprSyntaxError
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Bytes,
    Call,
    Chain,
    Conditional,
    ExprNode,
    Float,
    Identifier,
    Integer,
    Let,
    MapLiteral,
    MemberAccess,
    Nil,
    Pair,
    Pointer,
    Predicate,
    Sequence,
    Slice,
    String,
    Unary,
)
from hyperfleet.expr.signatures import BUILTINS, PREDICATES
from hyperfleet.expr.syntax.cursor import Cursor, Grammar
from hyperfleet.expr.syntax.literals import read_number
from hyperfleet.expr.syntax.precedence import BINARY, COMPARISONS, NEGATABLE, RIGHT_ASSOCIATIVE, UNARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.syntax.lexer import LexerToken

_CONSTANTS: dict[str, Callable[[], ExprNode]] = {
    "true": lambda: Boolean(True),
    "false": lambda: Boolean(False),
    "nil": Nil,
}
_ATOMS = frozenset({"Identifier", "Number", "String"})


def parse(text: str, grammar: Grammar | None = None) -> ExprNode:
    """Return the tree of `text`; raise `ExprSyntaxError` when it has none."""
    grammar = grammar or Grammar()
    if len(text) > grammar.max_length:
        raise ExprSyntaxError(f"expression is too long (at most {grammar.max_length} characters)")
    parser = _Parser(text, grammar)
    try:
        return parser.program()
    except RecursionError:  # the caller's own stack was deep already
        raise parser.too_deep() from None


class _Operand(NamedTuple):
    """An operand of a comparison: where its text begins and ends, and how many nodes it has."""

    node: ExprNode
    start: int
    end: int
    size: int


class _Parser(Cursor):
    """One method for each rule of the grammar."""

    __slots__ = ()

    # Sequences, declarations, conditions

    def program(self) -> ExprNode:
        """Parse the whole text."""
        tree = self.sequence()
        if self.token.kind != "EOF":
            raise self.unexpected()
        return tree

    def sequence(self) -> ExprNode:
        """Parse expressions with `;` between them; a last `;` may stand before the end of the text only."""
        start = self.token.offset
        first = self.expression()
        if not self.at("Operator", ";"):
            return first
        items = [first]
        while self.at("Operator", ";"):
            self.advance()
            if self.token.kind == "EOF":
                break
            items.append(self.expression())
        if len(items) == 1:
            return first
        return self.place(Sequence(tuple(items)), first.offset, start)

    def expression(self, precedence: int = 0) -> ExprNode:
        """Parse one expression, a level deeper; operators that bind weaker than `precedence` end it."""
        self.depth += 1
        if self.depth > self.grammar.max_depth:
            raise self.too_deep()
        node = self._statement() if precedence == 0 else self.binary(precedence)
        self.depth -= 1
        return node

    def _statement(self) -> ExprNode:
        token = self.token
        if token.kind == "Operator":
            if token.value == "let":
                return self.declarations()
            if token.value == "if":
                return self.if_else()
        before = self.count
        test = self.binary(0)
        if self.token.value != "?":
            return test
        return self.conditional(test, token.offset, self.count - before)

    def declarations(self) -> ExprNode:
        """Parse `let` after `let` and what they are for; a loop, so that many need no nesting."""
        found: list[Let] = []
        while self.at("Operator", "let"):
            start = self.advance().offset
            name = self.expect_name()
            self.expect("Operator", "=")
            value = self.expression()
            found.append(self.place(Let(name.value, value, value), name.offset, start))  # its body comes below
            self.expect("Operator", ";")
        body = self.sequence()
        for declaration in reversed(found):
            declaration.body, declaration.end = body, self.end
            body = declaration
        return body

    def if_else(self) -> ExprNode:
        """Parse `if test { … } else { … }`, where another `if` may follow `else`."""
        start = self.advance().offset
        test = self.expression()
        then = self._block()
        self.expect("Operator", "else")
        otherwise = self.expression() if self.at("Operator", "if") else self._block()
        # The original neither counts nor places this node.
        return Conditional(test, then, otherwise, start=start, end=self.end)

    def _block(self) -> ExprNode:
        self.expect("Bracket", "{")
        body = self.sequence()
        self.expect("Bracket", "}")
        return body

    def conditional(self, node: ExprNode, start: int, size: int) -> ExprNode:
        """Parse `? then : otherwise` and `?: otherwise` after a test of `size` nodes."""
        while self.at("Operator", "?"):
            self.advance()
            if self.at("Operator", ":"):
                self.advance()
                self.charge(size)  # the test occurs twice
                then = node
            else:
                then = self.expression()
                self.expect("Operator", ":")
            otherwise = self.expression()
            node = self.place(Conditional(node, then, otherwise), self.token.offset, start)
        return node

    # Operators

    def binary(self, precedence: int) -> ExprNode:
        """Parse operands and the operators between them that bind at least as strong as `precedence`."""
        start = self.token.offset
        left = self.operand()
        previous = ""
        while (operator := self._operator(precedence)) is not None:
            token, negated = operator
            if token.value == "|":
                left = self.call(self.expect_name(), start, (left,))
            elif previous == "??" and token.value != "??":
                raise self.error(
                    f"Operator ({token.value}) and coalesce expressions (??) cannot be mixed."
                    " Wrap either by parentheses.",
                    token.offset,
                )
            elif token.value in COMPARISONS:
                left = self.comparisons(left, token, start)
            else:
                left = self.place(Binary(token.value, left, self._right(token.value)), token.offset, start)
                if negated:
                    left = self.place(Unary("not", left), token.offset, start)
            previous = token.value
        return left

    def _operator(self, precedence: int) -> tuple[LexerToken, bool] | None:
        """Consume the next operator if it binds strong enough; tell whether `not` stands before it."""
        token = self.token
        if token.kind != "Operator":
            return None
        if token.value == "not":
            return self._negated(precedence)
        if BINARY.get(token.value, -1) < precedence:
            return None
        self.advance()
        return token, False

    def _negated(self, precedence: int) -> tuple[LexerToken, bool] | None:
        negation = self.advance()
        token = self.token
        if token.value not in NEGATABLE:
            raise self.unexpected()
        if BINARY[token.value] < precedence:
            self.ahead, self.token = token, negation
            return None
        self.advance()
        return token, True

    def _right(self, operator: str) -> ExprNode:
        """Parse the right operand; only right-associative operators nest."""
        if operator in RIGHT_ASSOCIATIVE:
            return self.expression(BINARY[operator])
        return self.binary(BINARY[operator] + 1)

    def comparisons(self, left: ExprNode, token: LexerToken, start: int) -> ExprNode:
        """Parse `left < b <= c …` after its first operator, as `left < b && b <= c …`."""
        operators = [token]
        operands = [_Operand(left, start, self.end, 0), self._compared(token)]
        while self.token.kind == "Operator" and self.token.value in COMPARISONS:
            operators.append(self.advance())
            operands.append(self._compared(operators[-1]))
        self.charge(sum(operand.size for operand in operands[1:-1]))  # those in the middle occur twice
        chain: ExprNode | None = None
        for operator, (one, other) in zip(operators, pairwise(operands), strict=True):
            pair = self.place(Binary(operator.value, one.node, other.node), operator.offset, one.start)
            chain = pair if chain is None else self.place(Binary("&&", chain, pair), operator.offset, start)
            chain.end = pair.end = other.end
        return chain or left

    def _compared(self, operator: LexerToken) -> _Operand:
        """Parse what stands behind an operator of comparison."""
        start, before = self.token.offset, self.count
        node = self._right(operator.value)
        return _Operand(node, start, self.end, self.count - before)

    def operand(self) -> ExprNode:
        """Parse what stands between operators, with the accesses behind it."""
        token = self.token
        if token.kind == "Operator":
            return self._prefixed(token)
        if token.kind == "Bracket" and token.value == "(":
            self.advance()
            inner = self.sequence()
            self.expect("Bracket", ")")
            return self.accesses(inner, token.offset)
        if token.kind == "Number":
            self.advance()
            return self._number(token)
        if token.kind == "Identifier" and token.value in _CONSTANTS:
            self.advance()
            return self.place(_CONSTANTS[token.value](), token.offset, token.offset)
        return self.accesses(self._atom(token), token.offset)

    def _prefixed(self, token: LexerToken) -> ExprNode:
        """Parse an operand that begins with an operator."""
        start = token.offset
        if token.value in UNARY:
            self.advance()
            inner = self.expression(UNARY[token.value])
            return self.accesses(self.place(Unary(token.value, inner), start, start), start)
        if self.predicates and token.value in ("#", "."):
            return self.accesses(self._pointer(token), start)
        if token.value == "::":
            self.advance()
            return self.accesses(self.call(self.expect_name(), start, may_override=False), start)
        raise self.unexpected()

    def _pointer(self, token: LexerToken) -> Pointer:
        """Parse `#name`; before `.name` a `#` is understood."""
        name = ""
        if token.value == "#":
            self.advance()
            if self.token.kind == "Identifier":
                name = self.advance().value
        return self.place(Pointer(name), token.offset, token.offset)

    def _number(self, token: LexerToken) -> Integer | Float:
        try:
            value = read_number(token.value)
        except ValueError as error:
            raise self.error(str(error)) from None
        node = Integer(value) if isinstance(value, int) else Float(value)
        return self.place(node, token.offset, token.offset)

    def _atom(self, token: LexerToken) -> ExprNode:
        """Parse a name, a call, a string, bytes, an array or a map."""
        start = token.offset
        if token.kind == "Identifier":
            self.advance()
            if self.at("Bracket", "("):
                return self.call(token, start)
            return self.place(Identifier(token.value), start, start)
        if token.kind == "String":
            self.advance()
            return self.place(String(token.value), start, start)
        if token.kind == "Bytes":
            self.advance()
            return self.place(Bytes(token.value.encode("latin-1")), start, start)
        if token.value == "[" and token.kind == "Bracket":
            return self.array()
        if token.value == "{" and token.kind == "Bracket":
            return self.map()
        raise self.unexpected()

    def array(self) -> ExprNode:
        """Parse `[a, b, c]`."""
        token = self.advance()
        items: list[ExprNode] = []
        while not self.at("Bracket", "]"):
            if items:
                self.expect("Operator", ",")
                if self.at("Bracket", "]"):
                    break
            items.append(self.expression())
        self.advance()
        return self.place(ArrayLiteral(tuple(items)), token.offset, token.offset)

    def map(self) -> ExprNode:
        """Parse `{key: value, …}`."""
        token = self.advance()
        pairs: list[Pair] = []
        while not self.at("Bracket", "}"):
            if pairs:
                self.expect("Operator", ",")
                if self.at("Bracket", "}"):
                    break
                if self.at("Operator", ","):
                    raise self.unexpected()
            start = self.token.offset
            key = self._key()
            self.expect("Operator", ":")
            value = self.expression()
            pairs.append(self.place(Pair(key, value), token.offset, start))
        self.advance()
        return self.place(MapLiteral(tuple(pairs)), token.offset, token.offset)

    def _key(self) -> ExprNode:
        token = self.token
        if token.kind in _ATOMS:
            key = self.place(String(token.value), token.offset, token.offset)
            self.advance()
            key.end = self.end
            return key
        if self.at("Bracket", "("):
            return self.expression()
        raise self.error(
            "a map key must be a quoted string, a number, a identifier, or an expression"
            f" enclosed in parentheses (unexpected token {token})"
        )

    # Calls

    def call(
        self, name: LexerToken, start: int, piped: tuple[ExprNode, ...] = (), *, may_override: bool = True
    ) -> ExprNode:
        """Parse the arguments of `name`; a pipe has given the first one already."""
        if not self._is_builtin(name.value, may_override=may_override):
            callee = self.place(Identifier(name.value), name.offset, name.offset)
            return self.place(Call(callee, self.arguments(piped)), name.offset, start)
        shape = PREDICATES.get(name.value)
        arguments = self.arguments(piped) if shape is None else self.predicate_arguments(shape, piped)
        return self.place(Builtin(name.value, arguments), name.offset, start)

    def _is_builtin(self, name: str, *, may_override: bool) -> bool:
        """Tell whether a name that is called is a function of the language."""
        hidden = may_override and name in self.grammar.overridden
        return name in BUILTINS and not hidden and name not in self.grammar.disabled

    def arguments(self, piped: tuple[ExprNode, ...] = ()) -> tuple[ExprNode, ...]:
        """Parse `(a, b, c)` behind the piped argument."""
        self.expect("Bracket", "(")
        found: list[ExprNode] = []
        while not self.at("Bracket", ")"):
            if found:
                self.expect("Operator", ",")
                if self.at("Bracket", ")"):
                    break
            found.append(self.expression())
        self.advance()
        return (*piped, *found)

    def predicate_arguments(self, shape: str, piped: tuple[ExprNode, ...]) -> tuple[ExprNode, ...]:
        """Parse the arguments of a builtin that takes a predicate, as its shape says."""
        self.expect("Bracket", "(")
        found = list(piped)
        rest = shape[len(piped) :]
        for index, argument in enumerate(rest):
            if self.at("Bracket", ")"):
                if argument.isupper():
                    break
                raise self.error(f"expected at least {len(rest)} arguments")
            if index > 0:
                self.expect("Operator", ",")
            found.append(self.predicate() if argument in "pP" else self.expression())
        if self.at("Operator", ","):
            self.advance()
        self.expect("Bracket", ")")
        return tuple(found)

    def predicate(self) -> Predicate:
        """Parse `{ … }` or a bare expression in which `#` and `.name` stand for an element."""
        start = self.token.offset
        has_braces = self.at("Bracket", "{")
        self.predicates += 1
        if has_braces:
            self.advance()
            body = self.sequence()
        else:
            body = self.expression()
            if self.at("Operator", ";"):
                raise self.error("wrap predicate with brackets { and }")
        self.predicates -= 1
        if has_braces:
            self.expect("Bracket", "}")
        return self.place(Predicate(body), start, start)

    # Accesses

    def accesses(self, node: ExprNode, start: int) -> ExprNode:
        """Parse `.name`, `?.name`, `[key]` and `[a:b]` behind `node`, as many as there are."""
        while True:
            token = self.token
            if token.kind == "Operator" and token.value in (".", "?."):
                self.advance()
                if token.value == "?." and self.at("Bracket", "["):
                    node = self.subscript(node, start, optional=True)
                else:
                    node = self.member(node, start, optional=token.value == "?.")
            elif token.value == "[" and token.kind == "Bracket":
                node = self.subscript(node, start, optional=False)
            else:
                return node

    def member(self, base: ExprNode, start: int, *, optional: bool) -> ExprNode:
        """Parse the name behind a dot, and its arguments when it is a method."""
        name = self.advance()
        is_word = name.kind == "Operator" and name.value.isalpha()
        if name.kind != "Identifier" and not is_word:
            raise self.error("expected name")
        key = self.place(String(name.value), name.offset, name.offset)
        is_chain = isinstance(base, Chain)
        if isinstance(base, Chain):
            base = base.body
        member = self.place(MemberAccess(base, key, optional), name.offset, start)
        node: ExprNode = member
        if self.at("Bracket", "("):
            member.is_method = True
            node = self.place(Call(member, self.arguments()), name.offset, start)
        if is_chain or optional:
            node = self.place(Chain(node), name.offset, start)
        return node

    def subscript(self, base: ExprNode, start: int, *, optional: bool) -> ExprNode:
        """Parse `[key]`, `[a:b]`, `[a:]`, `[:b]` or `[:]`; a slice is never optional."""
        offset = self.advance().offset
        lower = None if self.at("Operator", ":") else self.expression()
        node: Slice | MemberAccess
        if lower is None or self.at("Operator", ":"):
            self.advance()
            upper = None if self.at("Bracket", "]") else self.expression()
            node = self.place(Slice(base, lower, upper), offset, start)
            optional = False
        else:
            node = self.place(MemberAccess(base, lower, optional), offset, start)
        chain = self.place(Chain(node), offset, start) if optional else None
        self.expect("Bracket", "]")
        node.end = self.end
        if chain is None:
            return node
        chain.end = self.end
        return chain
