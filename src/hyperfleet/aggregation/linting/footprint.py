"""The footprint of conditions: which adapters and fields they read, and whether that is all.

`enumeration` and `possibilities` use it to try only what can matter, and to know what trials cannot decide: a rule that
reads `data`, a reason or the time. When in doubt, a rule counts as such.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.culprits import mentioned_lists
from hyperfleet.aggregation.policy import ExprRule, MirrorRule, Policy, Rule, SummaryRule
from hyperfleet.aggregation.vocabulary import ADAPTER_LISTS
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Chain,
    Conditional,
    ExprNode,
    Float,
    Identifier,
    Integer,
    Let,
    MemberAccess,
    Pointer,
    Predicate,
    String,
    Unary,
)
from hyperfleet.model.condition import TRUE, ConditionStatus
from hyperfleet.model.report import REQUIRED_CONDITIONS

_PLAIN_FIELDS: Final = frozenset({"available", "applied", "health", "current", "reported", "state"})
_QUANTIFIERS: Final = frozenset({"all", "any", "none"})
_COUNTERS: Final = frozenset({"one", "count"})
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_REQUIRED: Final = ADAPTER_LISTS[0]


class Footprint(Struct, frozen=True):
    """What some conditions read, and their rules in policy order."""

    rules: tuple[Rule, ...] = ()
    adapters: frozenset[str] = frozenset()  # by name
    lists: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    counts: bool = False  # the number of matching adapters matters, not only whether there are any
    is_closed: bool = True  # nothing else is read


def footprint_of(policy: Policy, wanted: Iterable[tuple[str, ConditionStatus | None]]) -> Footprint:
    """Return what conditions read, directly or through others; a status of None means any."""
    reader = _Reader(policy)
    for type_, status in wanted:
        reader.read_condition(type_, status)
    rules = tuple(rule for rule in policy.rules if rule.type in reader.types)
    return Footprint(
        rules,
        frozenset(name for rule in rules for name in rule.named_adapters),
        frozenset(reader.lists),
        frozenset(reader.fields),
        reader.counts,
        reader.is_closed,
    )


def add_guards(footprint: Footprint) -> Footprint:
    """Add what the guards of the phases read: every required adapter."""
    return replace(
        footprint,
        lists=footprint.lists | {_REQUIRED},
        fields=footprint.fields | {"state", "health", "available", "current"},
    )


class _Reader:
    """Collects the footprint of several conditions."""

    def __init__(self, policy: Policy) -> None:
        self._rules = {rule.type: rule for rule in policy.rules}
        self._goes_stale = policy.stale_after is not None
        self.types: set[str] = set()
        self.lists: set[str] = set()
        self.fields: set[str] = {"reported"}  # an unreported adapter is not in every list
        self.counts = False
        self.is_closed = True

    def read_condition(self, type_: str, status: ConditionStatus | None) -> None:
        """Read one condition and those that it merges."""
        if type_ in self.types and type_ in self._rules:
            return
        self.types.add(type_)
        match self._rules[type_].by if type_ in self._rules else None:
            case ExprRule(program=program):
                self.lists.update(mentioned_lists(program.tree))
                self._read([program.tree])
            case SummaryRule(over=None, adapter=None, types=types):
                for part in types:
                    self.read_condition(part, None)
            case SummaryRule(over="nodePools"):
                self.is_closed = False
            case SummaryRule(over=over, types=types):
                self.lists.update({over} if over else ())
                self._read_reported(types)
            case MirrorRule(type=mirrored):
                self._read_reported((mirrored,))
            case None:
                self._read_built_in(type_, status)

    def _read_reported(self, types: tuple[str, ...]) -> None:
        """Read conditions of reports; those that a report must have are fields too."""
        self.is_closed &= set(types) <= set(REQUIRED_CONDITIONS)
        self.fields.update(type_.lower() for type_ in types if type_ in REQUIRED_CONDITIONS)

    def _read_built_in(self, type_: str, status: ConditionStatus | None) -> None:
        """Read Ready or Available. Staleness and the memory of Available cannot be decided by trying states."""
        self.lists.add(_REQUIRED)
        self.fields.update(("available", "current"))
        self.is_closed &= type_ == READY and (status == TRUE or not self._goes_stale)

    def _read(self, pending: list[ExprNode]) -> None:
        """Read an expression; a part that may read more than fields makes the footprint open."""
        scalars: set[str] = set()  # names of `let`
        lists: set[str] = set(ADAPTER_LISTS)
        while pending:
            node = pending.pop()
            match node:
                case Boolean() | Integer() | Float() | String():
                    pass
                case Identifier(name=name) if name in scalars:
                    pass
                case MemberAccess(base=entry, key=String(value=field)) if field in _PLAIN_FIELDS and _is_entry(entry):
                    self.fields.add(field)
                case Binary() if _compares_generations(node):
                    self.fields.add("observedGeneration")
                case Let(name=name, value=value, body=body):
                    predicates = _predicates(value, lists)
                    (scalars if predicates is None else lists).add(name)
                    pending += ((value,) if predicates is None else predicates) + (body,)
                case Builtin(name=name, arguments=(source, *rest)) if _is_about_a_list(node):
                    predicates = _predicates(source, lists)
                    self.counts |= name not in _QUANTIFIERS
                    self.is_closed &= predicates is not None
                    pending += (*(predicates or ()), *(child for part in rest for child in part.children()))
                case Unary() | Binary() | Conditional() | ArrayLiteral() | Chain():
                    pending += node.children()
                case _:
                    self.is_closed = False


def _is_entry(node: ExprNode) -> bool:
    """Recognise one adapter: `#` in a predicate, or `adapters["name"]`."""
    match node:
        case Pointer(name="") | MemberAccess(base=Identifier(name="adapters"), key=String()):
            return True
    return False


def _compares_generations(node: Binary) -> bool:
    """Recognise a comparison of an adapter's generation with the resource's, whose numbers do not matter."""
    match (node.left, node.right):
        case (
            MemberAccess(base=entry, key=String(value="observedGeneration")),
            Identifier(name="currentGeneration"),
        ) | (
            Identifier(name="currentGeneration"),
            MemberAccess(base=entry, key=String(value="observedGeneration")),
        ):
            return node.operator in _COMPARISONS and _is_entry(entry)
    return False


def _is_about_a_list(node: Builtin) -> bool:
    """Recognise a builtin for which the order of a list does not matter."""
    match node.arguments:
        case (_,):
            return node.name == "len"
        case (_, Predicate()):
            return node.name in _QUANTIFIERS | _COUNTERS
    return False


def _predicates(node: ExprNode, lists: set[str]) -> tuple[ExprNode, ...] | None:
    """Return the conditions by which a list of adapters is filtered; None when it is something else."""
    found: list[ExprNode] = []
    while isinstance(node, Builtin) and node.name == "filter":
        source, predicate = node.arguments
        found += predicate.children()
        node = source
    return tuple(found) if isinstance(node, Identifier) and node.name in lists else None
