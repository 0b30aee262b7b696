"""The rules of a sentinel: in which state of a resource, and after how long, adapters are asked to look again.

A resource with required adapters is always in exactly one *settled or unsettled* state, the first that fits:

| state | the resource | since |
|---|---|---|
| `deleting` | is being deleted | deletion was requested |
| `failed` | has the phase Failed | it has that phase |
| `new` | no required adapter has reported on it | its generation was set |
| `outdated` | some required adapter has not reported on its generation | its generation was set |
| `notReady` | all have, and it is not Ready | it stopped being Ready |
| `ready` | has the phase Ready | it has that phase |

Besides, it is `stale` while a required adapter is stale, and a rule for `any` applies to every resource.

`after` is the time from the begin of the state, or from the last look, to the next look. The back-off lengthens it with
every look, until the resource is Ready or its generation changes. `schedule` computes with these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final, Literal, get_args

from msgspec import Struct, field

State = Literal["deleting", "failed", "new", "outdated", "notReady", "ready", "stale", "any"]
STATES: Final[tuple[State, ...]] = get_args(State)

# The same resource is never asked about more often, whatever a rule says: an adapter that reports something new on
# every look would otherwise keep itself busy for ever. The Go sentinel waits as long.
SHORTEST_PAUSE: Final = timedelta(seconds=10)
LONGEST_RESYNC: Final = timedelta(minutes=30)  # as in the Go sentinel; with a staleThreshold, a third of it
DEFAULT_RETRY_INTERVAL: Final = timedelta(seconds=30)


class Backoff(Struct, frozen=True):
    """How the pause between looks grows, and how far it is shortened so that a fleet does not move in step."""

    factor: float = 2.0
    max: timedelta = timedelta(minutes=10)
    jitter: float = 0.1  # the part of a pause that may be cut off


class Rule(Struct, frozen=True):
    """When adapters are asked to look at a resource again. Its name is the reason that the event carries."""

    name: str
    state: State
    after: timedelta | None  # None: as the policy says, for `failed` and `ready`
    backoff: Backoff = Backoff()
    where: Mapping[str, str] = field(default_factory=dict)  # parameters of a list; the server evaluates them
    when: str = ""  # a CEL condition on the resource; the sentinel evaluates it


BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    Rule("deleting", "deleting", timedelta(seconds=30)),
    Rule("failed", "failed", None),
    Rule("new", "new", timedelta(seconds=30)),
    Rule("generation-ahead", "outdated", timedelta(seconds=30)),
    Rule("not-ready", "notReady", timedelta(minutes=1)),
    Rule("resync", "ready", None),
    Rule("stale", "stale", timedelta()),
)


class RuleSet:
    """The rules of a fleet, by name and by state."""

    __slots__ = ("_by_name", "_by_state", "rules")

    def __init__(self, rules: Iterable[Rule] = BUILT_IN_RULES) -> None:
        """Index rules; of those that are due at the same time, the first is chosen."""
        self.rules = tuple(rules)
        self._by_name = {rule.name: rule for rule in self.rules}
        self._by_state: dict[str, tuple[Rule, ...]] = {
            state: tuple([rule for rule in self.rules if rule.state == state]) for state in STATES
        }

    def get(self, name: str) -> Rule | None:
        """Return the rule of that name, if there is one."""
        return self._by_name.get(name)

    def of(self, state: State) -> tuple[Rule, ...]:
        """Return the rules for a state, in their order."""
        return self._by_state[state]
