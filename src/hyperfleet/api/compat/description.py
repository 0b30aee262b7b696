"""The OpenAPI document of the compat API, from its collections and the types that handlers encode."""

from __future__ import annotations

from typing import Any, Final

from hyperfleet import __version__
from hyperfleet.api.compat.paging import DEFAULT_SIZE, MAX_PAGE, MAX_SIZE
from hyperfleet.api.compat.problems import CompatErrorBody
from hyperfleet.api.compat.resource_collections import ResourceCollection, list_collections
from hyperfleet.api.compat.shapes import CompatAdapterStatus, ResourceShape
from hyperfleet.api.context import Context
from hyperfleet.api.description.components import describe_types, refer
from hyperfleet.api.problems import MEDIA_TYPE
from hyperfleet.api.wire import BASE

Schema = dict[str, Any]

_JSON: Final = "application/json"
_SECURITY: Final[Schema] = {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}}
_TEXT: Final[Schema] = {"type": "string"}
_MAP: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_OBJECT: Final[Schema] = {"type": "object"}

_NEW: Final[Schema] = {
    "type": "object",
    "required": ["kind", "name", "spec"],
    "properties": {"kind": _TEXT, "name": _TEXT, "spec": _OBJECT, "labels": _MAP},
}
_PATCH: Final[Schema] = {"type": "object", "minProperties": 1, "properties": {"spec": _OBJECT, "labels": _MAP}}
_FORCE: Final[Schema] = {
    "type": "object",
    "required": ["reason"],
    "properties": {"reason": {"type": "string", "minLength": 1, "maxLength": 1024}},
}
_CONDITION: Final[Schema] = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": _TEXT,
        "status": {"enum": ["True", "False", "Unknown"]},
        "reason": _TEXT,
        "message": _TEXT,
    },
}
_REPORT: Final[Schema] = {
    "type": "object",
    "required": ["adapter", "observed_generation", "conditions"],
    "properties": {
        "adapter": _TEXT,
        "observed_generation": {"type": "integer", "minimum": 1},
        "observed_time": {"type": "string", "format": "date-time"},
        "conditions": {"type": "array", "minItems": 3, "items": _CONDITION},
        "data": _OBJECT,
        "metadata": refer("ReportMetadata"),
    },
}
_PAGES: Final = (
    ("page", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 1}),
    ("size", {"type": "integer", "minimum": 1, "maximum": MAX_SIZE, "default": DEFAULT_SIZE}),
)
_FIELDS: Final = (("fields", _TEXT),)
_LIST: Final = (*_PAGES, ("search", _TEXT), ("order", _TEXT), *_FIELDS)


def describe(context: Context) -> Schema:
    """Return the OpenAPI document."""
    has_authentication = context.authenticator is not None
    schemas = describe_types([ResourceShape, CompatAdapterStatus, CompatErrorBody])
    paths: Schema = {}
    for collection in list_collections(context):
        paths |= _describe_collection(collection)
    return {
        "openapi": "3.1.0",
        "info": {"title": "HyperFleet, as the Go clients know it", "version": __version__},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items())), **(_SECURITY if has_authentication else {})},
        **({"security": [{"bearer": []}]} if has_authentication else {}),
    }


def _describe_collection(collection: ResourceCollection) -> Schema:
    here, what = BASE + collection.path, collection.what
    one = f"{here}/{{id}}"
    resource, report = refer("ResourceShape"), refer("AdapterStatus")
    kinds = () if collection.kind else (("kind", _TEXT),)
    operations: Schema = {
        here: {
            "get": _operation(f"List: {what}", here, 200, _page_of(resource), query=(*_LIST, *kinds)),
            "post": _operation(f"Create: {what}", here, 201, resource, _NEW),
        },
        one: {
            "get": _operation(f"Read: {what}", one, 200, resource, query=_FIELDS),
            "patch": _operation(f"Change: {what}", one, 200, resource, _PATCH),
            "delete": _operation(f"Delete: {what}", one, 202, resource),
        },
        f"{one}/force-delete": {"post": _operation(f"Remove: {what}", one, 204, None, _FORCE)},
        f"{one}/statuses": {
            "get": _operation(f"List reports: {what}", one, 200, _page_of(report), query=_PAGES),
            "put": _operation(f"Report: {what}", one, 201, report, _REPORT),
        },
    }
    operations[f"{one}/statuses"]["put"]["responses"]["204"] = {"description": "Discarded; do not retry."}
    return operations


def _operation(
    summary: str,
    path: str,
    status: int,
    answer: Schema | None,
    body: Schema | None = None,
    query: tuple[tuple[str, Schema], ...] = (),
) -> Schema:
    named = [name for name in ("parent_id", "id") if f"{{{name}}}" in path]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in named]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in query]
    success: Schema = {"description": "Done."} | ({"content": {_JSON: {"schema": answer}}} if answer else {})
    problem = {"description": "A problem.", "content": {MEDIA_TYPE: {"schema": refer("ErrorBody")}}}
    described: Schema = {"summary": summary, "responses": {str(status): success, "default": problem}}
    if parameters:
        described["parameters"] = parameters
    if body:
        described["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    return described


def _page_of(item: Schema) -> Schema:
    number = {"type": "integer"}
    properties = {"items": {"type": "array", "items": item}, "page": number, "size": number, "total": number}
    return {"type": "object", "required": list(properties), "properties": properties}
