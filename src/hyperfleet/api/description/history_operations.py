"""The operations on what changed and why: explanations, history, differences, transitions."""

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
from hyperfleet.api.description.watch_operations import WATCH_HINT, WATCHING
from hyperfleet.api.difference_wire import Differences
from hyperfleet.api.explanation_wire import ExplanationAnswer
from hyperfleet.api.shapes import HistoryPage, TransitionPage
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.api.wire import BASE


def operations_on(paths: KindPaths) -> list[Operation]:
    """Return the operations that explain and compare resources of a kind."""
    refusals = ("InvalidQuery", "InvalidHeader", "NotFound")
    return [
        Operation(
            "get",
            f"{paths.item}:explain",
            f"explain{paths.kind.name}",
            paths.tag,
            f"Explain the status of a {paths.noun}",
            (Success(200, "The explanation.", ExplanationAnswer, ("ETag",), other_types=(TEXT,)), NOT_MODIFIED),
            "Leads from the phase to conditions, rules, the terms of their expressions and adapters, with the smallest "
            "sets of reports that would make a condition good. With `Accept: text/plain`, as text for a terminal. It "
            "explains the stored status as of the time of its computation.",
            (*paths.item_parameters, CONDITION, IF_NONE_MATCH),
            refusals=refusals,
        ),
        Operation(
            "get",
            f"{paths.item}/history",
            f"get{paths.kind.name}History",
            paths.tag,
            f"Read the history of a {paths.noun}",
            (Success(200, "One page, the newest first.", HistoryPage, ("ETag",)), NOT_MODIFIED),
            "Every transition of the phase and of conditions with its cause, also of a removed resource, as long as "
            "its "
            "events are kept.",
            (*paths.item_parameters, SUBJECT, *SPAN, LIMIT, CONTINUE, IF_NONE_MATCH),
            refusals=refusals,
        ),
        Operation(
            "get",
            f"{paths.item}:diff",
            f"diff{paths.kind.name}",
            paths.tag,
            f"Compare a {paths.noun} with an earlier version of it, or with another one",
            (Success(200, "The differences.", Differences, ("ETag",), other_types=(TEXT,)), NOT_MODIFIED),
            "Compares spec, labels and status between two times, or with another resource as of now; give `from` or "
            "`against`. Fields that are only times are counted and left out. With `Accept: text/plain`, as text for a "
            "terminal.",
            (*paths.item_parameters, *COMPARISON, IF_NONE_MATCH),
            refusals=(*refusals, "Forgotten"),
        ),
    ]


def transitions_operation() -> Operation:
    """Return the operation on transitions of the whole fleet."""
    filters = tuple(each for each in FILTERS if each.name != "updatedSince")
    return Operation(
        "get",
        f"{BASE}/transitions",
        "listTransitions",
        "Fleet",
        "List the transitions of the whole fleet",
        (Success(200, "One page.", TransitionPage, ("ETag?",), other_types=(EVENT_STREAM,)), NOT_MODIFIED),
        "Every change with its transitions of phase and conditions; newest first, or oldest first after a position. "
        "The "
        "filters of lists apply to the resource right after the change. A page may be short or even empty and still "
        "have a `continue`. " + WATCH_HINT,
        (*MOVES, SUBJECT, *filters, *SPAN, ORDER, LIMIT, CONTINUE, *WATCHING, IF_NONE_MATCH),
        refusals=("InvalidQuery", "InvalidHeader", "Forgotten", "TooManyWatches"),
    )
