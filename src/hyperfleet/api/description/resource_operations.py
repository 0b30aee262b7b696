"""The operations on one resource of a kind: create, read, replace, patch, delete, force-delete."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description import examples, request_schemas
from hyperfleet.api.description.filters import AT, FIELDS
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import JSON, MERGE_PATCH, Operation, Parameter, RequestBody, Success
from hyperfleet.api.description.watch_operations import WATCH_HINT, WATCHING
from hyperfleet.api.shapes import RESOURCE_OR_PARTS
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.api.wire import ResourceAnswer

IF_MATCH: Final = Parameter(
    "If-Match", "header", "Only if the resource has one of these ETags.", request_schemas.ENTITY_TAGS, "*"
)
IF_NONE_MATCH: Final = Parameter(
    "If-None-Match", "header", "Answer 304 if it has one of these ETags.", request_schemas.ENTITY_TAGS, '"1"'
)
IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    "header",
    "A key of your choice: a repeated request with the same key gets the same answer and is not executed again.",
    request_schemas.IDEMPOTENCY_KEY,
    "8e03978e-40d5-43dd-bc93-6894a57f9324",
)
NOT_MODIFIED: Final = Success(304, "Not modified.", None, ("ETag",))
WRITING: Final = ("InvalidBody", "InvalidHeader", "RequestTimeout", "BodyTooLarge", "UnsupportedMediaType")


def operations_on(paths: KindPaths) -> list[Operation]:
    """Return the operations on resources of a kind."""
    return [_create(paths), _read(paths), _replace(paths), _patch(paths), _delete(paths), _force_delete(paths)]


def _create(paths: KindPaths) -> Operation:
    kind = paths.kind
    return Operation(
        "post",
        paths.collection,
        f"create{kind.name}",
        paths.tag,
        f"Create a {paths.noun}",
        (
            Success(
                201,
                "Created, now or by an earlier request with the same `Idempotency-Key`.",
                ResourceAnswer,
                ("Location", "ETag?", "Idempotency-Replayed?"),
                links=paths.links,
            ),
        ),
        "The name must be unique among resources of the same kind and parent, except those that are being deleted.",
        (*paths.collection_parameters, IDEMPOTENCY_KEY),
        RequestBody(request_schemas.creation(kind), examples.creation_of(kind)),
        (
            *WRITING,
            "InvalidLabels",
            *(("NotFound", "ParentBeingDeleted") if kind.parent else ()),
            "NameTaken",
            "InvalidSpec",
            "IdempotencyKeyReused",
        ),
        role="editor",
    )


def _read(paths: KindPaths) -> Operation:
    return Operation(
        "get",
        paths.item,
        f"get{paths.kind.name}",
        paths.tag,
        f"Read a {paths.noun} with its status",
        (
            Success(
                200,
                f"The {paths.noun}, or its requested fields.",
                RESOURCE_OR_PARTS,
                ("ETag?",),
                other_types=(EVENT_STREAM,),
            ),
            NOT_MODIFIED,
        ),
        "Answers the stored status; reading computes nothing. With `at`, the answer of that time: 404 if it did not "
        "exist "
        "then, 410 if that part of the history is no longer kept. " + WATCH_HINT,
        (*paths.item_parameters, FIELDS, AT, *WATCHING, IF_MATCH, IF_NONE_MATCH),
        refusals=("InvalidHeader", "NotFound", "Forgotten", "PreconditionFailed", "TooManyWatches"),
    )


def _replace(paths: KindPaths) -> Operation:
    return Operation(
        "put",
        paths.item,
        f"replace{paths.kind.name}",
        paths.tag,
        f"Repaths the spec and the labels of a {paths.noun}",
        (Success(200, "The new state; the generation has increased if anything changed.", ResourceAnswer, ("ETag",)),),
        "The answer of GET can be sent back with changes; fields that only the server sets are ignored. "
        "A `generation` in the body must be that of the resource.",
        (*paths.item_parameters, IF_MATCH),
        RequestBody(
            request_schemas.replacement(paths.kind), {"spec": examples.spec_of(paths.kind), "labels": examples.LABELS}
        ),
        (
            *WRITING,
            "InvalidLabels",
            "NotFound",
            "GenerationConflict",
            "BeingDeleted",
            "PreconditionFailed",
            "InvalidSpec",
        ),
        role="editor",
    )


def _patch(paths: KindPaths) -> Operation:
    return Operation(
        "patch",
        paths.item,
        f"patch{paths.kind.name}",
        paths.tag,
        f"Change parts of a {paths.noun}",
        (Success(200, "The new state; the generation has increased if anything changed.", ResourceAnswer, ("ETag",)),),
        "A JSON merge patch (RFC 7396): objects are merged, null removes, everything else replaces. "
        "A `generation` in the body must be that of the resource.",
        (*paths.item_parameters, IF_MATCH),
        RequestBody(request_schemas.patch(paths.kind), {"labels": {"team": "payments"}}, (MERGE_PATCH, JSON)),
        (
            *WRITING,
            "InvalidLabels",
            "NotFound",
            "GenerationConflict",
            "BeingDeleted",
            "PreconditionFailed",
            "InvalidSpec",
        ),
        role="editor",
    )


def _delete(paths: KindPaths) -> Operation:
    return Operation(
        "delete",
        paths.item,
        f"delete{paths.kind.name}",
        paths.tag,
        f"Delete a {paths.noun}",
        (Success(202, "It is being deleted, or already gone.", ResourceAnswer, ("ETag?",)),),
        "Its children are deleted with it. It is removed when every required adapter has reported `Finalized=True`; "
        "until then it can be read, with phase Deleting. A repeated request changes nothing.",
        (*paths.item_parameters, IF_MATCH),
        refusals=("InvalidHeader", "NotFound", "PreconditionFailed"),
        role="editor",
    )


def _force_delete(paths: KindPaths) -> Operation:
    return Operation(
        "post",
        f"{paths.item}/force-delete",
        f"forceDelete{paths.kind.name}",
        paths.tag,
        f"Remove a {paths.noun} that is being deleted, without waiting for adapters",
        (Success(204, "It is removed, with its children."),),
        "Objects that adapters created may remain. The history keeps the reason.",
        paths.item_parameters,
        RequestBody(request_schemas.FORCE_DELETE, {"reason": "the cloud account was closed"}),
        (*WRITING, "NotFound", "NotBeingDeleted"),
        role="admin",
    )
