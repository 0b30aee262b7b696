"""The inside of one action: pipelines, commands and operands.

The parser makes one `CommandReader` for each action; the scope is shared, as variables outlive the action that
declares them.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.adapter.faults import FaultSignal
from hyperfleet.adapter.templates.lexer import ActionPiece, Token
from hyperfleet.adapter.templates.literals import read_character, read_number, read_string
from hyperfleet.adapter.templates.nodes import (
    ChainOperand,
    DotOperand,
    FieldName,
    FieldOperand,
    FunctionOperand,
    LiteralOperand,
    NilOperand,
    Operand,
    Pipeline,
    TemplateCommand,
    VariableOperand,
)
from hyperfleet.adapter.templates.scopes import ScopedNames
from hyperfleet.adapter.templates.signatures import SIGNATURES
from hyperfleet.documents.wording import suggest

MAX_PARENTHESES: Final = 32  # inside each other; reading and rendering recurse

_KEYWORDS: Final = frozenset({"if", "else", "end", "range", "with", "break", "continue", "define", "template", "block"})
_CONSTANTS: Final = {"true": True, "false": False}
_VALUES: Final = (DotOperand, NilOperand, LiteralOperand)  # cannot take what comes through a pipe


class CommandReader:
    """Reads the tokens of one action from left to right."""

    def __init__(self, piece: ActionPiece, scope: ScopedNames[None]) -> None:
        """Begin at the first token."""
        self._tokens = piece.tokens
        self._end = piece.end
        self._at = 0
        self._scope = scope
        self._depth = 0
        self.keyword_offset = piece.offset

    def take_keyword(self) -> str:
        """Take the keyword that comes next; empty if none does."""
        token = self._peek()
        if token and token.kind == "word" and token.text in _KEYWORDS:
            self._at += 1
            self.keyword_offset = token.offset
            return token.text
        return ""

    def expect_end(self, context: str) -> None:
        """Refuse anything more in this action."""
        token = self._peek()
        if token:
            raise FaultSignal(token.offset, f"unexpected {token.text} after {context}")

    def read_pipeline(self, context: str) -> Pipeline:
        """Read declarations and commands to the end of the action, or to the closing parenthesis."""
        start = self._offset()
        names, is_assignment = self._read_names(context)
        commands = [self._read_command(context, is_piped=False)]
        while self._take_mark("|"):
            commands.append(self._read_command(context, is_piped=True))
        if self._depth == 0:
            self.expect_end(context)
        for name in names:
            if is_assignment and not self._scope.has(name):
                raise FaultSignal(start, f"{name} is not declared; {name} := declares it")
            if not is_assignment:
                self._scope.declare(name, None)
        return Pipeline(start, tuple(commands), names, is_assignment)

    def _read_names(self, context: str) -> tuple[tuple[str, ...], bool]:
        """Read `$x :=`, `$x =` or, in a range, `$i, $x :=`; nothing is read if there is none."""
        begin = self._at
        names = self._take_variables()
        token = self._peek()
        is_declaration = token is not None and token.kind == "declare"
        if not names or token is None or not (is_declaration or token.text == "="):
            if len(names) > 1:
                raise FaultSignal(self._offset(), "expected := after the variables")
            self._at = begin
            return (), False
        if self._depth:  # `and` and `or` may not get there, and the variable would have no value
            raise FaultSignal(self._tokens[begin].offset, "variables cannot be set inside parentheses")
        if len(names) > (2 if context == "range" else 1):
            raise FaultSignal(self._tokens[begin].offset, f"too many variables for {context}")
        self._at += 1
        return names, not is_declaration

    def _take_variables(self) -> tuple[str, ...]:
        names: list[str] = []
        while (token := self._peek()) and token.kind == "variable":
            names.append(token.text)
            self._at += 1
            if not self._take_mark(","):
                break
        return tuple(names)

    def _read_command(self, context: str, *, is_piped: bool) -> TemplateCommand:
        start = self._offset()
        operands: list[Operand] = []
        while (token := self._peek()) and token.text not in ("|", ")"):
            if operands and self._tokens[self._at - 1].kind != "space":
                raise FaultSignal(token.offset, f"a blank is missing before {token.text}")
            operands.append(self._read_operand())
        if not operands:
            raise FaultSignal(start, "a command is missing" if is_piped else f"a value is missing: {context} has none")
        command = TemplateCommand(start, operands[0], tuple(operands[1:]))
        _check_command(command, is_piped=is_piped)
        return command

    def _read_operand(self) -> Operand:
        term = self._read_term()
        path = self._take_fields()
        if not path:
            return term
        if isinstance(term, FieldOperand):
            return FieldOperand(term.offset, (*term.path, *path))
        if isinstance(term, VariableOperand):
            return VariableOperand(term.offset, term.name, path)
        if isinstance(term, _VALUES):
            raise FaultSignal(path[0].offset, f"unexpected .{path[0].name}: a value has no fields here")
        if isinstance(term, FunctionOperand):
            _check_count(term, 0)
        return ChainOperand(term.offset, term, path)

    def _take_fields(self) -> tuple[FieldName, ...]:
        path: list[FieldName] = []
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "field":
            token = self._tokens[self._at]
            path.append(FieldName(token.offset, token.text[1:]))
            self._at += 1
        return tuple(path)

    def _read_term(self) -> Operand:
        token = self._peek()
        if token is None:
            raise FaultSignal(self._end, "a value is missing")
        self._at += 1
        match token.kind:
            case "word":
                return self._read_word(token)
            case "field":
                return FieldOperand(token.offset, (FieldName(token.offset, token.text[1:]),))
            case "variable":
                return self._read_variable(token)
            case "dot":
                return DotOperand(token.offset)
            case "number":
                return LiteralOperand(token.offset, read_number(token))
            case "string" | "raw":
                return LiteralOperand(token.offset, read_string(token))
            case "character":
                return LiteralOperand(token.offset, read_character(token))
            case _ if token.text == "(":
                return self._read_parentheses(token)
        raise FaultSignal(token.offset, f"unexpected {token.text}")

    def _read_word(self, token: Token) -> Operand:
        if token.text in _CONSTANTS:
            return LiteralOperand(token.offset, _CONSTANTS[token.text])
        if token.text == "nil":
            return NilOperand(token.offset)
        if token.text not in SIGNATURES:
            hint = suggest(token.text, tuple(SIGNATURES)) or f"; a variable is written .{token.text}"
            raise FaultSignal(token.offset, f"there is no function {token.text}{hint}")
        return FunctionOperand(token.offset, token.text)

    def _read_variable(self, token: Token) -> Operand:
        if not self._scope.has(token.text):
            raise FaultSignal(token.offset, f"{token.text} is not declared")
        return VariableOperand(token.offset, token.text)

    def _read_parentheses(self, token: Token) -> Operand:
        self._depth += 1
        if self._depth > MAX_PARENTHESES:
            raise FaultSignal(token.offset, f"more than {MAX_PARENTHESES} parentheses inside each other")
        pipeline = self.read_pipeline("parentheses")
        if not self._take_mark(")"):
            raise FaultSignal(token.offset, "the parenthesis is not closed")
        self._depth -= 1
        return pipeline

    def _take_mark(self, text: str) -> bool:
        token = self._peek()
        if token and token.kind == "mark" and token.text == text:
            self._at += 1
            return True
        return False

    def _peek(self) -> Token | None:
        """Return the next token that is no space."""
        while self._at < len(self._tokens) and self._tokens[self._at].kind == "space":
            self._at += 1
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _offset(self) -> int:
        token = self._peek()
        return token.offset if token else self._end


def _check_command(command: TemplateCommand, *, is_piped: bool) -> None:
    """Refuse what can never work: arguments for a value, and a wrong number of them for a function."""
    first = command.first
    if isinstance(first, NilOperand) and not command.arguments and not is_piped:
        raise FaultSignal(first.offset, "nil is not a command")
    if isinstance(first, (*_VALUES, Pipeline)) and (command.arguments or is_piped):
        raise FaultSignal(first.offset, "only a function takes arguments")
    for each in (first, *command.arguments):
        if isinstance(each, FunctionOperand):
            given = len(command.arguments) + is_piped if each is first else 0
            _check_count(each, given)


def _check_count(function: FunctionOperand, given: int) -> None:
    fault = SIGNATURES[function.name].check_count(given)
    if fault:
        raise FaultSignal(function.offset, f"{function.name} takes {fault}, and gets {given}")
