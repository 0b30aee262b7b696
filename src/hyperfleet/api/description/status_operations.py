"""The operations with which adapters report on resources, and with which what they reported is read."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description import examples, request_schemas
from hyperfleet.api.description.filters import AT
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import JSON, MERGE_PATCH, Operation, Parameter, RequestBody, Success
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED, WRITING
from hyperfleet.api.wire import BASE, AdapterStatus, BatchAnswer, BriefReportAnswer, ReportAnswerBody, StatusObject

ADAPTER: Final = Parameter("adapter", "path", "The name of the adapter.", request_schemas.ADAPTER_NAME, "dns")
PREFER: Final = Parameter(
    "Prefer",
    "header",
    "`return=minimal` asks for a short answer, `return=representation` for the whole status object.",
    example="return=minimal",
)
GENERATION: Final = Parameter(
    "generation",
    "query",
    "The last report of each adapter at this generation only.",
    {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
)

_TAKEN: Final = "What became of each report is in `outcomes`: a discarded one is answered, too."
_REFUSALS: Final = (*WRITING, "NotFound", "GenerationAhead", "TooManyAdapters")


def operations_on(place: KindPaths) -> list[Operation]:
    """Return the operations on the reports about resources of a kind."""
    return [*_whole_object(place), *_one_adapter(place)]


def _whole_object(place: KindPaths) -> list[Operation]:
    path, kind, tag = f"{place.item}/statuses", place.kind.name, f"{place.kind.name} reports"
    status_id = Parameter("statusId", "path", "The id of the status object.", example=f"status-{place.example_id}")
    return [
        Operation(
            "get",
            path,
            f"get{kind}Statuses",
            tag,
            f"Read what every adapter reported on a {place.noun}",
            (Success(200, "The last report of each adapter.", StatusObject, ("ETag",)), NOT_MODIFIED),
            "There is none (404) before the first report. With `at`, what was answered then; not with `generation`.",
            (*place.item_parameters, GENERATION, AT, IF_NONE_MATCH),
            refusals=("InvalidQuery", "InvalidHeader", "NotFound", "Forgotten"),
        ),
        Operation(
            "post",
            path,
            f"report{kind}Status",
            tag,
            f"Report on a {place.noun}",
            (
                _taken(place, 200, "Taken in."),
                _taken(place, 201, "Taken in, as `adapterStatuses`, and they were the first reports on it."),
            ),
            "Always the same request, be it the first report or not. Several reports under `adapterStatuses` are "
            "taken in together, or none of them.",
            (*place.item_parameters, PREFER),
            RequestBody(request_schemas.REPORT_OR_REPORTS, examples.REPORT),
            _REFUSALS,
            role="reporter",
        ),
        Operation(
            "get",
            f"{path}/{{statusId}}",
            f"get{kind}StatusesById",
            tag,
            f"Read what every adapter reported on a {place.noun}, by the id of the status object",
            (Success(200, "The last report of each adapter.", StatusObject, ("ETag",)), NOT_MODIFIED),
            "The id ends with `-gen` and a number if it is about one generation.",
            (*place.item_parameters, status_id, IF_NONE_MATCH),
            refusals=("InvalidHeader", "NotFound"),
        ),
        Operation(
            "patch",
            f"{path}/{{statusId}}",
            f"patch{kind}Status",
            tag,
            f"Report on a {place.noun} that has reports",
            (_taken(place, 200, "Taken in."),),
            "The same as POST for those who know the id of the status object; before the first report there is none.",
            (*place.item_parameters, status_id, PREFER),
            RequestBody(request_schemas.REPORT_OR_REPORTS, examples.REPORT, (JSON, MERGE_PATCH)),
            _REFUSALS,
            role="reporter",
        ),
    ]


def _one_adapter(place: KindPaths) -> list[Operation]:
    path, kind, tag = f"{place.item}/statuses/adapters/{{adapter}}", place.kind.name, f"{place.kind.name} reports"
    unnamed = {key: value for key, value in examples.REPORT.items() if key != "adapter"}
    return [
        Operation(
            "get",
            path,
            f"get{kind}AdapterStatus",
            tag,
            f"Read what one adapter reported on a {place.noun}",
            (Success(200, "Its last report.", AdapterStatus, ("ETag",)), NOT_MODIFIED),
            "",
            (*place.item_parameters, ADAPTER, IF_NONE_MATCH),
            refusals=("InvalidRequest", "InvalidHeader", "NotFound"),
        ),
        Operation(
            "put",
            path,
            f"put{kind}AdapterStatus",
            tag,
            f"Report on a {place.noun} as the adapter that the path names",
            (_taken(place, 200, "Taken in."),),
            "",
            (*place.item_parameters, ADAPTER, PREFER),
            RequestBody(request_schemas.REPORT_OF_NAMED, unnamed),
            ("InvalidRequest", *_REFUSALS),
            role="reporter",
        ),
        Operation(
            "delete",
            path,
            f"retire{kind}Adapter",
            tag,
            f"Forget what an adapter reported on a {place.noun}",
            (Success(204, "Forgotten, and the status computed without it."),),
            "For an adapter that will report no more.",
            (*place.item_parameters, ADAPTER),
            refusals=("InvalidRequest", "NotFound"),
            role="reporter",
        ),
    ]


def batch_operation(most: int) -> Operation:
    """Return the operation with which many reports on many resources are sent at once."""
    report = {"clusterId": "cls-01jd3k2m9pqr5tv8wxyz", **examples.REPORT}
    return Operation(
        "post",
        f"{BASE}/statuses:batch",
        "reportBatch",
        "Fleet",
        "Report on many resources at once",
        (Success(200, "What became of each report, in the order they were sent.", BatchAnswer),),
        f"Up to {most} reports; each is taken in or refused as if it had come alone.",
        (),
        RequestBody(request_schemas.batch(most), {"reports": [report]}),
        WRITING,
        role="reporter",
    )


def _taken(place: KindPaths, status: int, description: str) -> Success:
    return Success(
        status,
        f"{description} {_TAKEN}",
        (ReportAnswerBody, BriefReportAnswer),
        ("Preference-Applied?", *(("Location",) if status == 201 else ())),
        links=place.report_links,
    )
