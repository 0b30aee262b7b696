"""Requests made from the description of the API: where an operation is, with whose ids, and a body that works.

For tests that try everything there is, so that an operation which is added is tried, too.
"""

from __future__ import annotations

import re
from typing import Any

from hyperfleet.api.compat.description import describe
from hyperfleet.api.compat.resource_collections import PREFIX
from hyperfleet.api.description.operations import Operation, Parameter, RequestBody
from tests.api.compat_client import report_body
from tests.api.fleet import Fleet
from tests.world import body


def list_dialect(fleet: Fleet) -> list[Operation]:
    """Return the operations of the dialect of the Go clients."""
    return [
        Operation(
            method,
            PREFIX + path,
            f"{PREFIX} {method}",
            "",
            "",
            (),
            parameters=tuple([Parameter(each["name"], each["in"], "") for each in told.get("parameters", ())]),
            body=RequestBody({}, dialect_body(path)) if "requestBody" in told else None,
        )
        for path, methods in describe(fleet.context)["paths"].items()
        for method, told in methods.items()
    ]


def dialect_body(path: str) -> dict[str, Any]:
    """Return a body that works at a path of the dialect."""
    if path.endswith("/statuses"):
        return report_body("dns")
    if path.endswith("/force-delete"):
        return {"reason": "because"}
    return {"spec": {}} if path.endswith("}") else {"kind": "NodePool", "name": "new", "spec": {}}


def fill(part: Any, values: dict[str, str]) -> Any:
    """Fill in all places of texts, however deep they are."""
    match part:
        case str():
            return re.sub(r"\{(\w+)\}", lambda place: values.get(place[1], place[0]), part)
        case dict():
            return {key: fill(value, values) for key, value in part.items()}
        case list() | tuple():
            return [fill(each, values) for each in part]
        case _:
            return part


def places_of(path: str, *, with_own: bool) -> list[str]:
    """Fill the ids of a path in: what is the other's, also below what is ours, and ours below what is the other's."""
    if "{nodePoolId}" in path or ("{parent_id}" in path and "{id}" in path):
        pairs = [("{cluster}", "{pool}"), ("{own_cluster}", "{pool}"), ("{cluster}", "{own_pool}")]
        pairs += [("{own_cluster}", "{own_pool}")] if with_own else []
    else:
        own = ["{own_cluster}"] if with_own else []
        pairs = [(each, each) for each in ("{cluster}", "{doomed}", "{gone}", "{pool}", *own)]
    found = []
    for cluster, last in pairs:
        filled = path.replace("{clusterId}", cluster).replace("{parent_id}", cluster)
        filled = filled.replace("{nodePoolId}", last).replace("{id}", last).replace("{statusId}", f"status-{last}")
        found.append(filled.replace("{code}", "NotFound").replace("{version}", "1"))
    return list(dict.fromkeys(found))


def needed_by(path: str) -> dict[str, str]:
    """Return the parameters without which an operation makes no sense, or takes long."""
    if path.endswith(":wait"):
        return {"timeout": "1ms"}
    return {"from": "0s"} if path.endswith(":diff") else {}


def body_of(operation: Operation, path: str) -> Any:
    """Return a body that works, but for whose the resource is."""
    if operation.body is None:
        return None
    if operation.id == "reportBatch":
        places = ({"clusterId": "{cluster}"}, {"clusterId": "{cluster}", "nodePoolId": "{pool}"})
        return {"reports": [{**place, **body("{adapter}", "True")} for place in places]}
    example = operation.body.example
    if path.endswith("/adapters/{adapter}"):
        return {**example, "adapter": "{adapter}"}
    return example
