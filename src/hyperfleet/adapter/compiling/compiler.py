"""Turn the texts of a file into templates, expressions and field paths, and collect what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from hyperfleet.adapter.compiling.names import KnownNames
from hyperfleet.adapter.config import ApiCall, LogLevel, LogLine
from hyperfleet.adapter.dialect import choose_language, parse_dialect
from hyperfleet.adapter.documents.parts import ApiCallPart, LogPart
from hyperfleet.adapter.expressions import CelExpression, DialectExpression, Expression, FieldExpression
from hyperfleet.adapter.faults import SourceFault, make_fault, place_source_faults
from hyperfleet.adapter.field_paths import FieldPath, parse_field
from hyperfleet.adapter.templates import TemplateTree, TextTemplate, parse_text, parse_tree, variables_of
from hyperfleet.cel import HELPERS, LISTS, RESERVED_NAMES, CelEnvironment, CelFault, Program, place_faults
from hyperfleet.document_problem import DocumentPlace, DocumentProblem, Level
from hyperfleet.documents import Places, good_items
from hyperfleet.documents.durations import parse_duration

_FUNCTIONS: Final = (*HELPERS, *LISTS)
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_UNDECLARED: Final = re.compile(r"undeclared reference to '\.?([A-Za-z_][A-Za-z0-9_]*)")  # also of `name.field`
_MAX_ROUNDS: Final = 10  # of finding the names that a capture reads; each round finds all that the engine reports
_LEVELS: Final[dict[str, LogLevel]] = {"warn": "warning", "debug": "debug", "error": "error", "warning": "warning"}
_BODY_METHODS: Final = ("POST", "PUT", "PATCH")

# Stand for a text with a problem; a config with one is never used.
NO_TEMPLATE: Final = TextTemplate("", ())
NO_PATH: Final = FieldPath("", ())


def make_environment(names: Iterable[str]) -> CelEnvironment:
    """Return the environment of all expressions of a file; names that CEL cannot have are left out."""
    usable = {name for name in names if _NAME.fullmatch(name) and name not in RESERVED_NAMES}
    return CelEnvironment(dict.fromkeys(sorted(usable), "any"), _FUNCTIONS)


class Compiler:
    """Compiles texts at their pointers, and collects problems."""

    def __init__(
        self,
        names: KnownNames,
        environment: CelEnvironment,
        places: Places,
        problems: list[DocumentProblem] | None = None,
    ) -> None:
        """Compile texts of one document."""
        self.names = names
        self.environment = environment
        self.places = places
        self.problems: list[DocumentProblem] = [] if problems is None else problems

    def within(self, places: Places) -> Compiler:
        """Return a compiler for another document with the same names and problems."""
        return Compiler(self.names, self.environment, places, self.problems)

    def report(self, pointer: str, message: str, code: str, level: Level = "error", *, is_key: bool = False) -> None:
        """Add a problem at a pointer."""
        place = self.places.key(pointer) if is_key else self.places.value(pointer)
        self.problems.append(DocumentProblem(place, message, code, level))

    # ── templates ────────────────────────────────────────────────────────────────────────────────────────────────

    def text(self, source: str | None, pointer: str) -> TextTemplate:
        """Compile a template, and check its variables."""
        if source is None:
            return NO_TEMPLATE
        template, faults = parse_text(source)
        self.problems += place_source_faults(faults, self.places, pointer, "Template")
        if template is None:
            return NO_TEMPLATE
        unknown = self._find_unknown(template)
        self.problems += place_source_faults(unknown, self.places, pointer, "UndefinedVariable")
        return template

    def optional_text(self, source: str | None, pointer: str) -> TextTemplate | None:
        """Compile a template that may be missing."""
        return None if source is None else self.text(source, pointer)

    def key(self, source: str, pointer: str) -> TextTemplate:
        """Compile the key of a map as a template."""
        template, faults = parse_text(source)
        for fault in (*faults, *(self._find_unknown(template) if template else ())):
            self.report(pointer, fault.message, "Template" if faults else "UndefinedVariable", is_key=True)
        return template or NO_TEMPLATE

    def file_text(self, source: str, file: str) -> TextTemplate:
        """Compile a template that is a whole file."""
        template, faults = parse_text(source)
        codes = [(fault, "Template") for fault in faults]
        codes += [(fault, "UndefinedVariable") for fault in (self._find_unknown(template) if template else ())]
        for fault, code in codes:
            place = DocumentPlace(file, fault.line, fault.column)
            self.problems.append(DocumentProblem(place, fault.message, code, snippet=fault.snippet))
        return template or NO_TEMPLATE

    def tree(self, structure: Any, pointer: str) -> TemplateTree:
        """Compile a structure whose texts are templates."""
        tree, faults = parse_tree(structure)
        for each in faults:
            inner = pointer + each.pointer
            self.problems += place_source_faults([each.fault], self.places, inner, "Template")
        for use in tree.variables() if tree else ():
            message = self.names.find_fault(use.use.path, is_template=True)
            if message:
                fault = make_fault(use.source, use.use.offset, message)
                inner = pointer + use.pointer
                self.problems += place_source_faults([fault], self.places, inner, "UndefinedVariable")
        return tree or TemplateTree(None)

    def _find_unknown(self, template: TextTemplate) -> list[SourceFault]:
        return [
            make_fault(template.source, use.offset, message)
            for use in variables_of(template)
            if (message := self.names.find_fault(use.path, is_template=True))
        ]

    # ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────

    def expression(
        self, source: str | None, pointer: str, *, is_gate: bool = False, is_contract: bool = False
    ) -> Expression:
        """Compile an expression, in CEL or in the contract's dialect, and check its variables."""
        if source is None:
            return self._nothing()
        if choose_language(source, is_contract_block=is_contract) == "dialect":
            return self._dialect(source, pointer)
        program, faults = self.environment.compile(source)
        if program is None:
            self._report_faults(faults, source, pointer)
            return self._nothing()
        self._check_uses(program, pointer)
        if is_gate and program.result not in ("bool", "dyn"):
            message = f"the result is {program.result}, not a boolean: it counts as true unless it is empty"
            self.report(pointer, message, "NotBoolean", "warning")
        return CelExpression(program)

    def optional_gate(self, source: str | None, pointer: str) -> Expression | None:
        """Compile a gate that may be missing."""
        return None if source is None else self.expression(source, pointer, is_gate=True)

    def open_expression(self, source: str, pointer: str) -> tuple[Expression, CelEnvironment]:
        """Compile an expression that sees the keys of an answer: any name may be one."""
        names: set[str] = set()
        for _ in range(_MAX_ROUNDS):
            environment = make_environment(names)
            program, faults = environment.compile(source)
            unknown = {found[1] for each in faults if (found := _UNDECLARED.match(each.message))} - names
            if not unknown:
                break
            names |= unknown
        self.problems += place_faults(faults, self.places, pointer)
        return CelExpression(program) if program else self._nothing(), environment

    def field(self, source: str | None, pointer: str, *, is_open: bool = False) -> FieldExpression:
        """Compile a field path; unless it is open, its first name must be a variable."""
        if source is None:
            return FieldExpression(NO_PATH)
        path, faults = parse_field(source)
        self.problems += place_source_faults(faults, self.places, pointer, "FieldPath")
        if path is None:
            return FieldExpression(NO_PATH)
        message = self.names.find_fault((path.first_name,)) if path.first_name and not is_open else ""
        if message:
            self.report(pointer, message, "UndefinedVariable")
        return FieldExpression(path)

    def _dialect(self, source: str, pointer: str) -> Expression:
        program, faults = parse_dialect(source)
        self.problems += place_source_faults(faults, self.places, pointer, "Expression")
        if program is None:
            return self._nothing()
        for use in program.paths():
            for length in range(1, min(len(use.path), 2) + 1):
                message = self.names.find_fault(use.path[:length])
                if message:
                    place = self.places.inside(pointer, use.line, use.column)
                    self.problems.append(DocumentProblem(place, message, "UndefinedVariable"))
        return DialectExpression(program)

    def _report_faults(self, faults: Iterable[CelFault], source: str, pointer: str) -> None:
        """Report what is wrong with an expression; an unknown variable at its name, with the likely correction."""
        for fault in faults:
            found = _UNDECLARED.match(fault.message)
            message = self.names.find_fault((found[1],)) if found else ""
            if found and message:
                offset = _find_name(source, found[1], fault)
                placed = make_fault(source, offset, message)
                self.problems += place_source_faults([placed], self.places, pointer, "UndefinedVariable")
            else:
                self.problems += place_faults([fault], self.places, pointer)

    def _check_uses(self, program: Program, pointer: str) -> None:
        seen = set()
        for use in program.uses:
            paths: list[tuple[str, ...]] = [(use.variable,)]
            paths += [(use.variable, use.member)] if use.member else []
            for path in paths:
                message = self.names.find_fault(path)
                if message and path not in seen:
                    seen.add(path)
                    fault = make_fault(program.source, use.offset, message)
                    self.problems += place_source_faults([fault], self.places, pointer, "UndefinedVariable")

    def _nothing(self) -> Expression:
        """Stand for an expression with a problem."""
        program = self.environment.compile("false").program
        assert program is not None  # noqa: S101 - a constant always compiles
        return CelExpression(program)

    # ── calls and log lines ──────────────────────────────────────────────────────────────────────────────────────

    def call(self, part: ApiCallPart, pointer: str) -> ApiCall:
        """Compile an API call."""
        if part.body is not None and part.method is not None and part.method not in _BODY_METHODS:
            message = f"a {part.method} request has no body: this one is not sent"
            self.report(f"{pointer}/body", message, "NoEffect", "warning", is_key=True)
        return ApiCall(
            method=part.method,
            url=self.text(part.url, f"{pointer}/url"),
            body=self.optional_text(part.body, f"{pointer}/body"),
            headers=tuple(
                (each.name, self.text(each.value, f"{pointer}/headers/{index}/value"))
                for index, each in good_items(part.headers)
            ),
            timeout=self._timeout(part.timeout, f"{pointer}/timeout"),
            attempts=part.retry_attempts,
            backoff=part.retry_backoff,
        )

    def _timeout(self, text: str | None, pointer: str) -> timedelta | None:
        try:
            return parse_duration(text) if text else None
        except ValueError as error:
            self.report(pointer, f"{error}; the default is used", "NotAllowed", "warning")
            return None

    def log(self, part: LogPart | None, pointer: str) -> LogLine | None:
        """Compile a line for the log."""
        if part is None:
            return None
        return LogLine(self.text(part.message, f"{pointer}/message"), _LEVELS.get(part.level, "info"))


def _find_name(source: str, name: str, fault: CelFault) -> int:
    """Return the offset of a name: the engine places `a.b.c` at one of its dots."""
    start = sum(len(line) + 1 for line in source.split("\n")[: fault.line - 1])
    reported = start + fault.column - 1
    before = [found.start() for found in re.finditer(rf"\b{name}\b", source) if found.start() <= reported]
    return before[-1] if before else reported
