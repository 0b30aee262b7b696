"""Watching and waiting: the parameters that make a stream of a list or a resource, and the operation that waits."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import Operation, Parameter, Success
from hyperfleet.api.shapes import WaitAnswer
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.documents.durations import PATTERN, format_duration
from hyperfleet.services.wait_query import DEFAULT_TIMEOUT, MAX_TERMS, MAX_TIMEOUT, WAIT_CONDITION_PATTERN

WATCH: Final = Parameter(
    "watch",
    "query",
    "Go on with what happens, as server-sent events: `added` for each resource there is, `synced`, then `added`, "
    "`modified` and `deleted` as they come. Not with pages, an order or a time.",
    {"type": "string", "enum": ["true", "false"]},
)
# What makes a watch go on where an earlier one ended.
RESUMPTION: Final = (
    Parameter(
        "after",
        "query",
        "For a watch: begin with what came after the event with this `id`, without a list.",
        {"type": "integer", "minimum": 0},
    ),
    Parameter("Last-Event-ID", "header", "The same as `after`, which it overrides; browsers send it by themselves."),
)
WATCHING: Final = (WATCH, *RESUMPTION)
TOLD: Final = "With `watch=true`: a stream of events, see `docs/watch.md`."


def _wishes(name: str, description: str, example: str | None = None) -> Parameter:
    item = {"type": "string", "pattern": rf"^(?:{WAIT_CONDITION_PATTERN})$"}
    return Parameter(name, "query", description, {"type": "array", "items": item, "maxItems": MAX_TERMS}, example)


_PARAMETERS: Final = (
    _wishes(
        "for",
        "What to wait for: `condition=Type` (True) or `condition=Type=Status`, `phase=Phase`, `adapter=name` "
        "(Completed) or `adapter=name=State`, `generation=N` (every adapter has seen it), `deleted`. Given several "
        "times, all must hold of one version. Without it: `condition=Ready`.",
        "generation=1",
    ),
    _wishes("failOn", "What to give up on, in the same words; one is enough."),
    Parameter(
        "timeout",
        "query",
        f"How long, {format_duration(DEFAULT_TIMEOUT)} unless told and {format_duration(MAX_TIMEOUT)} at most.",
        {"type": "string", "pattern": PATTERN},
    ),
    Parameter(
        "observed",
        "query",
        "Of which generation a condition may be: that of the resource (`current`), or `any`.",
        {"type": "string", "enum": ["current", "any"]},
    ),
)


def operations_on(place: KindPaths) -> list[Operation]:
    """Return the operation that waits for a resource of a kind."""
    return [
        Operation(
            "get",
            f"{place.item}:wait",
            f"waitFor{place.kind.name}",
            place.tag,
            f"Wait until a {place.noun} is as wanted",
            (Success(200, "It is, or was for a moment.", WaitAnswer, other_types=(EVENT_STREAM,)),),
            "Answered as soon as one version is as wanted; every version is looked at. A condition counts only if it "
            "is of the resource's generation, so waiting after an edit does not end with what was before. With "
            "`Accept: text/event-stream`, every version as an event `version`, then `result` or `failed`.",
            (*place.item_parameters, *_PARAMETERS),
            refusals=("InvalidQuery", "NotFound", "WaitFailed", "Gone", "Forgotten", "WaitTimeout", "TooManyWatches"),
        )
    ]
