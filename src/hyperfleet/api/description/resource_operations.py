"""The operations on one resource of a kind: create, read, replace, patch, delete, force-delete."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description import examples, request_schemas
from hyperfleet.api.description.filters import AT, FIELDS
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import JSON, MERGE_PATCH, Operation, Parameter, RequestBody, Success
from hyperfleet.api.description.watch_operations import TOLD, WATCHING
from hyperfleet.api.shapes import RESOURCE_OR_PARTS
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.api.wire import ResourceAnswer

IF_MATCH: Final = Parameter(
    "If-Match", "header", "Do it only if the resource still has one of these ETags.", request_schemas.ENTITY_TAGS, "*"
)
IF_NONE_MATCH: Final = Parameter(
    "If-None-Match", "header", "Answer 304 if it still has one of these ETags.", request_schemas.ENTITY_TAGS, '"1"'
)
IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    "header",
    "A word of your own for this request: sent again with it, the request is answered again but not done again.",
    request_schemas.IDEMPOTENCY_KEY,
    "8e03978e-40d5-43dd-bc93-6894a57f9324",
)
NOT_MODIFIED: Final = Success(304, "It is still the one you know.", None, ("ETag",))
WRITING: Final = ("InvalidBody", "InvalidHeader", "RequestTimeout", "BodyTooLarge", "UnsupportedMediaType")


def operations_on(place: KindPaths) -> list[Operation]:
    """Return the operations on resources of a kind."""
    return [_create(place), _read(place), _replace(place), _patch(place), _delete(place), _force_delete(place)]


def _create(place: KindPaths) -> Operation:
    kind = place.kind
    return Operation(
        "post",
        place.collection,
        f"create{kind.name}",
        place.tag,
        f"Create a {place.noun}",
        (
            Success(
                201,
                "It was created, or had been by an earlier request with the same `Idempotency-Key`.",
                ResourceAnswer,
                ("Location", "ETag?", "Idempotency-Replayed?"),
                links=place.links,
            ),
        ),
        "The name must be free among those of the same kind and parent; that of a resource which is being deleted is.",
        (*place.collection_parameters, IDEMPOTENCY_KEY),
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


def _read(place: KindPaths) -> Operation:
    return Operation(
        "get",
        place.item,
        f"get{place.kind.name}",
        place.tag,
        f"Read a {place.noun} with its status",
        (
            Success(
                200,
                f"The {place.noun}, or the parts of it that were asked for.",
                RESOURCE_OR_PARTS,
                ("ETag?",),
                other_types=(EVENT_STREAM,),
            ),
            NOT_MODIFIED,
        ),
        "The status was computed when it last changed; reading computes nothing. With `at`, what was answered then; "
        "404 if it was not there yet or no longer, 410 if that is no longer known. " + TOLD,
        (*place.item_parameters, FIELDS, AT, *WATCHING, IF_MATCH, IF_NONE_MATCH),
        refusals=("InvalidHeader", "NotFound", "Forgotten", "PreconditionFailed", "TooManyWatches"),
    )


def _replace(place: KindPaths) -> Operation:
    return Operation(
        "put",
        place.item,
        f"replace{place.kind.name}",
        place.tag,
        f"Replace the spec and the labels of a {place.noun}",
        (Success(200, "It is so now; the generation rose if anything changed.", ResourceAnswer, ("ETag",)),),
        "What GET answered can be sent back with changes; what only the server sets is ignored. "
        "A `generation` in the body must be that of the resource.",
        (*place.item_parameters, IF_MATCH),
        RequestBody(
            request_schemas.replacement(place.kind), {"spec": examples.spec_of(place.kind), "labels": examples.LABELS}
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


def _patch(place: KindPaths) -> Operation:
    return Operation(
        "patch",
        place.item,
        f"patch{place.kind.name}",
        place.tag,
        f"Change parts of a {place.noun}",
        (Success(200, "It is so now; the generation rose if anything changed.", ResourceAnswer, ("ETag",)),),
        "A JSON merge patch (RFC 7396): objects merge, null takes away, everything else replaces. "
        "A `generation` in the body must be that of the resource.",
        (*place.item_parameters, IF_MATCH),
        RequestBody(request_schemas.patch(place.kind), {"labels": {"team": "payments"}}, (MERGE_PATCH, JSON)),
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


def _delete(place: KindPaths) -> Operation:
    return Operation(
        "delete",
        place.item,
        f"delete{place.kind.name}",
        place.tag,
        f"Ask for a {place.noun} to go",
        (Success(202, "It is being deleted, or gone already.", ResourceAnswer, ("ETag?",)),),
        "What is below it goes with it. It is gone when every required adapter has reported `Finalized=True`; until "
        "then it can be read, with phase Deleting. Asked again, nothing changes.",
        (*place.item_parameters, IF_MATCH),
        refusals=("InvalidHeader", "NotFound", "PreconditionFailed"),
        role="editor",
    )


def _force_delete(place: KindPaths) -> Operation:
    return Operation(
        "post",
        f"{place.item}/force-delete",
        f"forceDelete{place.kind.name}",
        place.tag,
        f"Remove a {place.noun} that is being deleted, without waiting for adapters",
        (Success(204, "It is gone, and what was below it."),),
        "What adapters made may remain. History keeps who did it and why.",
        place.item_parameters,
        RequestBody(request_schemas.FORCE_DELETE, {"reason": "the cloud account was closed"}),
        (*WRITING, "NotFound", "NotBeingDeleted"),
        role="admin",
    )
