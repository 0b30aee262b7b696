"""Where an API server has objects: from a kind and a reference to a path. Pure."""

from __future__ import annotations

from urllib.parse import quote

from hyperfleet.errors import ObjectInvalid
from hyperfleet.kubernetes.port import ObjectKind, ObjectRef, ServedKind


def group_path(api_version: str) -> str:
    """Return where the kinds of a group and version are."""
    parts = api_version.split("/")
    if not all(parts) or len(parts) > 2:
        raise ObjectInvalid(f'"{api_version}" is not an apiVersion')
    return "/".join(["/apis" if len(parts) == 2 else "/api", *map(_check, parts)])


def collection_path(served: ServedKind, namespace: str | None) -> str:
    """Return where the objects of a kind are, in one namespace or in all."""
    place = f"/namespaces/{_check(namespace)}" if served.is_namespaced and namespace else ""
    return f"{group_path(served.kind.api_version)}{place}/{_check(served.plural)}"


def object_path(served: ServedKind, ref: ObjectRef) -> str:
    """Return where one object is."""
    if not ref.name:
        raise ObjectInvalid(f"{ref.kind} has no metadata.name")
    if served.is_namespaced and not ref.namespace:
        raise ObjectInvalid(f"{ref} is namespaced, and has no metadata.namespace")
    return f"{collection_path(served, ref.namespace)}/{_check(ref.name)}"


def _check(segment: str) -> str:
    """Quote a segment of a path; refuse what could lead elsewhere."""
    if segment in (".", "..") or "/" in segment or "%" in segment:
        raise ObjectInvalid(f'"{segment}" cannot be part of a name')
    return quote(segment, safe="")


def read_served(kind: ObjectKind, answer: dict[str, object]) -> dict[str, ServedKind]:
    """Return the kinds of a group and version, by name."""
    entries = answer.get("resources")
    resources = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    names = {each.get("name") for each in resources}
    return {
        str(each["kind"]): ServedKind(
            ObjectKind(kind.api_version, str(each["kind"])),
            str(each["name"]),
            is_namespaced=bool(each.get("namespaced")),
            has_status=f"{each['name']}/status" in names,
        )
        for each in resources
        if "kind" in each and "/" not in str(each.get("name", "/"))
    }
