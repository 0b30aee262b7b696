"""The operations that send reports on resources and read them."""

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
    "Only reports at this generation.",
    {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
)

_OUTCOMES: Final = "The outcome of each report is in `outcomes`; a discarded report is answered, too."
_REFUSALS: Final = (*WRITING, "NotFound", "GenerationAhead", "TooManyAdapters")


def operations_on(paths: KindPaths) -> list[Operation]:
    """Return the operations on the reports about resources of a kind."""
    return [*_whole_object(paths), *_one_adapter(paths)]


def _whole_object(paths: KindPaths) -> list[Operation]:
    path, kind, tag = f"{paths.item}/statuses", paths.kind.name, f"{paths.kind.name} reports"
    status_id = Parameter("statusId", "path", "The id of the status object.", example=f"status-{paths.example_id}")
    return [
        Operation(
            "get",
            path,
            f"get{kind}Statuses",
            tag,
            f"Read the reports on a {paths.noun}",
            (Success(200, "The last report of each adapter.", StatusObject, ("ETag",)), NOT_MODIFIED),
            "404 before the first report. With `at`, the answer of that time; not together with `generation`.",
            (*paths.item_parameters, GENERATION, AT, IF_NONE_MATCH),
            refusals=("InvalidQuery", "InvalidHeader", "NotFound", "Forgotten"),
        ),
        Operation(
            "post",
            path,
            f"report{kind}Status",
            tag,
            f"Report on a {paths.noun}",
            (
                _accepted(paths, 200, "Accepted."),
                _accepted(paths, 201, "Accepted as `adapterStatuses`; they were the first reports on it."),
            ),
            "The same request for the first report and all later ones. Several reports under `adapterStatuses` are "
            "accepted "
            "together, or none of them.",
            (*paths.item_parameters, PREFER),
            RequestBody(request_schemas.REPORT_OR_REPORTS, examples.REPORT),
            _REFUSALS,
            role="reporter",
        ),
        Operation(
            "get",
            f"{path}/{{statusId}}",
            f"get{kind}StatusesById",
            tag,
            f"Read the reports on a {paths.noun} by the id of the status object",
            (Success(200, "The last report of each adapter.", StatusObject, ("ETag",)), NOT_MODIFIED),
            "The id of a status object of one generation ends in `-gen` and its number.",
            (*paths.item_parameters, status_id, IF_NONE_MATCH),
            refusals=("InvalidHeader", "NotFound"),
        ),
        Operation(
            "patch",
            f"{path}/{{statusId}}",
            f"patch{kind}Status",
            tag,
            f"Report on a {paths.noun} that has reports",
            (_accepted(paths, 200, "Accepted."),),
            "The same as POST, with the id of the status object; before the first report there is none.",
            (*paths.item_parameters, status_id, PREFER),
            RequestBody(request_schemas.REPORT_OR_REPORTS, examples.REPORT, (JSON, MERGE_PATCH)),
            _REFUSALS,
            role="reporter",
        ),
    ]


def _one_adapter(paths: KindPaths) -> list[Operation]:
    path, kind, tag = f"{paths.item}/statuses/adapters/{{adapter}}", paths.kind.name, f"{paths.kind.name} reports"
    unnamed = {key: value for key, value in examples.REPORT.items() if key != "adapter"}
    return [
        Operation(
            "get",
            path,
            f"get{kind}AdapterStatus",
            tag,
            f"Read the report of one adapter on a {paths.noun}",
            (Success(200, "Its last report.", AdapterStatus, ("ETag",)), NOT_MODIFIED),
            "",
            (*paths.item_parameters, ADAPTER, IF_NONE_MATCH),
            refusals=("InvalidRequest", "InvalidHeader", "NotFound"),
        ),
        Operation(
            "put",
            path,
            f"put{kind}AdapterStatus",
            tag,
            f"Report on a {paths.noun} as the adapter in the path",
            (_accepted(paths, 200, "Accepted."),),
            "",
            (*paths.item_parameters, ADAPTER, PREFER),
            RequestBody(request_schemas.REPORT_OF_NAMED, unnamed),
            ("InvalidRequest", *_REFUSALS),
            role="reporter",
        ),
        Operation(
            "delete",
            path,
            f"retire{kind}Adapter",
            tag,
            f"Retire an adapter of a {paths.noun}",
            (Success(204, "Its report is deleted, and the status recomputed without it."),),
            "For an adapter that will not report again.",
            (*paths.item_parameters, ADAPTER),
            refusals=("InvalidRequest", "NotFound"),
            role="reporter",
        ),
    ]


def batch_operation(most: int) -> Operation:
    """Return the operation that reports on many resources."""
    report = {"clusterId": "cls-01jd3k2m9pqr5tv8wxyz", **examples.REPORT}
    return Operation(
        "post",
        f"{BASE}/statuses:batch",
        "reportBatch",
        "Fleet",
        "Report on many resources at once",
        (Success(200, "The outcome of each report, in the same order.", BatchAnswer),),
        f"Up to {most} reports; each is accepted or refused as if it had been sent alone.",
        (),
        RequestBody(request_schemas.batch(most), {"reports": [report]}),
        WRITING,
        role="reporter",
    )


def _accepted(paths: KindPaths, status: int, description: str) -> Success:
    return Success(
        status,
        f"{description} {_OUTCOMES}",
        (ReportAnswerBody, BriefReportAnswer),
        ("Preference-Applied?", *(("Location",) if status == 201 else ())),
        links=paths.report_links,
    )
