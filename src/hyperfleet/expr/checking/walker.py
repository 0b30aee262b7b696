"""The state of the checker, and what every rule needs.

`checker` makes one for a tree; its rules are functions of the walker and a node, one for each class of node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hyperfleet.errors import ExprTypeError
from hyperfleet.expr.nodes import Call, walk
from hyperfleet.expr.runtime.regex import ALLOWANCE
from hyperfleet.expr.scopes import NameScope
from hyperfleet.expr.source import error_at
from hyperfleet.expr.types import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from hyperfleet.expr.checking.environment import Environment
    from hyperfleet.expr.nodes import ExprNode
    from hyperfleet.expr.types import Type

    Rules: TypeAlias = Mapping[type[ExprNode], Callable[["Walker", Any], Type]]

MAX_ERRORS = 20  # more would not help, and each one quotes the text


class Walker:
    """One check in progress: the errors so far, the `let` variables, and the predicates around the node.

    A predicate in scope is the type of its collection, and the types of the names after `#`.
    """

    def __init__(self, text: str, environment: Environment, rules: Rules) -> None:
        """Check against `environment`; errors quote `text`."""
        self.text = text
        self.environment = environment
        self.errors: list[ExprTypeError] = []
        self.variables: NameScope[Type] = NameScope()
        self.loops: list[tuple[Type, Mapping[str, Type]]] = []
        self.patterns = ALLOWANCE  # the remaining allowance for constant patterns
        self._rules = rules

    def visit(self, node: ExprNode) -> Type:
        """Return the type of a node, which is set on it."""
        found = self._rules[node.__class__](self, node)
        node.type = found
        return found

    def error(self, node: ExprNode, message: str) -> Type:
        """Record an error at a node, whose type is unknown then."""
        if len(self.errors) < MAX_ERRORS:
            found = error_at(ExprTypeError, self.text, node.offset, message)
            if all(str(found) != str(known) for known in self.errors):
                self.errors.append(found)
        return UNKNOWN

    def search(self, nodes: Iterable[ExprNode | None]) -> None:
        """Look for further errors in nodes that the original does not reach after an error."""
        for node in nodes:
            if node is not None:
                self.visit(node)

    def annotate(self, nodes: Iterable[ExprNode | None]) -> None:
        """Set the types of nodes that the original does not check: a missing entry reads as its type says.

        What is called there stays unknown, as it is to the original: nil is the zero value of a parameter.
        """
        known = len(self.errors)
        for root in nodes:
            self.search((root,))
            for node in walk(root) if root is not None else ():
                if isinstance(node, Call):
                    node.callee.type = UNKNOWN
        del self.errors[known:]

    def undeclared(self, node: ExprNode, name: str) -> Type:
        """Return the type of an undeclared name."""
        return UNKNOWN if self.environment.allows_unknown() else self.error(node, f"unknown name {name}")
