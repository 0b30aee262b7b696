"""The wire shape of differences between two answers: which differences count, and their one-line summary.

`differences` calls `find_differences`. It is pure, and slow for large specs, so it runs outside the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from hyperfleet.api.shapes import Count
from hyperfleet.api.wire import Time
from hyperfleet.documents import pointer
from hyperfleet.documents.wording import count
from hyperfleet.services.difference import DifferenceKind, DocumentDifference, Names, compare_documents

MAX_DIFFERENCES: Final = 1_000  # shown, more than anybody reads; the rest is only counted
_MAX_PARTS: Final = 12  # of a summary, so that it stays one line

_CONDITIONS: Final = ("status", "conditions")
_ADAPTERS: Final = ("status", "adapters")
_LABELS: Final = ("metadata", "labels")
_NAMES: Final[Names] = {_CONDITIONS: "type", _ADAPTERS: "name"}
_IDENTITY: Final = frozenset({"id", "href", "name"})
_DELETION: Final[Mapping[DifferenceKind, str]] = {
    "added": "deletion requested",
    "removed": "deletion not requested",
    "changed": "deletion requested at another time",
}
_TIMES: Final = frozenset(
    {"lastUpdated", "lastTransitionTime", "since", "stateSince", "phaseSince", "createdAt", "updatedAt"}
)


class DifferenceAnswer(Struct, frozen=True, rename="camel"):
    """One path at which the two differ."""

    path: Annotated[
        str,
        Meta(
            description="A JSON pointer; conditions and adapters are keyed by their names: "
            "`/status/conditions/Ready/status`."
        ),
    ]
    kind: DifferenceKind
    from_: Annotated[Any, Meta(description="Absent if it was added.")] = field(default=UNSET, name="from")
    to: Annotated[Any, Meta(description="Absent if it was removed.")] = UNSET


class SideAnswer(Struct, frozen=True, rename="camel"):
    """One of the two sides of a comparison."""

    id: str
    href: str
    revision: Annotated[int, Meta(ge=1, description="Its ETag.")]
    generation: Annotated[int, Meta(ge=1)]
    time: Annotated[Time | UnsetType, Meta(description="The side is as of this time; absent: as of now.")] = UNSET


class Differences(Struct, frozen=True, rename="camel"):
    """The differences between a resource and an earlier or later version of it, or another resource."""

    summary: Annotated[str, Meta(description="The most important differences, on one line.")]
    from_: SideAnswer = field(name="from")
    to: SideAnswer
    items: Annotated[tuple[DifferenceAnswer, ...], Meta(description=f"The first {MAX_DIFFERENCES:,} differences.")]
    total: Annotated[Count, Meta(description="The number of differences, without the times that are left out.")]
    truncated: Annotated[bool, Meta(description="There are more differences than are shown.")]
    times_changed: Annotated[
        Count, Meta(description="The number of differing fields that are only times; `times=true` shows them.")
    ]


class Side(Struct, frozen=True):
    """A resource as a GET answers it, now or at `time`."""

    answer: bytes
    revision: int
    time: datetime | None = None


def find_differences(before: Side, after: Side, *, with_times: bool) -> Differences:
    """Compare two answers. The id, name and href of two resources do not count as differences."""
    old, new = msgspec.json.decode(before.answer), msgspec.json.decode(after.answer)
    found = [
        each for each in compare_documents(old, new, _NAMES) if not (len(each.path) == 1 and each.path[0] in _IDENTITY)
    ]
    news = [each for each in found if not _is_time(each)]
    shown = found if with_times else news
    return Differences(
        summary=summarize(news, new, len(found) - len(news)),
        from_=_present_side(before, old),
        to=_present_side(after, new),
        items=tuple([_present(each) for each in shown[:MAX_DIFFERENCES]]),
        total=len(shown),
        truncated=len(shown) > MAX_DIFFERENCES,
        times_changed=len(found) - len(news),
    )


def summarize(news: Sequence[DocumentDifference], after: dict[str, Any], moved_times: int = 0) -> str:
    """Summarize differences on one line, the status first; `after` is the second document."""
    parts = [*_summarize_status(news, after), *_summarize_rest(news)]
    if len(parts) > _MAX_PARTS:
        parts[_MAX_PARTS:] = [f"and {len(parts) - _MAX_PARTS} more"]
    if not parts and news:
        parts = [count(len(news), "small difference")]
    return "; ".join(parts) or ("nothing but times" if moved_times else "no difference")


def _is_time(difference: DocumentDifference) -> bool:
    """Return whether a difference is only of a time of ours; specs and labels belong to users."""
    path = difference.path
    is_ours = path[0] in ("status", "metadata") and path[:2] != _LABELS
    is_object = isinstance(difference.before, dict) or isinstance(difference.after, dict)
    return is_ours and path[-1] in _TIMES and not is_object


def _summarize_status(news: Sequence[DocumentDifference], after: dict[str, Any]) -> Iterator[str]:
    moved = {each.path[:3] for each in news if each.path[:2] == _CONDITIONS and each.path[3:] == ("status",)}
    conditions = {condition["type"]: condition for condition in after["status"]["conditions"]}
    for each in news:
        match each.path:
            case ("status", "phase"):
                yield f"phase {_arrow(each)}"
            case ("status", "conditions", type_, "status"):
                yield f"{type_} {_arrow(each)}{_in_brackets(conditions[type_]['reason'])}"
            case ("status", "conditions", type_, "reason") if each.path[:3] not in moved:
                yield f"{type_} still {conditions[type_]['status']} ({_arrow(each)})"
            case ("status", "conditions", type_, "flapping"):
                yield f"{type_} {_flaps(each)}"
            case ("status", "phaseFlapping"):
                yield f"phase {_flaps(each)}"
            case ("status", "conditions", type_):
                yield f"{type_} {_came_or_went(each, 'status')}"
            case ("status", "adapters", name, "state"):
                yield f"{name} {_arrow(each)}"
            case ("status", "adapters", name, "stale"):
                yield f"{name} {'is stale' if each.after else 'is no longer stale'}"
            case ("status", "adapters", name):
                yield f"{name} {_came_or_went(each, 'state')}"


def _summarize_rest(news: Sequence[DocumentDifference]) -> Iterator[str]:
    for each in news:
        if each.path == ("generation",):
            yield f"generation {_arrow(each)}"
        elif each.path == ("metadata", "deletionTimestamp"):
            yield _DELETION[each.kind]
    for name, start in (("spec", ("spec",)), ("labels", _LABELS)):
        inside = sum(1 for each in news if each.path[: len(start)] == start)
        if inside:
            yield f"{name}: {count(inside, 'difference')}"


def _arrow(difference: DocumentDifference) -> str:
    return f"{difference.before or 'none'} → {difference.after or 'none'}"


def _in_brackets(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _flaps(difference: DocumentDifference) -> str:
    return "is no longer flapping" if difference.after is UNSET else "is flapping"


def _came_or_went(difference: DocumentDifference, key: str) -> str:
    return "is gone" if difference.after is UNSET else f"is new: {difference.after[key]}"


def _present(difference: DocumentDifference) -> DifferenceAnswer:
    return DifferenceAnswer(pointer.join("", *difference.path), difference.kind, difference.before, difference.after)


def _present_side(side: Side, document: dict[str, Any]) -> SideAnswer:
    time = side.time or UNSET
    return SideAnswer(document["id"], document["href"], side.revision, document["generation"], time)
