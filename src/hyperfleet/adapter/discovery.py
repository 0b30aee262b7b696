"""Which objects a discovery means, the best of several, and objects inside others. Pure: nothing is read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from hyperfleet.adapter.config import Discovery, NestedDiscovery
from hyperfleet.adapter.manifests import generation_of, labels_of
from hyperfleet.adapter.templates import TextTemplate
from hyperfleet.kubernetes.port import KubernetesObject, ObjectKind, ObjectRef, Selection, match_labels

_EVERYWHERE: Final = "*"  # as a namespace: all of them


class ByName(Struct, frozen=True):
    """One object by its name."""

    ref: ObjectRef


class ByLabels(Struct, frozen=True):
    """All objects that have some labels."""

    selection: Selection
    labels: Mapping[str, str]


Lookup: TypeAlias = ByName | ByLabels


class RenderedLookup(NamedTuple):
    """What to look for, or why that is not known."""

    lookup: Lookup | None
    fault: str = ""


class _LookupSignal(Exception):  # noqa: N818 - internal: `render_lookup` returns the fault
    pass


def render_lookup(
    discovery: Discovery, kind: ObjectKind, variables: Mapping[str, Any], now: datetime
) -> RenderedLookup:
    """Render a discovery. An empty name or label is a fault: it would find objects of others."""
    try:
        namespace = _render(discovery.namespace, variables, now) if discovery.namespace else ""
        if discovery.name is not None:
            name = _render(discovery.name, variables, now)
            if not name:
                return RenderedLookup(None, "the name of the discovery is empty")
            return RenderedLookup(ByName(ObjectRef(kind, namespace.replace(_EVERYWHERE, ""), name)))
        labels = _render_labels(discovery, variables, now)
    except _LookupSignal as signal:
        return RenderedLookup(None, str(signal))
    place = None if namespace in ("", _EVERYWHERE) else namespace
    return RenderedLookup(ByLabels(Selection(kind, place, match_labels(labels)), labels))


def _render(template: TextTemplate, variables: Mapping[str, Any], now: datetime) -> str:
    text, fault = template.render(variables, now)
    if fault is not None:
        raise _LookupSignal(f"the discovery: {fault.message}")
    return text.strip()


def _render_labels(discovery: Discovery, variables: Mapping[str, Any], now: datetime) -> dict[str, str]:
    value, fault = discovery.labels.render(variables, now) if discovery.labels is not None else ({}, None)
    if fault is not None:
        raise _LookupSignal(f"the labels of the discovery: {fault.fault.message}")
    labels = {str(key).strip(): str(item).strip() for key, item in value.items()}
    if not labels or not all(key and item for key, item in labels.items()):
        raise _LookupSignal("a label of the discovery is empty")
    return labels


def best_first(found: Iterable[KubernetesObject]) -> tuple[KubernetesObject, ...]:
    """Order objects: the highest generation first, then by name. Expressions see the first."""
    return tuple(sorted(found, key=lambda each: (-generation_of(each), str((each.get("metadata") or {}).get("name")))))


def is_secret_object(found: Mapping[str, Any]) -> bool:
    """Tell whether an object is a Secret, whose content is shown nowhere."""
    return found.get("kind") == "Secret" and found.get("apiVersion") == "v1"


# ── objects inside others ────────────────────────────────────────────────────────────────────────────────────────────


def find_nested(
    nested: NestedDiscovery, parent: Mapping[str, Any], variables: Mapping[str, Any], now: datetime
) -> tuple[KubernetesObject | None, str]:
    """Return an object among the manifests of a found one, with the feedback on it; or why it cannot be looked for."""
    lookup, fault = render_lookup(nested.discovery, ObjectKind("", ""), variables, now)
    if lookup is None:
        return None, fault
    manifests = _dig(parent, "spec", "workload", "manifests")
    inside = [each for each in manifests if isinstance(each, dict)] if isinstance(manifests, list) else []
    matching = best_first(each for each in inside if _matches(each, lookup))
    return (_with_feedback(matching[0], parent) if matching else None), ""


def _matches(found: Mapping[str, Any], lookup: Lookup) -> bool:
    metadata = found.get("metadata") or {}
    if isinstance(lookup, ByName):
        is_placed = not lookup.ref.namespace or metadata.get("namespace") == lookup.ref.namespace
        return is_placed and metadata.get("name") == lookup.ref.name
    is_placed = not lookup.selection.namespace or metadata.get("namespace") == lookup.selection.namespace
    return is_placed and all(labels_of(found).get(key) == value for key, value in lookup.labels.items())


def _with_feedback(found: KubernetesObject, parent: Mapping[str, Any]) -> KubernetesObject:
    """Add `statusFeedback` and `conditions` of the parent's status that are about an object."""
    metadata = found.get("metadata") or {}
    entries = _dig(parent, "status", "resourceStatus", "manifests")
    for entry in entries if isinstance(entries, list) else ():
        about = _dig(entry, "resourceMeta")
        if not isinstance(about, Mapping) or "name" not in about or "namespace" not in about:
            continue
        if about["name"] == metadata.get("name") and about["namespace"] == (metadata.get("namespace") or ""):
            feedback = {key: entry[key] for key in ("statusFeedback", "conditions") if key in entry}
            return {**found, **feedback}
    return found


def _dig(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
