"""Find the adapters responsible for the outcome of a rule, to name them in its message.

A `CulpritFinder` is planned once, when a policy is loaded, from the rule's syntax tree: each part of the tree that
decides the outcome becomes a small program that lists adapters. At run time only the parts that decided the outcome
are evaluated.

    all(L, p)      false: the elements that fail p      true: all of L
    any(L, p)      true: the elements that match p      false: all of L
    adapters["x"]  x
    a && b         false: culprits of the false ones    true: of both         (|| the other way round)
    !a             culprits of a for the opposite outcome
    len(filter(L, p)) >= n   false: L without the matches, true: the matches  (< the other way round, == all of L)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from hyperfleet.aggregation.adapters import Adapters, AdapterView
from hyperfleet.aggregation.vocabulary import ADAPTER, ADAPTER_LISTS, ADAPTERS_BY_NAME, SCHEMA
from hyperfleet.errors import ExprRuntimeError
from hyperfleet.expr import Budget
from hyperfleet.expr import compile as compile_expr
from hyperfleet.expr import format as format_tree
from hyperfleet.expr.nodes import (
    Binary,
    Builtin,
    Conditional,
    ExprNode,
    Identifier,
    Let,
    MemberAccess,
    Predicate,
    String,
    Unary,
    walk,
)
from hyperfleet.expr.types import BOOL, Array, Type


class _Inputs(Struct, frozen=True, gc=False):
    """What a rule was evaluated on."""

    adapters: Adapters
    values: Mapping[str, object]  # of the rule's names
    budget: Budget | None  # None: each part of the rule has a full one


Views: TypeAlias = tuple[AdapterView, ...]
# Lists the culprits for an outcome, each once and in policy order.
Plan: TypeAlias = Callable[[_Inputs, bool], Views]
Lister: TypeAlias = Callable[[_Inputs], Views]

_NOT: Final = frozenset({"!", "not"})
_AND: Final = frozenset({"&&", "and"})
_OR: Final = frozenset({"||", "or"})
# Operators with the count on the left; the flag says for which outcome the matches are to blame.
_COUNT_MATCHES_WHEN: Final = {">=": True, ">": True, "<": False, "<=": False}
_MIRRORED: Final = {">=": "<=", ">": "<", "<": ">", "<=": ">=", "==": "==", "!=": "!="}


class CulpritFinder:
    """Finds the adapters responsible for the outcome of one rule."""

    __slots__ = ("_mentioned", "_plan", "names_adapters")

    def __init__(self, tree: ExprNode) -> None:
        """Plan the search from the rule's checked syntax tree."""
        planner = _Planner()
        self._plan = planner.plan(tree)
        self._mentioned = planner.mentioned(tree)
        self.names_adapters = self._plan is not None

    def find(
        self, adapters: Adapters, values: Mapping[str, object], outcome: bool, budget: Budget | None = None
    ) -> Views:
        """Return the culprits; for a rule that names no adapter, the required ones that are not available."""
        if self._plan is None:
            return tuple(view for view in adapters.required if view.available != "True")
        inputs = _Inputs(adapters, values, budget)
        try:
            return self._plan(inputs, outcome)
        except ExprRuntimeError:  # the rule may have stopped early, before an adapter on which it would have failed
            return self._mentioned(inputs, outcome) if self._mentioned else ()


