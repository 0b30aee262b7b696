"""Watches and waits: the parameters that turn a list or a resource into a stream, and the operation that waits."""

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
    "Follow changes as server-sent events: `added` for each resource, `synced`, then `added`, `modified` and `deleted` "
    "as they happen. Not with pages, an order or a time.",
    {"type": "string", "enum": ["true", "false"]},
)
# Parameters that resume a watch.
RESUMPTION: Final = (
    Parameter(
        "after",
        "query",
        "For a watch: resume after the event with this `id`, without a list.",
        {"type": "integer", "minimum": 0},
    ),
    Parameter("Last-Event-ID", "header", "The same as `after`, and takes precedence; browsers send it automatically."),
)
WATCHING: Final = (WATCH, *RESUMPTION)
WATCH_HINT: Final = "With `watch=true`, a stream of events; see `docs/watch.md`."


def _wait_conditions(name: str, description: str, example: str | None = None) -> Parameter:
    item = {"type": "string", "pattern": rf"^(?:{WAIT_CONDITION_PATTERN})$"}
    return Parameter(name, "query", description, {"type": "array", "items": item, "maxItems": MAX_TERMS}, example)


_PARAMETERS: Final = (
    _wait_conditions(
        "for",
        "The wait condition: `condition=Type` (True) or `condition=Type=Status`, `phase=Phase`, `adapter=name` "
        "(Completed) or `adapter=name=State`, `generation=N` (observed by every adapter), `deleted`. If given "
        "several times, all must hold in one version. Default: `condition=Ready`.",
        "generation=1",
    ),
    _wait_conditions("failOn", "When to give up, in the same syntax; one is enough."),
    Parameter(
        "timeout",
        "query",
        f"The timeout; default: {format_duration(DEFAULT_TIMEOUT)}, at most {format_duration(MAX_TIMEOUT)}.",
        {"type": "string", "pattern": PATTERN},
    ),
    Parameter(
        "observed",
        "query",
        "The generation that a condition must be of: that of the resource (`current`), or `any`.",
        {"type": "string", "enum": ["current", "any"]},
    ),
)


def operations_on(paths: KindPaths) -> list[Operation]:
    """Return the operation that waits for a resource of a kind."""
    return [
        Operation(
            "get",
            f"{paths.item}:wait",
            f"waitFor{paths.kind.name}",
            paths.tag,
            f"Wait for a state of a {paths.noun}",
            (Success(200, "The wait condition is met, or was for a moment.", WaitAnswer, other_types=(EVENT_STREAM,)),),
            "Answers as soon as one version meets the wait condition; every version is checked. A condition counts "
            "only if "
            "it is of the current generation, so a wait after an edit does not end with an old status. With "
            "`Accept: text/event-stream`, every version as an event `version`, then `result` or `failed`.",
            (*paths.item_parameters, *_PARAMETERS),
            refusals=("InvalidQuery", "NotFound", "WaitFailed", "Gone", "Forgotten", "WaitTimeout", "TooManyWatches"),
        )
    ]
