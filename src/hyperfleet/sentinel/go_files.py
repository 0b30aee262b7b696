"""Configuration files of the Go sentinel: read and check them, and report where this sentinel differs.

What is the same: `message_decision` (params and result in CEL), `message_data`, `resource_selector`, `resource_type`
and `poll_interval`. A file is evaluated on resources in the form of the compat API, all of them in each pass.

What differs, each reported as a warning where a file depends on it:

- A param that refers to a later one is evaluated after it. The Go sentinel then fails on every resource.
- `deleted_time` is there while a resource is being deleted. The Go sentinel does not know it.
- The default decision skips resources without required adapters. The Go sentinel asks about them in every pass.
- `message_data` may be left out, and a field that is not there is left out in both.
- `clients`, `log`, `debug_config` and `tracing_enabled` have no effect: connections and logs are settings of this
  program, and events go to its own topics.

Numbers of a spec without a fraction are integers here and doubles there: `resource.spec.size + 1.0` fails here, and
`resource.spec.size + 1` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from hyperfleet.documents import DocumentProblem, Places, has_errors, load, salvage
from hyperfleet.documents.durations import Duration
from hyperfleet.sentinel.go_compiler import GoCompiler
from hyperfleet.sentinel.go_decision import GoSentinel

_UNUSED: Final = ("clients", "log", "debug_config", "tracing_enabled")
_NAME: Final = Meta(min_length=1, max_length=253)


class _GoDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file; names are spelt as in Go."""


class GoSentinelDocument(_GoDocument, frozen=True, kw_only=True):
    """The sentinel itself."""

    name: Annotated[str, _NAME] = "hyperfleet-sentinel"


class GoSelectorDocument(_GoDocument, frozen=True, kw_only=True):
    """A label that resources must have."""

    label: Annotated[str, _NAME]
    value: str


class GoParamDocument(_GoDocument, frozen=True, kw_only=True):
    """A named value of the decision."""

    name: Annotated[
        str,
        Meta(
            pattern="^[a-zA-Z_][a-zA-Z0-9_]*$",
            max_length=63,
            extra={"expected": "a name of letters, digits and _ such as is_stale"},
        ),
    ]
    expr: str


class GoDecisionDocument(_GoDocument, frozen=True, kw_only=True):
    """Whether an event is wanted."""

    params: tuple[GoParamDocument, ...] = ()
    result: str


class GoAuthDocument(_GoDocument, frozen=True, kw_only=True):
    """The token of the API; not used here."""

    token_path: str = ""
    token_cache_ttl: Duration | None = None


class GoApiDocument(_GoDocument, frozen=True, kw_only=True):
    """The connection to the API; not used here."""

    base_url: str = ""
    version: str = ""
    timeout: Duration | None = None
    page_size: Annotated[int, Meta(ge=1, le=500)] = 20
    auth: GoAuthDocument | None = None


class GoBrokerDocument(_GoDocument, frozen=True, kw_only=True):
    """The topic; not used here."""

    topic: str = ""


class GoClientsDocument(_GoDocument, frozen=True, kw_only=True):
    """Connections; not used here."""

    hyperfleet_api: GoApiDocument | None = None
    broker: GoBrokerDocument | None = None


class GoFileDocument(_GoDocument, frozen=True, kw_only=True):
    """A configuration file of the Go sentinel."""

    sentinel: GoSentinelDocument = GoSentinelDocument()
    debug_config: bool = False
    tracing_enabled: bool = True
    log: dict[str, Any] = field(default_factory=dict)
    clients: GoClientsDocument = GoClientsDocument()
    resource_type: Annotated[
        str,
        Meta(pattern="^[a-z][a-z0-9-]*$", max_length=63, extra={"expected": "a plural such as clusters"}),
    ]
    poll_interval: Duration = timedelta(seconds=5)
    resource_selector: tuple[GoSelectorDocument, ...] = ()
    message_decision: GoDecisionDocument | None = None
    message_data: dict[str, Any] | None = None


class LoadedGoSentinel(Struct, frozen=True):
    """A Go sentinel (None on any error), every problem, and every difference as a warning."""

    sentinel: GoSentinel | None
    problems: tuple[DocumentProblem, ...]


def is_go_file(text: str) -> bool:
    """Tell a file of the Go sentinel from rules of ours by its keys at the first column."""
    keys = {line.partition(":")[0].rstrip() for line in text.splitlines() if line[:1].isalpha()}
    return bool(keys & {"resource_type", "message_decision", "message_data", "poll_interval", "resource_selector"})


def load_go_sentinel(text: str, file: str = "config.yaml") -> LoadedGoSentinel:
    """Read a file of the Go sentinel, with all errors and warnings."""
    loaded = load(text, GoFileDocument, file=file)
    places = loaded.places
    content = loaded.value or salvage(places.document, GoFileDocument)
    if content is None:
        return LoadedGoSentinel(None, loaded.problems)
    compiler = GoCompiler(places)
    decision = content.message_decision
    params, result = compiler.compile_decision(
        None if decision is None else [(each.name, each.expr) if each else None for each in decision.params],
        "" if decision is None else decision.result,
    )
    data = compiler.compile_data(content.message_data)
    problems = tuple(sorted([*loaded.problems, *_find_problems(content, places), *compiler.problems]))
    if has_errors(problems) or result is None:
        return LoadedGoSentinel(None, problems)
    sentinel = GoSentinel(
        name=content.sentinel.name,
        resource_type=content.resource_type,
        poll_interval=content.poll_interval,
        labels=tuple((each.label, each.value) for each in content.resource_selector),
        params=params,
        result=result,
        data_template=data,
        is_default=decision is None,
    )
    return LoadedGoSentinel(sentinel, problems)


def _find_problems(content: GoFileDocument, places: Places) -> Iterator[DocumentProblem]:
    if content.poll_interval is not None and not content.poll_interval:
        yield DocumentProblem(places.value("/poll_interval"), "must be longer than 0s", "OutOfRange")
    for key in _UNUSED:
        if places.is_given(f"/{key}"):
            message = f"{key} has no effect here: connections and logs are settings of this program"
            yield DocumentProblem(places.key(f"/{key}"), message, "GoDifference", "warning")
    if content.message_decision is None:
        message = (
            "the default decision skips resources without required adapters; the Go sentinel asks about them always"
        )
        yield DocumentProblem(places.value(""), message, "GoDifference", "warning")
