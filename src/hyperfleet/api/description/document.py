"""Builds the OpenAPI 3.1 document from the tables of operations and the types that handlers encode."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from msgspec import Struct

from hyperfleet.api.description.components import component_name, describe_types, refer
from hyperfleet.api.description.headers import describe_headers
from hyperfleet.api.description.operations import Operation, Parameter, RequestBody, Schema, Shape, Success
from hyperfleet.api.problems import CATALOGUE, MEDIA_TYPE, ProblemDocumentBody
from hyperfleet.api.wire import ALIASES, BASE

_DATA: Final = ("example", "examples", "enum", "const")  # below these keys there are no schemas
_ALWAYS: Final = (
    "UriTooLong",
    "InternalError",
    "Overloaded",
    "StoreUnavailable",
    "Timeout",
)  # possible for every operation
_CALLERS: Final = ("InvalidRequest", "Unauthenticated", "InvalidToken", "Forbidden", "IssuerUnavailable")
_SCHEME: Final = "bearer"
_BEARER: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of the server's token file, or a JWT of a configured issuer. Each operation names the role "
    "that its caller needs in `x-required-role`; an admin has every role, and every role includes reader.",
}
# Headers of problems: 429 and 503 say when to retry, 401 how to authenticate.
_PROBLEM_HEADERS: Final[Mapping[int, tuple[str, ...]]] = {
    401: ("WWW-Authenticate",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_ABOUT: Final = """\
The status of a fleet of Kubernetes clusters. Adapters report; the API computes one status from all reports in the \
same write and stores it; reads return what is stored.

Keys of requests may be camelCase, as described here, or snake_case, but not both in one body; answers are camelCase. \
Every error is a problem document (RFC 9457) with a stable `code` and a complete list in `errors`.
"""


def describe(operations: Sequence[Operation], *, has_authentication: bool = False) -> Schema:
    """Return the OpenAPI document of `operations`, whose paths are complete."""
    schemas = describe_types(_find_types(operations))
    paths: dict[str, Schema] = defaultdict(dict)
    for operation in operations:
        paths[operation.path][operation.method] = _hoist(_describe_operation(operation, has_authentication), schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "HyperFleet", "version": version("hyperfleet"), "description": _ABOUT},
        "servers": [
            {"url": "/", "description": f"Paths below {BASE} are also available below {' and '.join(ALIASES)}."}
        ],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": dict(paths),
        "components": {
            "parameters": _share_parameters(operations),
            "schemas": dict(sorted(schemas.items())),
            **({"securitySchemes": {_SCHEME: _BEARER}} if has_authentication else {}),
        },
    }


def _find_types(operations: Iterable[Operation]) -> list[type[Struct]]:
    """Return the types that operations answer, each once."""
    shapes = [success.shape for operation in operations for success in operation.successes]
    groups = [shape if isinstance(shape, tuple) else (shape,) for shape in (*shapes, ProblemDocumentBody)]
    return list(dict.fromkeys(shape for group in groups for shape in group if isinstance(shape, type)))


def _describe_operation(operation: Operation, has_authentication: bool) -> Schema:
    is_guarded = has_authentication and operation.role is not None
    refusals = (*_refusals_of_callers(operation), *operation.refusals) if is_guarded else operation.refusals
    described: Schema = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": {
            **{str(success.status): _describe_success(success) for success in operation.successes},
            **_describe_refusals((*refusals, *_refusals_of_all(operation))),
        },
    }
    if operation.role is not None:
        described["x-required-role"] = operation.role
    if is_guarded:
        described["security"] = [{_SCHEME: []}]
    if operation.description:
        described["description"] = operation.description
    if operation.parameters:
        described["parameters"] = [_refer_parameter(parameter) for parameter in operation.parameters]
    if operation.body:
        described["requestBody"] = _describe_body(operation.body)
    return described


def _refusals_of_callers(operation: Operation) -> tuple[str, ...]:
    """Return the problems of callers who are not authenticated or lack the role."""
    return (*_CALLERS, "NotYourAdapter") if operation.role == "reporter" else _CALLERS


def _refusals_of_all(operation: Operation) -> tuple[str, ...]:
    """Return the problems of all operations; below the base path, no query parameter is ignored."""
    always = _ALWAYS if operation.role is None else ("RateLimited", *_ALWAYS)
    return ("InvalidQuery", *always) if operation.path.startswith(BASE) else always


def _share_parameters(operations: Iterable[Operation]) -> Schema:
    """Describe the parameters that are the same wherever they occur."""
    parameters = [each for operation in operations for each in operation.parameters if _is_shared(each)]
    return {parameter.name: _describe_parameter(parameter) for parameter in parameters}


def _is_shared(parameter: Parameter) -> bool:
    """Return whether a parameter is the same wherever it occurs: all except path parameters and required ones."""
    return parameter.location != "path" and not parameter.is_required


def _refer_parameter(parameter: Parameter) -> Schema:
    if not _is_shared(parameter):
        return _describe_parameter(parameter)
    return {"$ref": f"#/components/parameters/{parameter.name}"}


def _describe_parameter(parameter: Parameter) -> Schema:
    described: Schema = {
        "name": parameter.name,
        "in": parameter.location,
        "required": parameter.location == "path" or parameter.is_required,
        "description": parameter.description,
        "schema": parameter.schema,
    }
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _describe_body(body: RequestBody) -> Schema:
    content = {"schema": _refer(body.shape), "example": body.example}
    return {"required": body.is_required, "content": dict.fromkeys(body.content_types, content)}


def _describe_success(success: Success) -> Schema:
    described: Schema = {"description": success.description, "headers": describe_headers(success.headers)}
    if success.shape is not None:
        described["content"] = {
            success.content_type: {"schema": _refer(success.shape)},
            **{each: {"schema": {"type": "string"}} for each in success.other_types},
        }
    if success.links:
        described["links"] = dict(success.links)
    return described


def _describe_refusals(codes: Iterable[str]) -> Schema:
    """Describe the problems of an operation, grouped by HTTP status."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in dict.fromkeys(codes):
        by_status[CATALOGUE[code].status].append(code)
    return {str(status): _describe_problems(status, codes) for status, codes in sorted(by_status.items())}


def _describe_problems(status: int, codes: Sequence[str]) -> Schema:
    lines = [f"`{code}`: {CATALOGUE[code].title}" for code in codes]
    return {
        "description": "\n\n".join(lines),
        "headers": describe_headers(_PROBLEM_HEADERS.get(status, ())),
        "content": {MEDIA_TYPE: {"schema": _refer(ProblemDocumentBody)}},
    }


def _refer(shape: Shape) -> dict[str, Any]:
    """Return a schema as it stands, or a reference to the component of a type."""
    if isinstance(shape, tuple):
        return {"anyOf": [_refer(each) for each in shape]}
    return refer(component_name(shape)) if isinstance(shape, type) else shape


def _hoist(value: Any, schemas: dict[str, Schema]) -> Any:
    """Move every schema with a title to the components, and replace it by a reference."""
    if isinstance(value, list):
        return [_hoist(item, schemas) for item in value]
    if not isinstance(value, dict):
        return value
    hoisted = {key: item if key in _DATA else _hoist(item, schemas) for key, item in value.items()}
    if not isinstance(value.get("title"), str):
        return hoisted
    schemas[value["title"]] = hoisted
    return refer(value["title"])