class _Planner:
    """Makes a plan from a syntax tree; None for a part that names no adapter and no list."""

    def __init__(self, lets: tuple[Let, ...] = ()) -> None:
        self._lets = lets  # in scope; added to each sub-program

    def plan(self, node: ExprNode) -> Plan | None:
        """Plan for one part of the rule."""
        node = self._resolve(node)
        match node:
            case Unary(operator=operator, operand=operand) if operator in _NOT:
                return _swapped(self.plan(operand))
            case Binary(operator=operator) if operator in _AND | _OR:
                return self._junction(node)
            case Binary() if counted := self._as_count(node):
                return self._count(*counted)
            case Builtin(name="all" | "any" | "none", arguments=(source, Predicate() as predicate)):
                return self._quantifier(node.name, source, predicate)
            case Conditional(test=test, then=then, otherwise=otherwise):
                return self._conditional(test, then, otherwise)
            case Let(body=body):
                return _Planner((*self._lets, node)).plan(body)
        return self.mentioned(node)

    def _quantifier(self, name: str, source: ExprNode, predicate: Predicate) -> Plan | None:
        if not _is_adapter_list(source.type):
            return self.mentioned(Builtin(name, (source, predicate)))
        everything = self._lister(source)
        if name == "all":
            failing = self._lister(_filter(source, _negated(predicate)))
            return lambda inputs, outcome: everything(inputs) if outcome else failing(inputs)
        matching = self._lister(_filter(source, predicate))
        when = name == "any"  # `none` is true when `any` is false
        return lambda inputs, outcome: matching(inputs) if outcome is when else everything(inputs)

    def _count(self, operator: str, source: ExprNode, predicate: Predicate) -> Plan | None:
        if not _is_adapter_list(source.type):
            return self.mentioned(_filter(source, predicate))
        matches_when = _COUNT_MATCHES_WHEN.get(operator)
        if matches_when is None:
            everything = self._lister(source)
            return lambda inputs, outcome: everything(inputs)
        matching = self._lister(_filter(source, predicate))
        others = self._lister(_filter(source, _negated(predicate)))
        return lambda inputs, outcome: matching(inputs) if outcome is matches_when else others(inputs)

    def _junction(self, node: Binary) -> Plan | None:
        """Plan a chain of && or ||: the decisive operands if there are any, otherwise all of them."""
        decisive = node.operator in _OR
        parts = [(self._tester(part), self.plan(part)) for part in _flatten(node, _OR if decisive else _AND)]
        planned = [(test, plan) for test, plan in parts if plan is not None]
        if not planned:
            return None

        def find(inputs: _Inputs, outcome: bool) -> Views:
            return inputs.adapters.in_order(
                view
                for test, plan in planned
                if outcome is not decisive or test(inputs) is decisive
                for view in plan(inputs, outcome)
            )

        return find

    def _conditional(self, test: ExprNode, then: ExprNode, otherwise: ExprNode) -> Plan | None:
        branches = {True: self.plan(then), False: self.plan(otherwise)}
        tested, decide = self.plan(test), self._tester(test)
        if not (tested or branches[True] or branches[False]):
            return None

        def find(inputs: _Inputs, outcome: bool) -> Views:
            chosen = decide(inputs)
            if chosen is None:
                return ()
            branch = branches[chosen]
            of_test = tested(inputs, chosen) if tested else ()
            return inputs.adapters.in_order((*of_test, *(branch(inputs, outcome) if branch else ())))

        return find

    def mentioned(self, node: ExprNode) -> Plan | None:
        """Plan for a part of any other shape: every adapter and every list it mentions."""
        adapters, lists = mentioned_adapters(node), mentioned_lists(node)
        for let in self._lets:
            if any(isinstance(item, Identifier) and item.name == let.name for item in walk(node)):
                adapters += mentioned_adapters(let.value)
                lists += mentioned_lists(let.value)
        if len(adapters) == 1 and not lists:
            (name,) = adapters
            return lambda inputs, outcome: (inputs.adapters.view(name),)
        listers = [_LISTS[name] for name in lists]
        if not adapters and not listers:
            return None

        def find(inputs: _Inputs, outcome: bool) -> Views:
            named = [inputs.adapters.view(name) for name in adapters]
            return inputs.adapters.in_order((*named, *(view for lister in listers for view in lister(inputs))))

        return find

    def _as_count(self, node: Binary) -> tuple[str, ExprNode, Predicate] | None:
        """Recognise `len(filter(L, p)) >= n` and `count(L, p) >= n`, from either side."""
        if node.operator not in _MIRRORED:
            return None
        left, right = self._counted(node.left), self._counted(node.right)
        if left:
            return (node.operator, *left)
        return (_MIRRORED[node.operator], *right) if right else None

    def _counted(self, node: ExprNode) -> tuple[ExprNode, Predicate] | None:
        match self._resolve(node):
            case Builtin(name="len", arguments=(counted,)):
                match self._resolve(counted):
                    case Builtin(name="filter", arguments=(source, Predicate() as predicate)):
                        return source, predicate
            case Builtin(name="count", arguments=(source, Predicate() as predicate)):
                return source, predicate
        return None

    def _resolve(self, node: ExprNode) -> ExprNode:
        """Return the value of a `let` name; names are unique."""
        by_name = {let.name: let.value for let in self._lets}
        while isinstance(node, Identifier) and node.name in by_name:
            node = by_name[node.name]
        return node

    def _lister(self, node: ExprNode) -> Lister:
        """Compile an expression that lists adapters; a list of the vocabulary needs no program."""
        if isinstance(node, Identifier) and node.name in _LISTS:
            return _LISTS[node.name]
        evaluate = compile_expr(format_tree(self._wrap(node)), SCHEMA).evaluate

        def list_adapters(inputs: _Inputs) -> Views:
            by_name = inputs.adapters.by_name
            return tuple([by_name[entry["adapter"]] for entry in evaluate(inputs.values, inputs.budget)])

        return list_adapters

    def _tester(self, node: ExprNode) -> Callable[[_Inputs], bool | None]:
        evaluate = compile_expr(format_tree(self._wrap(node)), SCHEMA, expect=BOOL).evaluate

        def test(inputs: _Inputs) -> bool | None:
            try:
                return bool(evaluate(inputs.values, inputs.budget))
            except ExprRuntimeError:  # an operand after the decisive one may fail
                return None

        return test

    def _wrap(self, node: ExprNode) -> ExprNode:
        """Add the `let` names that a part needs, and no others: a rule may have many."""
        needed = _names_in(node)
        for let in reversed(self._lets):
            if let.name in needed:
                node = Let(let.name, let.value, node)
                needed |= _names_in(let.value)
        return node


