"""Tokens to a tree, by precedence: choice, or, and, comparison, fallback, not, access."""

from __future__ import annotations

from typing import Final

from hyperfleet.adapter.dialect.lexer import DialectToken, read_number, read_text, tokenize
from hyperfleet.adapter.dialect.nodes import (
    AccessPath,
    AccessStep,
    Choice,
    ConstantValue,
    DialectNode,
    FallbackChain,
    FilterItem,
    FirstMatchStep,
    IndexStep,
    LogicalNot,
    LogicChain,
    MemberStep,
    Order,
    OrderTest,
    RootName,
)
from hyperfleet.adapter.faults import FaultSignal

MAX_SOURCE: Final = 10_000  # characters
MAX_DEPTH: Final = 24  # parentheses, brackets, choices and negations inside each other; parsing recurses

_ORDERS: Final[dict[str, Order]] = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS: Final = {"true": True, "false": False, "nil": None, "null": None}
_MIXED: Final = "?? beside another operator needs parentheses: (a ?? b) == c"


def parse_tree(source: str) -> DialectNode:
    """Parse an expression; raises FaultSignal at what is wrong."""
    if len(source) > MAX_SOURCE:
        raise FaultSignal(0, f"the expression has more than {MAX_SOURCE} characters")
    return _Parser(tokenize(source)).parse()


class _Parser:
    def __init__(self, tokens: list[DialectToken]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._filters = 0

    def parse(self) -> DialectNode:
        node = self._choice()
        if self._token.kind != "end":
            raise self._unexpected()
        return node

    @property
    def _token(self) -> DialectToken:
        return self._tokens[self._at]

    def _take(self, text: str) -> DialectToken | None:
        token = self._token
        if token.kind == "mark" and token.text == text:
            self._at += 1
            return token
        return None

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise FaultSignal(self._token.offset, f"expected {text} and not {self._token.text}")

    def _unexpected(self) -> FaultSignal:
        if self._token.text == "(":
            return FaultSignal(self._token.offset, "unexpected (: there are no functions here, CEL has them")
        return FaultSignal(self._token.offset, f"unexpected {self._token.text}")

    def _enter(self, offset: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FaultSignal(offset, f"more than {MAX_DEPTH} levels of parentheses, brackets or choices")

    def _choice(self) -> DialectNode:
        condition = self._or()
        mark = self._take("?")
        if mark is None:
            return condition
        self._enter(mark.offset)
        positive = self._choice()
        self._expect(":")
        negative = self._choice()
        self._depth -= 1
        return Choice(mark.offset, condition, positive, negative)

    def _or(self) -> DialectNode:
        first = self._and()
        operands = [first]
        while self._take("||"):
            operands.append(self._and())
        return first if len(operands) == 1 else LogicChain(first.offset, False, _unmixed(operands))

    def _and(self) -> DialectNode:
        first = self._comparison()
        operands = [first]
        while self._take("&&"):
            operands.append(self._comparison())
        return first if len(operands) == 1 else LogicChain(first.offset, True, _unmixed(operands))

    def _comparison(self) -> DialectNode:
        left = self._fallback()
        token = self._token
        if token.kind != "mark" or token.text not in _ORDERS:
            return left
        self._at += 1
        left, right = _unmixed([left, self._fallback()])
        if self._token.kind == "mark" and self._token.text in _ORDERS:
            raise FaultSignal(self._token.offset, "a comparison has two sides; join several with &&")
        return OrderTest(token.offset, _ORDERS[token.text], left, right)

    def _fallback(self) -> DialectNode:
        first = self._unary()
        operands = [first]
        mark = self._token
        while self._take("??"):
            operands.append(self._unary())
        return first if len(operands) == 1 else _Bare(mark.offset, tuple(operands))

    def _unary(self) -> DialectNode:
        if mark := self._take("!"):
            self._enter(mark.offset)
            node: DialectNode = LogicalNot(mark.offset, self._unary())
            self._depth -= 1
            return node
        if mark := self._take("-"):
            if self._token.kind != "number":
                raise FaultSignal(mark.offset, "- must be followed by a number; there is no arithmetic, CEL has it")
            return ConstantValue(mark.offset, -read_number(self._next()))
        return self._access()

    def _next(self) -> DialectToken:
        token = self._token
        self._at += 1
        return token

    def _access(self) -> DialectNode:
        origin = self._primary()
        steps: list[AccessStep] = []
        while step := self._step():
            steps.append(step)
        return AccessPath(origin.offset, origin, tuple(steps)) if steps else origin

    def _step(self) -> AccessStep | None:
        if mark := (self._take(".") or self._take("?.")):
            if self._token.kind != "name":
                raise FaultSignal(self._token.offset, f"a name is missing after {mark.text}")
            token = self._next()
            return MemberStep(token.offset, token.text)
        if mark := self._take("[?"):
            return self._filter(mark)
        if mark := self._take("["):
            return self._index(mark)
        return None

    def _index(self, mark: DialectToken) -> AccessStep:
        self._enter(mark.offset)
        index = self._choice()
        self._expect("]")
        self._depth -= 1
        if isinstance(index, ConstantValue) and isinstance(index.value, str):
            return MemberStep(index.offset, index.value)
        return IndexStep(mark.offset, index)

    def _filter(self, mark: DialectToken) -> AccessStep:
        self._enter(mark.offset)
        self._filters += 1
        self._expect("(")
        condition = self._choice()
        self._expect(")")
        self._expect("]")
        self._filters -= 1
        self._depth -= 1
        return FirstMatchStep(mark.offset, condition)

    def _primary(self) -> DialectNode:
        token = self._token
        match token.kind:
            case "name":
                self._at += 1
                if token.text in _CONSTANTS:
                    return ConstantValue(token.offset, _CONSTANTS[token.text])
                return RootName(token.offset, token.text)
            case "number":
                return ConstantValue(token.offset, read_number(self._next()))
            case "string":
                return ConstantValue(token.offset, read_text(self._next()))
            case "mark" if token.text == "(":
                return self._parentheses(token)
            case "mark" if token.text == "@":
                return self._item(token)
        raise FaultSignal(token.offset, f"expected a value and not {token.text}")

    def _parentheses(self, token: DialectToken) -> DialectNode:
        self._at += 1
        self._enter(token.offset)
        node = self._choice()
        self._expect(")")
        self._depth -= 1
        return FallbackChain(node.offset, node.operands) if isinstance(node, _Bare) else node

    def _item(self, token: DialectToken) -> DialectNode:
        if not self._filters:
            raise FaultSignal(token.offset, "@ is the item of a filter: [?(@.type=='Ready')]")
        self._at += 1
        return FilterItem(token.offset)


class _Bare(FallbackChain, frozen=True):
    """A `??` without parentheses around it."""


def _unmixed(operands: list[DialectNode]) -> tuple[DialectNode, ...]:
    """Refuse a bare `??` beside another operator."""
    for each in operands:
        if isinstance(each, _Bare):
            raise FaultSignal(each.offset, _MIXED)
    return tuple(operands)
