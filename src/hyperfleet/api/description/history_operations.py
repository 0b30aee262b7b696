"""The operations that answer what changed and why: the history of a resource, and the explanation of its status."""

from __future__ import annotations

from hyperfleet.api.description.filters import (
    COMPARISON,
    CONDITION,
    CONTINUE,
    FILTERS,
    LIMIT,
    MOVES,
    ORDER,
    SPAN,
    SUBJECT,
)
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import TEXT, Operation, Success
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED
from hyperfleet.api.description.watch_operations import TOLD, WATCHING
from hyperfleet.api.difference_wire import Differences
from hyperfleet.api.explanation_wire import ExplanationAnswer
from hyperfleet.api.shapes import HistoryPage, TransitionPage
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.api.wire import BASE


def operations_on(place: KindPaths) -> list[Operation]:
    """Return the operations on the past and the present of resources of a kind."""
    refusals = ("InvalidQuery", "InvalidHeader", "NotFound")
    return [
        Operation(
            "get",
            f"{place.item}:explain",
            f"explain{place.kind.name}",
            place.tag,
            f"Ask why a {place.noun} has its status",
            (Success(200, "The explanation.", ExplanationAnswer, ("ETag",), other_types=(TEXT,)), NOT_MODIFIED),
            "From the phase to conditions, rules, the terms of their expressions and adapters, with the smallest sets "
            "of reports that would make a condition good. With `Accept: text/plain`, as text for a terminal. It "
            "explains the stored status, as of the moment it was computed.",
            (*place.item_parameters, CONDITION, IF_NONE_MATCH),
            refusals=refusals,
        ),
        Operation(
            "get",
            f"{place.item}/history",
            f"get{place.kind.name}History",
            place.tag,
            f"Read what changed of a {place.noun}, when and why",
            (Success(200, "One page, the newest first.", HistoryPage, ("ETag",)), NOT_MODIFIED),
            "Every move of the phase and of a condition's status, also of a resource that was removed, as long as its "
            "events are kept.",
            (*place.item_parameters, SUBJECT, *SPAN, LIMIT, CONTINUE, IF_NONE_MATCH),
            refusals=refusals,
        ),
        Operation(
            "get",
            f"{place.item}:diff",
            f"diff{place.kind.name}",
            place.tag,
            f"Ask what is different about a {place.noun}: since then, or to another one",
            (Success(200, "The differences.", Differences, ("ETag",), other_types=(TEXT,)), NOT_MODIFIED),
            "Of spec, labels and status, path by path, between two moments or against another resource as it is now; "
            "give `from` or `against`. Fields that only tell times are counted and left out. With "
            "`Accept: text/plain`, as text for a terminal.",
            (*place.item_parameters, *COMPARISON, IF_NONE_MATCH),
            refusals=(*refusals, "Forgotten"),
        ),
    ]


def transitions_operation() -> Operation:
    """Return the operation on what changed over the whole fleet."""
    filters = tuple(each for each in FILTERS if each.name != "updatedSince")
    return Operation(
        "get",
        f"{BASE}/transitions",
        "listTransitions",
        "Fleet",
        "Read what changed over the whole fleet",
        (Success(200, "One page.", TransitionPage, ("ETag?",), other_types=(EVENT_STREAM,)), NOT_MODIFIED),
        "Every change that moved a phase or a condition, each with its transitions; the newest first, or the oldest "
        "first after a position. The filters of lists hold for the resource as it was right after the change. A page "
        "may be short, or even empty, and yet have a `continue`. " + TOLD,
        (*MOVES, SUBJECT, *filters, *SPAN, ORDER, LIMIT, CONTINUE, *WATCHING, IF_NONE_MATCH),
        refusals=("InvalidQuery", "InvalidHeader", "Forgotten", "TooManyWatches"),
    )