_LISTS: Final[Mapping[str, Lister]] = {
    "requiredAdapters": lambda inputs: inputs.adapters.required,
    "optionalAdapters": lambda inputs: inputs.adapters.optional,
    "allAdapters": lambda inputs: inputs.adapters.all,
}


def mentioned_adapters(node: ExprNode) -> list[str]:
    """List the adapters that an expression names, as in `adapters["dns"]`, each once."""
    names = [
        item.key.value
        for item in walk(node)
        if isinstance(item, MemberAccess)
        and isinstance(item.base, Identifier)
        and item.base.name == ADAPTERS_BY_NAME
        and isinstance(item.key, String)
    ]
    return list(dict.fromkeys(names))


def mentioned_lists(node: ExprNode) -> list[str]:
    """List the lists of adapters that an expression names, each once."""
    names = [item.name for item in walk(node) if isinstance(item, Identifier) and item.name in ADAPTER_LISTS]
    return list(dict.fromkeys(names))


def mentions_field(node: ExprNode, field: str) -> bool:
    """Tell whether an expression may read a field of an adapter; when in doubt, it may."""
    for item in walk(node):
        match item:
            case String(value=value) if value == field:
                return True
            case Identifier(name="$env"):
                return True
            case Builtin(name=name) if name not in _SELECTING:
                return True
    return False


# Builtins that read adapters only through their predicates, or only count and select them.
_SELECTING: Final = frozenset(
    {"all", "any", "none", "one", "filter", "count", "find", "findIndex", "findLast", "findLastIndex"}
    | {"len", "first", "last"}
)


def _names_in(node: ExprNode) -> set[str]:
    return {item.name for item in walk(node) if isinstance(item, Identifier)}


def _swapped(plan: Plan | None) -> Plan | None:
    return (lambda inputs, outcome: plan(inputs, not outcome)) if plan else None


def _filter(source: ExprNode, predicate: Predicate) -> ExprNode:
    return Builtin("filter", (source, predicate))


def _negated(predicate: Predicate) -> Predicate:
    return Predicate(Unary("!", predicate.body))


def _flatten(node: ExprNode, operators: frozenset[str]) -> Iterable[ExprNode]:
    """Yield the operands of a chain such as a && b && c, without recursion."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Binary) and part.operator in operators:
            pending.extend((part.right, part.left))
        else:
            yield part


def _is_adapter_list(type_: Type) -> bool:
    return isinstance(type_, Array) and type_.element == ADAPTER
