"""The tree of `hyperfleet describe`: the important parts of a resource, equal siblings folded into one row.

Pure: from answers of the server to rows. `describe` queries the server and draws.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from hyperfleet.cli.output.ages import format_age, format_length
from hyperfleet.cli.output.columns import format_labels
from hyperfleet.cli.output.table import Column
from hyperfleet.cli.output.tree import TreeNode
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
_ALWAYS: Final = ("Available", "Ready")  # always shown
_NAMED: Final = 3  # siblings of a group that are named; the others are counted
_MESSAGE_IRRELEVANT: Final = ("Completed", "Unreported")  # adapters in these states are equal whatever they report

T = TypeVar("T")


class ResourceDescription(Struct, frozen=True):
    """Everything about a resource that the tree shows."""

    resource: Resource
    explanation: Explanation
    pools: Sequence[Resource] = ()
    cluster: str = ""  # the name of a node pool's cluster


def write_head(described: ResourceDescription, now: datetime) -> list[str]:
    """Return the lines above the tree: name, labels, age."""
    resource, metadata = described.resource, described.resource.metadata
    by = f" by {metadata.created_by}" if metadata.created_by else ""
    edited = format_age(metadata.updated_at, now)
    deadline = described.explanation.next_deadline
    lines = [
        ("Name", resource.name),
        ("Id", resource.id),
        ("Cluster", described.cluster),
        ("Labels", format_labels(resource.labels)),
        ("Created", f"{format_age(metadata.created_at, now)} ago{by}"),
        ("Generation", f"{resource.generation}, changed {edited} ago"),
        ("Deletion", f"requested {format_age(metadata.deletion_timestamp, now)} ago" if resource.is_deleting else ""),
        ("Policy", "" if described.explanation.current else "has changed; this is the status after the recomputation"),
        ("Next", f"deadline in {format_length(deadline - now)}" if deadline and deadline > now else ""),
    ]
    return [f"{label + ':':<12}{text}" for label, text in lines if text]


def make_tree(described: ResourceDescription, now: datetime, *, has_all: bool) -> TreeNode:
    """Return the tree; without `has_all` only the important parts, and equal siblings in one row."""
    writer = _Writer(now, has_all=has_all)
    return writer.resource(described)


class _Writer:
    """Makes rows; ages are relative to one time."""

    def __init__(self, now: datetime, *, has_all: bool) -> None:
        self._now = now
        self._has_all = has_all

    def resource(self, described: ResourceDescription) -> TreeNode:
        """Return the row of the resource with everything below it."""
        status = described.resource.status
        flaps = " (flapping)" if status.phase_flapping else ""
        because = "\n".join(described.explanation.because) if self._has_all else status.phase_description
        children = [
            _branch("Conditions", self.conditions(described.explanation.conditions)),
            _branch("Adapters", self.adapters(described.explanation.adapters, described.resource.generation)),
            _branch("Node pools", self.pools(described.pools)),
        ]
        kind = described.resource.type or "Resource"
        cells = (status.phase + flaps, "", self._age(status.phase_since), because)
        return TreeNode(f"{kind}/{described.resource.name}", cells, [child for child in children if child is not None])

    def conditions(self, conditions: Iterable[ExplainedCondition]) -> list[TreeNode]:
        """Return the rows of conditions: Available, Ready, and those that are not as they should be."""
        shown = [each for each in conditions if self._has_all or each.type in _ALWAYS or _is_remarkable(each)]
        return [self._condition(each) for each in shown]

    def adapters(self, adapters: Sequence[ExplainedAdapter], generation: int) -> list[TreeNode]:
        """Return the rows of adapters; those with the same state, reason and message share one row."""
        rows = []
        for group in self._groups(adapters, _alike):
            names = _format_names([each.name for each in group], "adapter")
            first = group[0]
            state = "Stale" if first.stale else first.state
            reason = first.reason if all(each.reason == first.reason for each in group) else ""
            cells = (state, reason, self._oldest(each.since for each in group), _adapter_message(group, generation))
            rows.append(TreeNode(names + ("" if first.required else " (optional)"), cells))
        return rows

    def pools(self, pools: Sequence[Resource]) -> list[TreeNode]:
        """Return the rows of node pools; those with the same phase and reason share one row."""
        rows = []
        for group in self._groups(pools, _alike_pool):
            first = group[0]
            ready = first.status.condition("Ready")
            is_good = ready is None or ready.status == "True"
            reason, message = ("", "") if is_good or ready is None else (ready.reason, ready.message)
            since = self._oldest(each.status.phase_since for each in group)
            names = _format_names([each.name for each in group], "node pool")
            rows.append(TreeNode(names, (first.phase, reason, since, message)))
        return rows

    def _condition(self, described: ExplainedCondition) -> TreeNode:
        notes = [described.message]
        if described.undamped is not None:
            notes.append(
                f"damped: the rule has been {described.undamped.status} for {self._age(described.undamped.since)}"
            )
        if described.flapping is not None:
            age = self._age(described.flapping.since)
            notes.append(f"flapping for {age}: {described.flapping.transitions} transitions")
        return TreeNode(
            described.type,
            (described.status, described.reason, self._age(described.since), "\n".join(filter(None, notes))),
        )

    def _groups(self, items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
        """Group equal siblings, in the order of the first of each group."""
        if self._has_all:
            return [[item] for item in items]
        groups: dict[Hashable, list[T]] = {}
        for item in items:
            groups.setdefault(key(item), []).append(item)
        return list(groups.values())

    def _age(self, instant: datetime | None) -> str:
        return format_age(instant, self._now) if instant else ""

    def _oldest(self, instants: Iterable[datetime | None]) -> str:
        return self._age(min((each for each in instants if each), default=None))


def _branch(name: str, children: Sequence[TreeNode]) -> TreeNode | None:
    return TreeNode(name, (), children) if children else None


def _is_remarkable(condition: ExplainedCondition) -> bool:
    """Return whether a condition is not as it should be, damped, or flapping."""
    return condition.remedies is not None or condition.flapping is not None or condition.undamped is not None


def _alike(adapter: ExplainedAdapter) -> Hashable:
    if adapter.state in _MESSAGE_IRRELEVANT and not adapter.stale:
        return (adapter.state, adapter.required, adapter.missing)
    return (adapter.state, adapter.required, adapter.stale, adapter.reason, adapter.message)


def _alike_pool(pool: Resource) -> Hashable:
    ready = pool.status.condition("Ready")
    return (pool.phase, ready.status, ready.reason) if ready else (pool.phase,)


def _adapter_message(group: Sequence[ExplainedAdapter], generation: int) -> str:
    """Return the message of an adapter; none for a group."""
    first = group[0]
    if first.last_heard is None:
        return "has not reported in time" if first.missing else "has not reported yet"
    notes = []
    if first.observed_generation != generation:
        notes.append(f"at generation {first.observed_generation}, not yet {generation}")
    if len(group) == 1:
        notes.insert(0, first.message)
    return "\n".join(filter(None, notes))


def _format_names(names: Sequence[str], noun: str) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"{count_of(len(names), noun)}: {shown}"
