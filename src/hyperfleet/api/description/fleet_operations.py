"""The operations on many resources, on adapters, on the policy, and on the server itself."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description.filters import AT, FILTERS, GROUP_BY, LIMIT, PAGES, TREND
from hyperfleet.api.description.kind_paths import KindPaths, noun_of
from hyperfleet.api.description.operations import HTML, Operation, Parameter, Success
from hyperfleet.api.description.policy_operations import policy_operations
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED
from hyperfleet.api.description.status_operations import ADAPTER
from hyperfleet.api.description.watch_operations import TOLD, WATCH, WATCHING
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


def lists_of(place: KindPaths) -> list[Operation]:
    """Return the lists and summaries of a kind: of all its resources and, if it has a parent, of those below one."""
    name, tag, nouns, fleet = place.kind.name, place.tag, place.nouns, f"{BASE}/{place.kind.plural}"
    if place.parent is None:
        return _lists(fleet, name, tag, nouns, ())
    below = f"{nouns} of a {noun_of(place.parent)}"
    return [
        *_lists(place.collection, name, tag, below, place.collection_parameters),
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
            "All filters must hold. Pages follow each other by `continue`, or are asked for by `page` and `size`. "
            + TOLD,
            (*above, *FILTERS, *PAGES, *WATCHING, IF_NONE_MATCH),
            refusals=(*refusals, "Forgotten", "TooManyWatches"),
        ),
        Operation(
            "get",
            f"{path}:summary",
            f"summarize{name}s",
            tag,
            f"Count the {what} by what they have in common",
            (Success(200, "The groups, the largest first.", SummaryBody, ("ETag",)), NOT_MODIFIED),
            "Of now or, with `at`, of a moment of the past; with `trend`, of many. The past is counted back from the "
            "present by undoing what happened since, so a moment costs as much as has changed since then.",
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
            "Ask what fails, grouped by cause",
            (Success(200, "The causes, those with the most resources first.", SharedCauses, ("ETag",)), NOT_MODIFIED),
            "Adapters that are Failed, Unhealthy, stale or missing past the policy's timeout, of all kinds of "
            "resources, grouped by adapter, reason and message; the filters are those of lists. Only resources that "
            "may have such an adapter are read, 5,000 at most.",
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
                    "Every adapter that was heard of or is waited for.",
                    AdapterList,
                    ("ETag?",),
                    other_types=(EVENT_STREAM,),
                ),
                NOT_MODIFIED,
            ),
            "When each was last heard of, what became of its reports, and how many resources wait for it. " + TOLD,
            (WATCH, IF_NONE_MATCH),
            refusals=("InvalidHeader", "TooManyWatches"),
        ),
        Operation(
            "get",
            f"{BASE}/adapters/{{adapter}}",
            "getAdapter",
            _FLEET,
            "Read one adapter, and which resources wait for it",
            (Success(200, "The adapter.", AdapterDetail, ("ETag",)), NOT_MODIFIED),
            "",
            (ADAPTER, IF_NONE_MATCH),
            refusals=("InvalidRequest", "InvalidHeader", "NotFound"),
        ),
    ]


def server_operations() -> list[Operation]:
    """Return the operations on the server itself, outside the base path."""
    code = Parameter("code", "path", "The code of a problem.", example="NotFound")
    html = {"type": "string"}
    return [
        _plain("/healthz", "getLiveness", "Ask whether the process lives", (Success(200, "It does.", LivenessBody),)),
        _plain(
            "/readyz",
            "getReadiness",
            "Ask whether the server can do its work",
            (Success(200, "It can.", ReadinessBody), Success(503, "It cannot, for these reasons.", ReadinessBody)),
        ),
        _plain("/openapi.json", "getDescription", "Read this document", (Success(200, "It.", {"type": "object"}),)),
        _plain("/docs", "getDocs", "Read this document as a page", (Success(200, "It.", html, content_type=HTML),)),
        _plain("/problems", "listProblems", "List the codes of problems", (Success(200, "All of them.", Catalogue),)),
        Operation(
            "get",
            "/metrics",
            "getMetrics",
            _SERVER,
            "Read figures of the server and the fleet, for Prometheus",
            (
                Success(
                    200,
                    "All that the caller may see.",
                    {"type": "string"},
                    ("ETag?",),
                    content_type="text/plain; version=0.0.4; charset=utf-8",
                    other_types=("application/openmetrics-text; version=1.0.0; charset=utf-8",),
                ),
            ),
            "In the text format of Prometheus, or as OpenMetrics if that is asked for. Callers who are bound to "
            "tenants see figures of their own resources only. docs/operations.md tells what there is.",
            refusals=("InvalidHeader",),
        ),
        Operation(
            "get",
            "/problems/{code}",
            "getProblem",
            _SERVER,
            "Read what a code means and what to do about it",
            (Success(200, "The entry.", CatalogueEntry),),
            "",
            (code,),
            refusals=("NotFound",),
            role=None,
        ),
    ]


def _plain(path: str, id_: str, summary: str, successes: tuple[Success, ...]) -> Operation:
    return Operation("get", path, id_, _SERVER, summary, successes, role=None)
