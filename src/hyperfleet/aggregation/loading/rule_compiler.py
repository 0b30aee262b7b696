"""Compile the rules of a policy document; every fault is collected with its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from typing import Final

from hyperfleet.aggregation.culprits import CulpritFinder
from hyperfleet.aggregation.loading.policy_document import (
    ConditionDocument,
    FlappingDocument,
    PhasesDocument,
    SummaryDocument,
    TemplateDocument,
)
from hyperfleet.aggregation.policy import ExprRule, FlappingLimit, MirrorRule, Polarity, Rule, SummaryRule
from hyperfleet.aggregation.templates import Template, Templates, find_template_faults, parse_template
from hyperfleet.aggregation.vocabulary import OLDER_THAN, SCHEMA
from hyperfleet.documents import DocumentProblem, Places, good_items
from hyperfleet.documents.durations import parse_duration
from hyperfleet.errors import ExprError, ExprTypeError
from hyperfleet.expr import ExprOptions, Program, parse
from hyperfleet.expr import compile as compile_expr
from hyperfleet.expr.nodes import Builtin, Call, ExprNode, Identifier, String, walk
from hyperfleet.expr.source import error_at
from hyperfleet.model.condition import TRUE

# The type checker must know that a rule is boolean (one that reads `data` needs a comparison). People read rules: a
# thousand nodes are several pages.
_OPTIONS: Final = ExprOptions(allow_any=False, nodes=1_000)
_BAD_PHASES: Final = frozenset({"degraded", "failed"})
_TEMPLATE_KEYS: Final = {"true": "true", "false": "false", "in_progress": "inProgress", "unknown": "unknown"}


class RuleCompiler:
    """Compiles the rules of one document and collects `problems`."""

    def __init__(self, places: Places, limit: FlappingLimit, phases: PhasesDocument) -> None:
        """Locate problems by `places`; `limit` and `phases` have the defaults for limits and polarities of rules."""
        self._places = places
        self._limit = limit
        self._negative = _negative_types(phases)
        self.problems: list[DocumentProblem] = []

    def compile(self, conditions: Iterable[ConditionDocument]) -> tuple[Rule, ...]:
        """Return the rules that could be compiled, in order."""
        rules = (self._rule(condition, f"/clusterConditions/{index}") for index, condition in good_items(conditions))
        return tuple(rule for rule in rules if rule is not None)

    def _rule(self, condition: ConditionDocument, pointer: str) -> Rule | None:
        templates = self._templates(condition, f"{pointer}/templates")
        by: ExprRule | SummaryRule | MirrorRule | None = None
        if condition.evaluate is not None and condition.evaluate.expr:
            by = self._expression(condition.evaluate.expr, f"{pointer}/evaluate/expr")
        elif condition.summary is not None:
            by = _summary(condition.summary)
        elif condition.mirror is not None:
            by = MirrorRule(condition.mirror.adapter, condition.mirror.type)
        if by is None:
            return None
        return Rule(
            condition.type,
            by,
            templates,
            self._polarity(condition),
            condition.go_bad_after or timedelta(),
            condition.go_good_after or timedelta(),
            flapping_limit(condition.flapping, self._limit) if condition.flapping else None,
        )

    def _polarity(self, condition: ConditionDocument) -> Polarity:
        given = condition.polarity or ("negative" if condition.type in self._negative else "positive")
        return "Negative" if given.lower() == "negative" else "Positive"

    def _expression(self, source: str, pointer: str) -> ExprRule | None:
        program, faults = _compile(source)
        for fault in faults:
            self._report(pointer, fault.line, fault.column, fault.message, "Expression", fault.snippet)
        return ExprRule(source, program, CulpritFinder(program.tree)) if program and not faults else None

    def _templates(self, condition: ConditionDocument, pointer: str) -> Templates:
        special = {"Error"} if condition.evaluate is not None else {"Summary"}
        parsed = {}
        for field, key in _TEMPLATE_KEYS.items():
            allowed = special if field == "unknown" or condition.evaluate is None else ()
            parsed[field] = self._template(getattr(condition.templates, field), f"{pointer}/{key}", allowed)
        return Templates(**parsed)

    def _template(self, document: TemplateDocument | None, pointer: str, allowed: Collection[str]) -> Template | None:
        if document is None:
            return None
        for offset, message in find_template_faults(document.message, allowed=allowed):
            before = document.message[:offset]
            line, column = before.count("\n") + 1, offset - before.rfind("\n")
            self._report(f"{pointer}/message", line, column, message, "TemplateVariable")
        return parse_template(document.reason, document.message)

    def _report(self, pointer: str, line: int, column: int, message: str, code: str, snippet: str = "") -> None:
        place = self._places.inside(pointer, line, column)
        self.problems.append(DocumentProblem(place, message, code, snippet=snippet.lstrip("\n")))


def flapping_limit(document: FlappingDocument, otherwise: FlappingLimit) -> FlappingLimit:
    """Return the limit of a document; `otherwise` has the defaults."""
    return FlappingLimit(
        otherwise.window if document.window is None else document.window,
        otherwise.transitions if document.transitions is None else document.transitions,
    )


def _negative_types(phases: PhasesDocument) -> frozenset[str]:
    """Return the types that only Degraded and Failed require to be True: without a polarity, they are negative."""
    required_by: dict[str, set[str]] = {}
    for name in phases.__struct_fields__:
        phase = getattr(phases, name)
        for _, required in good_items(phase.required_conditions if phase else ()):
            if required.status == TRUE:
                required_by.setdefault(required.type, set()).add(name)
    return frozenset([type_ for type_, names in required_by.items() if names <= _BAD_PHASES])


def _summary(document: SummaryDocument) -> SummaryRule:
    types = document.types if document.type is None else (document.type,)
    return SummaryRule(
        types,
        document.over,
        document.adapter,
        frozenset(document.negative),
        frozenset(document.ignore_if_missing),
    )


def _compile(source: str) -> tuple[Program | None, list[ExprError]]:
    """Compile a rule, or return all its faults."""
    try:
        tree = parse(source, SCHEMA)
    except ExprError as error:
        return None, [_placed(error, source)]
    faults = list(_time_faults(tree, source))
    try:
        return compile_expr(source, SCHEMA, expect=bool, options=_OPTIONS), faults
    except ExprError as error:
        found = [_placed(fault, source) for fault in (error, *error.others)]
        places = [(fault.line, fault.column) for fault in found]
        return None, found + [fault for fault in faults if (fault.line, fault.column) not in places]


def _placed(error: ExprError, source: str) -> ExprError:
    """Place a fault of the whole expression at its start."""
    return error if error.line else error_at(type(error), source, 0, error.message)


def _time_faults(tree: ExprNode, source: str) -> Iterator[ExprError]:
    """Find uses of time for which no deadline can be recorded."""
    called = [node.callee for node in walk(tree) if isinstance(node, Call)]
    for node in walk(tree):
        message, place = "", node
        match node:
            case Builtin(name="now"):
                message = (
                    "now() is not allowed in a policy: a status must not depend on when it is read; "
                    f'use {OLDER_THAN}(adapters["name"], "7m")'
                )
            case Identifier(name="$env"):
                message = "$env is not allowed in a policy: name what the rule needs"
            case Identifier(name=name) if name == OLDER_THAN and not any(node is callee for callee in called):
                message = f'{OLDER_THAN} must be called where it is named: {OLDER_THAN}(adapters["name"], "7m")'
            case Call(callee=Identifier(name=name), arguments=(_, duration)) if name == OLDER_THAN:
                message, place = _duration_fault(duration), duration
        if message:
            yield error_at(ExprTypeError, source, place.offset, message)


def _duration_fault(argument: ExprNode) -> str:
    if not isinstance(argument, String):
        return f'the duration of {OLDER_THAN} must be written out, such as "7m"'
    try:
        parse_duration(argument.value)
    except ValueError as error:
        return str(error)
    return ""
