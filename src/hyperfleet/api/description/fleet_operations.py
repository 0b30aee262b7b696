"""The operations on many resources, on adapters, on the policy, and on the server itself."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description.filters import AT, FILTERS, GROUP_BY, LIMIT, PAGES, TREND
from hyperfleet.api.description.kind_paths import KindPaths, noun_of
from hyperfleet.api.description.operations import HTML, Operation, Parameter, Success
from hyperfleet.api.description.policy_operations import policy_operations
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED
from hyperfleet.api.description.status_operations import ADAPTER
from hyperfleet.api.description.watch_operations import WATCH, WATCH_HINT, WATCHING
from hyperfleet.api.shapes import (
    AdapterDetail,
    AdapterList,
    Catalogue,
    CatalogueEntry,
    LivenessBody,
    ReadinessBody,
    ResourceList,
    SharedCauses,
    SummaryBody,
)
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.api.wire import BASE

_FLEET: Final = "Fleet"
_SERVER: Final = "Server"
_READING: Final = ("InvalidQuery", "InvalidHeader")


def lists_of(paths: KindPaths) -> list[Operation]:
    """Return the lists and summaries of a kind: of all its resources and, if it has a parent, of those below one."""
    name, tag, nouns, fleet = paths.kind.name, paths.tag, paths.nouns, f"{BASE}/{paths.kind.plural}"
    if paths.parent is None:
        return _lists(fleet, name, tag, nouns, ())
    below = f"{nouns} of a {noun_of(paths.parent)}"
    return [
        *_lists(paths.collection, name, tag, below, paths.collection_parameters),
        *_lists(fleet, f"All{name}", tag, f"{nouns} of the whole fleet", ()),
    ]


def _lists(path: str, name: str, tag: str, what: str, above: tuple[Parameter, ...]) -> list[Operation]:
    refusals = (*_READING, "NotFound") if above else _READING
    return [
        Operation(
            "get",
            path,
            f"list{name}s",
            tag,
            f"List the {what}",
            (Success(200, "One page.", ResourceList, ("ETag?",), other_types=(EVENT_STREAM,)), NOT_MODIFIED),
            "All filters must hold. Use `continue` for the next page, or `page` and `size`. " + WATCH_HINT,
            (*above, *FILTERS, *PAGES, *WATCHING, IF_NONE_MATCH),
            refusals=(*refusals, "Forgotten", "TooManyWatches"),
        ),
        Operation(
            "get",
            f"{path}:summary",
            f"summarize{name}s",
            tag,
            f"Count the {what} in groups",
            (Success(200, "The groups, the largest first.", SummaryBody, ("ETag",)), NOT_MODIFIED),
            "The counts of now; with `at`, of a past moment; with `trend`, of many. Past counts are computed by "
            "undoing later "
            "changes, so the cost of a moment depends on how much has changed since.",
            (*above, GROUP_BY, AT, *TREND, *FILTERS, IF_NONE_MATCH),
            refusals=(*refusals, "Forgotten"),
        ),
    ]


def fleet_operations() -> list[Operation]:
    """Return the operations on what is not one resource: failures, adapters and the policy."""
    return [*_adapter_operations(), *policy_operations()]


def _adapter_operations() -> list[Operation]:
    return [
        Operation(
            "get",
            f"{BASE}/problems",
            "groupFailures",
            _FLEET,
            "List failures, grouped by cause",
            (Success(200, "The causes, the most frequent first.", SharedCauses, ("ETag",)), NOT_MODIFIED),
            "Adapters that are Failed, Unhealthy, stale or missing past the policy's timeout, for resources of all "
            "kinds, "
            "grouped by adapter, reason and message, with the filters of lists. Only resources that may have such an "
            "adapter are read, at most 5,000.",
            (*FILTERS, LIMIT, IF_NONE_MATCH),
            refusals=_READING,
        ),
        Operation(
            "get",
            f"{BASE}/adapters",
            "listAdapters",
            _FLEET,
            "List the adapters",
            (
                Success(
                    200,
                    "Every adapter that has reported or is waited for.",
                    AdapterList,
                    ("ETag?",),
                    other_types=(EVENT_STREAM,),
                ),
                NOT_MODIFIED,
            ),
            "When each last reported, counts of its reports, and how many resources wait for it. " + WATCH_HINT,
            (WATCH, IF_NONE_MATCH),
            refusals=("InvalidHeader", "TooManyWatches"),
        ),
        Operation(
            "get",
            f"{BASE}/adapters/{{adapter}}",
            "getAdapter",
            _FLEET,
            "Read one adapter and the resources that wait for it",
            (Success(200, "The adapter.", AdapterDetail, ("ETag",)), NOT_MODIFIED),
            "",
            (ADAPTER, IF_NONE_MATCH),
            refusals=("InvalidRequest", "InvalidHeader", "NotFound"),
        ),
    ]


def server_operations() -> list[Operation]:
    """Return the operations on the server itself, outside the base path."""
    code = Parameter("code", "path", "A problem code.", example="NotFound")
    html = {"type": "string"}
    return [
        _plain("/healthz", "getLiveness", "Check liveness", (Success(200, "The process is alive.", LivenessBody),)),
        _plain(
            "/readyz",
            "getReadiness",
            "Check readiness",
            (
                Success(200, "The server is ready.", ReadinessBody),
                Success(503, "The server is not ready, for these reasons.", ReadinessBody),
            ),
        ),
        _plain(
            "/openapi.json",
            "getDescription",
            "Read this document",
            (Success(200, "The OpenAPI document.", {"type": "object"}),),
        ),
        _plain(
            "/asyncapi.json",
            "getEventDescription",
            "Read the description of events",
            (Success(200, "The AsyncAPI document.", {"type": "object"}),),
        ),
        _plain(
            "/docs", "getDocs", "Read this document as a page", (Success(200, "The page.", html, content_type=HTML),)
        ),
        _plain("/problems", "listProblems", "List all problem codes", (Success(200, "All codes.", Catalogue),)),
        Operation(
            "get",
            "/metrics",
            "getMetrics",
            _SERVER,
            "Read metrics of the server and the fleet, for Prometheus",
            (
                Success(
                    200,
                    "All metrics that the caller may see.",
                    {"type": "string"},
                    ("ETag?",),
                    content_type="text/plain; version=0.0.4; charset=utf-8",
                    other_types=("application/openmetrics-text; version=1.0.0; charset=utf-8",),
                ),
            ),
            "In the text format of Prometheus, or as OpenMetrics on request. Callers bound to tenants see metrics of "
            "their own resources only. docs/operations.md lists all metrics.",
            refusals=("InvalidHeader",),
        ),
        Operation(
            "get",
            "/problems/{code}",
            "getProblem",
            _SERVER,
            "Read the meaning of a problem code and what to do about it",
            (Success(200, "The entry.", CatalogueEntry),),
            "",
            (code,),
            refusals=("NotFound",),
            role=None,
        ),
    ]


def _plain(path: str, id_: str, summary: str, successes: tuple[Success, ...]) -> Operation:
    return Operation("get", path, id_, _SERVER, summary, successes, role=None)
