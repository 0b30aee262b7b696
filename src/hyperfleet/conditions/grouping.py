"""The message of an aggregate: equal messages grouped, the worst first, at most three, three names each.

Called by `aggregate` only. Three steps: group, order, write.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hyperfleet.conditions.message import count_kind, is_blank, name_objects, nest, text_of
from hyperfleet.conditions.priority import Priority

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hyperfleet.conditions.merge import RankedCondition

MAX_MESSAGES: Final = 3

_TRAILERS: Final = {
    Priority.ISSUE: "with other issues",
    Priority.UNKNOWN: "with status unknown",
    Priority.INFO: "with additional info",
}


class ConditionGroup(Struct, frozen=True, kw_only=True):
    """All objects of one kind with the same message."""

    kind: str
    text: str
    names: tuple[str, ...]  # in order of arrival
    priority: Priority
    goes_first: bool


def describe(findings: Sequence[RankedCondition]) -> str:
    """Write the message: the issues and unknowns, or, when there are none, the infos with a message."""
    selected = _select(findings)
    control_plane = {f.source.name for f in selected if f.source.is_control_plane_machine}
    groups = sorted(_group(selected), key=_place)
    return "\n".join(_lines(groups, control_plane))


def _select(findings: Sequence[RankedCondition]) -> list[RankedCondition]:
    problems = [finding for finding in findings if finding.priority is not Priority.INFO]
    if problems:
        return sorted(problems, key=lambda finding: finding.priority)
    return [finding for finding in findings if not is_blank(finding.condition.message)]


def _group(findings: Iterable[RankedCondition]) -> Iterator[ConditionGroup]:
    """Group by kind and text. The priority of a text is that over all kinds."""
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    priorities: dict[str, Priority] = {}
    from_control_plane: set[str] = set()
    for finding in findings:
        text = text_of(finding.condition)
        names[finding.source.kind, text].append(finding.source.name)
        priorities[text] = min(finding.priority, priorities.get(text, Priority.INFO))
        if finding.source.is_control_plane_machine:
            from_control_plane.add(text)
    for (kind, text), members in names.items():
        yield ConditionGroup(
            kind=kind,
            text=text,
            names=tuple(members),
            priority=priorities[text],
            goes_first=text in from_control_plane,
        )


def _place(group: ConditionGroup) -> tuple[str, bool, Priority, int, str, str]:
    """Order by kind; then control plane, urgency, size; then by names and text, for a stable order."""
    return (
        group.kind,
        not group.goes_first,
        group.priority,
        -len(group.names),
        ",".join(group.names),
        group.text,
    )


def _lines(groups: Sequence[ConditionGroup], control_plane: set[str]) -> Iterator[str]:
    """Yield, kind by kind, the groups that are shown and then a count of those that are not."""
    shown, counted = groups[:MAX_MESSAGES], groups[MAX_MESSAGES:]
    for kind in dict.fromkeys(group.kind for group in groups):
        yield from (_entry(group, control_plane) for group in shown if group.kind == kind)
        yield from _trailers(kind, [group for group in counted if group.kind == kind])


def _entry(group: ConditionGroup, control_plane: set[str]) -> str:
    names = sorted(group.names, key=lambda name: (name not in control_plane, name))
    return f"* {name_objects(group.kind, names)}:{nest(group.text)}"


def _trailers(kind: str, counted: Sequence[ConditionGroup]) -> Iterator[str]:
    for priority, trailer in _TRAILERS.items():
        count = sum(len(group.names) for group in counted if group.priority is priority)
        if count:
            yield f"And {count} {count_kind(kind, count)} {trailer}"
