"""`resources` and `track`: the Kubernetes objects that an adapter applies, and those that it only watches."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from hyperfleet.adapter.documents.parts import Identifier, Part, TemplateText, WhenPart


class SelectorsPart(Part, frozen=True, kw_only=True):
    """Labels that an object must have, all of them; keys and values are templates."""

    label_selector: Annotated[dict[str, str], Meta(min_length=1)]


class DiscoveryPart(Part, frozen=True, kw_only=True):
    """How to find an object: by its name, or by labels."""

    namespace: Annotated[TemplateText | None, Meta(description="Not for kinds that have no namespace")] = None
    by_name: TemplateText | None = None
    by_selectors: SelectorsPart | None = None


class NestedDiscoveryPart(Part, frozen=True, kw_only=True):
    """An object inside the `spec.workload.manifests` of a found one."""

    name: Identifier
    discovery: DiscoveryPart


class CreateGatePart(Part, frozen=True, kw_only=True):
    """When an object may be created for the first time."""

    when: WhenPart


class DeleteGatePart(Part, frozen=True, kw_only=True, rename={"propagation_policy": "propagationPolicy"}):
    """When an object is deleted instead of applied."""

    when: WhenPart | None = None
    propagation_policy: Annotated[str | None, Meta(description="Background, Foreground or Orphan")] = None


class LifecyclePart(Part, frozen=True, kw_only=True):
    """Gates of an object."""

    create: CreateGatePart | None = None
    delete: DeleteGatePart | None = None


class TransportPart(Part, frozen=True, kw_only=True):
    """Where an object is applied."""

    client: Literal["kubernetes", "maestro"] = "kubernetes"
    context: Annotated[TemplateText | None, Meta(description="A context of the kubeconfig; ours in addition")] = None
    maestro: Any = None


class ResourcePart(Part, frozen=True, kw_only=True, rename={"manifest_ref": "manifestRef"}):
    """An object to apply."""

    name: Identifier
    transport: TransportPart = TransportPart()
    manifest: Annotated[
        str | dict[str, Any] | None, Meta(description="A mapping, a text, or {ref: FILE}; with templates")
    ] = None
    manifest_ref: Annotated[str | None, Meta(description="The same as manifest: {ref: FILE}")] = None
    discovery: DiscoveryPart
    nested_discoveries: tuple[NestedDiscoveryPart, ...] = ()
    recreate_on_change: Annotated[bool, Meta(description="Delete and create; for kinds such as Job")] = False
    lifecycle: LifecyclePart | None = None
    description: str = ""


class TrackedPart(Part, frozen=True, kw_only=True, rename={"api_version": "apiVersion"}):
    """An object that others write. It is watched, never written or deleted."""

    name: Identifier
    api_version: Annotated[str, Meta(min_length=1)]
    kind: Annotated[str, Meta(min_length=1)]
    namespace: TemplateText | None = None
    by_name: TemplateText | None = None
    by_selectors: SelectorsPart | None = None


class TrackPart(Part, frozen=True, kw_only=True):
    """Objects that are only watched."""

    discovery: tuple[TrackedPart, ...] = ()
