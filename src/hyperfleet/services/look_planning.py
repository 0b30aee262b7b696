"""The sentinel's rules as the server uses them: every write stores the next look, and `where` is a filter on tokens.

`workspace` calls the planner for each write. `events.looking` asks which rules are due.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation import BodyProblem, Policy
from hyperfleet.ports import LookPlan, Record, TokenTerm
from hyperfleet.sentinel.rules import Rule, RuleSet
from hyperfleet.sentinel.schedule import LookedAt, next_look
from hyperfleet.services.filters import FILTERS, read_terms
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.watch_filter import term_holds

SPREAD: Final = timedelta(minutes=10)  # over which all resources are looked at when the rules have changed


class LookRules(Struct, frozen=True):
    """Rules, and the filters of those that have a `where`, by name."""

    rules: RuleSet = RuleSet()
    filters: Mapping[str, tuple[TokenTerm, ...]] = msgspec.field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return what identifies the times that these rules lead to."""
        ages = [(rule.name, rule.state, rule.after, rule.backoff) for rule in self.rules.rules]
        return hashlib.sha256(msgspec.json.encode(ages)).hexdigest()[:16]

    def plan(self, before: Record | None, after: Record, policy: Policy) -> LookPlan:
        """Return when the sentinel looks at a resource after a write. One that is due already keeps its turn."""
        now = after.status.memory.written_time
        looked_at = LookedAt(after.resource, after.status, policy, after.reports, after.look.history)
        at, _, history = next_look(looked_at, self.rules, now)
        waiting = None if before is None else before.look.at
        if at is not None and waiting is not None and waiting < at <= now:
            at = waiting
        return LookPlan(at, history)

    def admits(self, rule: Rule, tokens: Collection[str]) -> bool:
        """Tell whether the `where` of a rule holds for a resource with these tokens."""
        return all(term_holds(term, tokens) for term in self.filters.get(rule.name, ()))


def with_filters(rules: RuleSet) -> LookRules:
    """Compile the `where` of rules that `find_problems` has checked."""
    return LookRules(rules, {rule.name: _read_where(rule.where)[0] for rule in rules.rules if rule.where})


def find_problems(where: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what is wrong with the `where` of a rule: the parameter, and the message."""
    return [(error.pointer, error.message) for error in _read_where(where)[1]]


def _read_where(where: Mapping[str, str]) -> tuple[tuple[TokenTerm, ...], list[BodyProblem]]:
    given = Parameters({name: [value] for name, value in where.items()})
    given.refuse_unknown(tuple(FILTERS))
    return read_terms(given), given.errors
