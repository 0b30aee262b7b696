"""The tree of `hyperfleet describe`: what matters of a resource, equal siblings folded into one row.

Pure: from answers of the server to rows. `describe` asks the server and draws.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from hyperfleet.cli.output.ages import tell_age, tell_length
from hyperfleet.cli.output.columns import tell_labels
from hyperfleet.cli.output.table import Column
from hyperfleet.cli.output.tree import Node
from hyperfleet.cli.output.words import count_of

if TYPE_CHECKING:
    from hyperfleet.client import ExplainedAdapter, ExplainedCondition, Explanation, Resource

COLUMNS: Final = (
    Column("NAME"),
    Column("STATUS", is_coloured=True),
    Column("REASON"),
    Column("SINCE"),
    Column("MESSAGE"),
)
_ALWAYS: Final = ("Available", "Ready")  # shown however good they are
_NAMED: Final = 3  # siblings of a group that are named; of more, only how many
_UNDISTURBED: Final = ("Completed", "Unreported")  # adapters in these states are alike, whatever they said

T = TypeVar("T")


class Description(Struct, frozen=True):
    """Everything about a resource that a tree shows."""

    resource: Resource
    explanation: Explanation
    pools: Sequence[Resource] = ()
    cluster: str = ""  # the name of a node pool's cluster


def write_head(told: Description, now: datetime) -> list[str]:
    """Return what stands above the tree: who it is."""
    resource, metadata = told.resource, told.resource.metadata
    by = f" by {metadata.created_by}" if metadata.created_by else ""
    edited = tell_age(metadata.updated_at, now)
    deadline = told.explanation.next_deadline
    lines = [
        ("Name", resource.name),
        ("Id", resource.id),
        ("Cluster", told.cluster),
        ("Labels", tell_labels(resource.labels)),
        ("Created", f"{tell_age(metadata.created_at, now)} ago{by}"),
        ("Generation", f"{resource.generation}, changed {edited} ago"),
        ("Deletion", f"asked for {tell_age(metadata.deletion_timestamp, now)} ago" if resource.is_deleting else ""),
        ("Policy", "" if told.explanation.current else "has changed; this is how it will be when computed anew"),
        ("Next", f"changes by time alone in {tell_length(deadline - now)}" if deadline and deadline > now else ""),
    ]
    return [f"{label + ':':<12}{text}" for label, text in lines if text]


def make_tree(told: Description, now: datetime, *, has_all: bool) -> Node:
    """Return the tree; without `has_all`, only what matters, and equal siblings in one row."""
    writer = _Writer(now, has_all=has_all)
    return writer.resource(told)


class _Writer:
    """Makes rows; ages count up to one moment."""

    def __init__(self, now: datetime, *, has_all: bool) -> None:
        self._now = now
        self._has_all = has_all

    def resource(self, told: Description) -> Node:
        """Return the row of the resource with all that is below it."""
        status = told.resource.status
        flaps = " (flapping)" if status.phase_flapping else ""
        because = "\n".join(told.explanation.because) if self._has_all else status.phase_description
        children = [
            _branch("Conditions", self.conditions(told.explanation.conditions)),
            _branch("Adapters", self.adapters(told.explanation.adapters, told.resource.generation)),
            _branch("Node pools", self.pools(told.pools)),
        ]
        kind = told.resource.type or "Resource"
        cells = (status.phase + flaps, "", self._age(status.phase_since), because)
        return Node(f"{kind}/{told.resource.name}", cells, [child for child in children if child is not None])

    def conditions(self, conditions: Iterable[ExplainedCondition]) -> list[Node]:
        """Return the rows of conditions: Available, Ready, and those that are not good."""
        shown = [each for each in conditions if self._has_all or each.type in _ALWAYS or _is_remarkable(each)]
        return [self._condition(each) for each in shown]

    def adapters(self, adapters: Sequence[ExplainedAdapter], generation: int) -> list[Node]:
        """Return the rows of adapters; those in the same state and with the same words are one row."""
        rows = []
        for group in self._groups(adapters, _alike):
            names = _tell_names([each.name for each in group], "adapter")
            first = group[0]
            state = "Stale" if first.stale else first.state
            reason = first.reason if all(each.reason == first.reason for each in group) else ""
            cells = (state, reason, self._oldest(each.since for each in group), _tell_adapter(group, generation))
            rows.append(Node(names + ("" if first.required else " (optional)"), cells))
        return rows

    def pools(self, pools: Sequence[Resource]) -> list[Node]:
        """Return the rows of node pools; those with the same phase and reason are one row."""
        rows = []
        for group in self._groups(pools, _alike_pool):
            first = group[0]
            ready = first.status.condition("Ready")
            is_good = ready is None or ready.status == "True"
            reason, message = ("", "") if is_good or ready is None else (ready.reason, ready.message)
            since = self._oldest(each.status.phase_since for each in group)
            names = _tell_names([each.name for each in group], "node pool")
            rows.append(Node(names, (first.phase, reason, since, message)))
        return rows

    def _condition(self, told: ExplainedCondition) -> Node:
        notes = [told.message]
        if told.undamped is not None:
            notes.append(f"damped: the rule has said {told.undamped.status} for {self._age(told.undamped.since)}")
        if told.flapping is not None:
            age = self._age(told.flapping.since)
            notes.append(f"flapping for {age}: moved {told.flapping.transitions} times")
        return Node(told.type, (told.status, told.reason, self._age(told.since), "\n".join(filter(None, notes))))

    def _groups(self, items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
        """Put equal siblings together, in the order in which the first of each came."""
        if self._has_all:
            return [[item] for item in items]
        groups: dict[Hashable, list[T]] = {}
        for item in items:
            groups.setdefault(key(item), []).append(item)
        return list(groups.values())

    def _age(self, instant: datetime | None) -> str:
        return tell_age(instant, self._now) if instant else ""

    def _oldest(self, instants: Iterable[datetime | None]) -> str:
        return self._age(min((each for each in instants if each), default=None))


def _branch(name: str, children: Sequence[Node]) -> Node | None:
    return Node(name, (), children) if children else None


def _is_remarkable(condition: ExplainedCondition) -> bool:
    """Tell whether a condition is not as it should be, or not settled."""
    return condition.remedies is not None or condition.flapping is not None or condition.undamped is not None


def _alike(adapter: ExplainedAdapter) -> Hashable:
    if adapter.state in _UNDISTURBED and not adapter.stale:
        return (adapter.state, adapter.required, adapter.missing)
    return (adapter.state, adapter.required, adapter.stale, adapter.reason, adapter.message)


def _alike_pool(pool: Resource) -> Hashable:
    ready = pool.status.condition("Ready")
    return (pool.phase, ready.status, ready.reason) if ready else (pool.phase,)


def _tell_adapter(group: Sequence[ExplainedAdapter], generation: int) -> str:
    """Say what an adapter said; of a group of good ones it does not matter."""
    first = group[0]
    if first.last_heard is None:
        return "has not reported in time" if first.missing else "has not reported yet"
    notes = []
    if first.observed_generation != generation:
        notes.append(f"of generation {first.observed_generation}, not yet {generation}")
    if len(group) == 1:
        notes.insert(0, first.message)
    return "\n".join(filter(None, notes))


def _tell_names(names: Sequence[str], noun: str) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"{count_of(len(names), noun)}: {shown}"
