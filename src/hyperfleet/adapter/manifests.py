"""Manifests: rendered, placed, and marked with the generation and the owner. Pure.

The framework adds what a file leaves out: the generation annotation, by which an older event never overwrites what a
newer one applied, and owner labels. What the file says itself is kept.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from hyperfleet.adapter.config import ManagedObject, MapManifest
from hyperfleet.adapter.subject import Subject
from hyperfleet.adapter.templates import render_yaml
from hyperfleet.kubernetes.port import KubernetesObject

GENERATION: Final = "hyperfleet.io/generation"
MANAGED_BY: Final = "hyperfleet.io/managed-by"
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")  # at most 63 characters


class RenderedManifest(NamedTuple):
    """A manifest without templates, or why there is none."""

    manifest: KubernetesObject
    fault: str = ""


def render_manifest(item: ManagedObject, variables: Mapping[str, Any], now: datetime) -> RenderedManifest:
    """Render the manifest of an object, and check that it is one."""
    if isinstance(item.manifest, MapManifest):
        value, fault = item.manifest.tree.render(variables, now)
    else:
        value, fault = render_yaml(item.manifest.template, variables, now)
    if fault is not None:
        where = f" at {fault.pointer}" if fault.pointer else ""
        return RenderedManifest({}, f"the manifest{where}: {fault.fault.message}")
    if not isinstance(value, dict) or not isinstance(value.get("metadata", {}) or {}, dict):
        return RenderedManifest({}, "the manifest is no object with metadata")
    manifest = copy.deepcopy(value)  # parts without templates are shared with the config
    manifest.setdefault("apiVersion", item.api_version)
    manifest.setdefault("kind", item.kind)
    manifest["metadata"] = dict(manifest.get("metadata") or {})
    return RenderedManifest(manifest, _find_fault(manifest))


def _find_fault(manifest: KubernetesObject) -> str:
    for key in ("labels", "annotations"):
        entries = manifest["metadata"].get(key)
        if entries is not None and not isinstance(entries, dict):
            return f"the manifest: metadata.{key} is no map"
    given = (manifest["metadata"].get("annotations") or {}).get(GENERATION)
    if given is not None and read_number(given) is None:
        return f"the manifest: the annotation {GENERATION} is no whole number"
    return ""


def place_manifest(manifest: KubernetesObject, namespace: str, name: str) -> KubernetesObject:
    """Fill in the name and the namespace of the discovery where the manifest has none."""
    metadata = dict(manifest["metadata"])
    metadata["name"] = str(metadata.get("name") or name)
    place = metadata.pop("namespace", None) or namespace
    return {**manifest, "metadata": {**metadata, **({"namespace": str(place)} if place else {})}}


def mark_manifest(
    manifest: KubernetesObject, adapter: str, subject: Subject, live: KubernetesObject | None
) -> KubernetesObject:
    """Add the generation annotation and the owner labels that the file does not give.

    A label that another adapter set stays: two adapters that apply the same namespace would otherwise take it from
    each other with every event.
    """
    metadata = dict(manifest["metadata"])
    annotations = {str(key): str(value) for key, value in (metadata.get("annotations") or {}).items()}
    if subject.generation:
        annotations.setdefault(GENERATION, str(subject.generation))
    given = {str(key): str(value) for key, value in (metadata.get("labels") or {}).items()}
    theirs = labels_of(live) if live else {}
    ours = {key: value for key, value in owner_labels(adapter, subject).items() if theirs.get(key, value) == value}
    metadata["labels"] = {**ours, **given}
    if annotations:
        metadata["annotations"] = annotations
    return {**manifest, "metadata": metadata}


def owner_labels(adapter: str, subject: Subject) -> dict[str, str]:
    """Return the labels that tell for which resource and by which adapter an object was made."""
    labels = {MANAGED_BY: adapter}
    for kind, id_ in ((subject.kind, subject.id), (subject.owner_kind, subject.owner_id)):
        if kind and id_:
            labels[f"hyperfleet.io/{kind.lower()}-id"] = id_
    return {key: value for key, value in labels.items() if _LABEL_VALUE.fullmatch(value)}


def labels_of(found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of an object."""
    return (found.get("metadata") or {}).get("labels") or {}


def generation_of(found: Mapping[str, Any]) -> int:
    """Return the generation in the annotation of an object; 0 if it has none that is a number."""
    metadata = found.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    return read_number(annotations.get(GENERATION)) or 0


def read_number(value: Any) -> int | None:
    """Read a whole number that is not negative, of at most 18 digits; None: it is none."""
    text = str(value).strip() if value is not None and not isinstance(value, bool) else ""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
