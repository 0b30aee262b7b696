"""Compile `resources` and `track`: manifests, discoveries and gates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from hyperfleet.adapter.compiling.compiler import NO_TEMPLATE, Compiler
from hyperfleet.adapter.config import (
    Discovery,
    ManagedObject,
    MapManifest,
    NestedDiscovery,
    PropagationPolicy,
    TextManifest,
    TrackedObject,
)
from hyperfleet.adapter.documents.objects import (
    DeleteGatePart,
    DiscoveryPart,
    LifecyclePart,
    ResourcePart,
    SelectorsPart,
    TrackedPart,
    TrackPart,
)
from hyperfleet.adapter.templates.template import OPENING
from hyperfleet.documents import good_items
from hyperfleet.documents.wording import list_choices, suggest

_POLICIES: Final[Mapping[str, PropagationPolicy]] = {
    "Background": "Background",
    "Foreground": "Foreground",
    "Orphan": "Orphan",
}
_TEXT_KEY: Final = r"^{}:[ \t]*[\"']?([^\"'\s#]+)"  # at the first column, so it is a key of the object itself


class ReferencedText(NamedTuple):
    """The text of a file beside the adapter file, or why there is none."""

    text: str
    file: str = ""
    fault: str = ""


ReadReference = Callable[[str], ReferencedText]


class _Kind(NamedTuple):
    api_version: str
    kind: str


def object_names(resources: tuple[ResourcePart, ...], track: TrackPart | None) -> Iterator[tuple[str, str]]:
    """Yield every name under `resources.` and its pointer; names with problems are left out."""
    return ((name, pointer) for name, pointer in _all_object_names(resources, track) if name)


def _all_object_names(resources: tuple[ResourcePart, ...], track: TrackPart | None) -> Iterator[tuple[str, str]]:
    for index, part in good_items(resources):
        yield part.name, f"/resources/{index}/name"
        for inner, nested in good_items(part.nested_discoveries or ()):
            yield nested.name, f"/resources/{index}/nested_discoveries/{inner}/name"
    for index, tracked in good_items(track.discovery if track else ()):
        yield tracked.name, f"/track/discovery/{index}/name"


def check_object_names(resources: tuple[ResourcePart, ...], track: TrackPart, compiler: Compiler) -> None:
    """Report names that are given twice."""
    seen: set[str] = set()
    for name, pointer in object_names(resources, track):
        if name in seen:
            compiler.report(pointer, f"there is already a resource {name}", "DuplicateName")
        seen.add(name)


def compile_objects(
    parts: tuple[ResourcePart, ...], compiler: Compiler, read: ReadReference
) -> tuple[ManagedObject, ...]:
    """Compile the objects that are applied."""
    run = _ObjectCompiler(compiler, read)
    return tuple(run.compile(part, f"/resources/{index}") for index, part in good_items(parts))


def compile_tracked(track: TrackPart, compiler: Compiler) -> tuple[TrackedObject, ...]:
    """Compile the objects that are only watched."""
    return tuple(_tracked(part, compiler, f"/track/discovery/{index}") for index, part in good_items(track.discovery))


def _tracked(part: TrackedPart, compiler: Compiler, pointer: str) -> TrackedObject:
    found = DiscoveryPart(namespace=part.namespace, by_name=part.by_name, by_selectors=part.by_selectors)
    discovery = _discovery(found, compiler, pointer)
    return TrackedObject(name=part.name, api_version=part.api_version, kind=part.kind, discovery=discovery)


def _discovery(part: DiscoveryPart | None, compiler: Compiler, pointer: str) -> Discovery:
    if part is None:
        return Discovery()
    given = [key for key in ("by_name", "by_selectors") if compiler.places.is_given(f"{pointer}/{key}")]
    if len(given) != 1:
        compiler.report(pointer, "exactly one of by_name and by_selectors is needed", "ExactlyOne")
    selectors: SelectorsPart | None = part.by_selectors
    labels = selectors.label_selector if selectors else None
    inner = f"{pointer}/by_selectors/label_selector"
    return Discovery(
        namespace=compiler.optional_text(part.namespace or None, f"{pointer}/namespace"),
        name=compiler.optional_text(part.by_name, f"{pointer}/by_name"),
        labels=None if labels is None else compiler.tree(dict(labels), inner),
    )


class _ObjectCompiler:
    def __init__(self, compiler: Compiler, read: ReadReference) -> None:
        self._compiler = compiler
        self._read = read

    def compile(self, part: ResourcePart, pointer: str) -> ManagedObject:
        """Compile one object."""
        compiler = self._compiler
        self._refuse_maestro(part, pointer)
        manifest, kind = self._manifest(part, pointer)
        lifecycle = part.lifecycle or LifecyclePart()
        create, delete = lifecycle.create, lifecycle.delete
        create_when = create.when.expression if create and create.when else None
        delete_when = delete.when.expression if delete and delete.when else None
        at = f"{pointer}/lifecycle"
        return ManagedObject(
            name=part.name,
            api_version=kind.api_version,
            kind=kind.kind,
            manifest=manifest,
            discovery=_discovery(part.discovery, compiler, f"{pointer}/discovery"),
            nested=tuple(
                NestedDiscovery(
                    each.name, _discovery(each.discovery, compiler, f"{pointer}/nested_discoveries/{index}/discovery")
                )
                for index, each in good_items(part.nested_discoveries)
            ),
            recreate_on_change=bool(part.recreate_on_change),
            create_when=compiler.optional_gate(create_when, f"{at}/create/when/expression"),
            delete_when=compiler.optional_gate(delete_when, f"{at}/delete/when/expression"),
            propagation=self._propagation(delete, f"{at}/delete"),
            context=compiler.optional_text(part.transport.context, f"{pointer}/transport/context"),
        )

    def _refuse_maestro(self, part: ResourcePart, pointer: str) -> None:
        if part.transport.client == "maestro" or part.transport.maestro is not None:
            message = "the transport maestro is not supported: objects are applied to Kubernetes"
            self._compiler.report(f"{pointer}/transport", message, "NotSupported", is_key=True)

    def _propagation(self, part: DeleteGatePart | None, pointer: str) -> PropagationPolicy:
        if part is None:
            return "Background"
        if part.when is None and not self._compiler.places.is_given(f"{pointer}/when"):
            self._compiler.report(pointer, 'the key "when" is missing: nothing would ever be deleted', "MissingKey")
        name = part.propagation_policy or "Background"
        if name not in _POLICIES:
            message = f"expected one of {list_choices(_POLICIES)}{suggest(name, tuple(_POLICIES))}"
            self._compiler.report(f"{pointer}/propagationPolicy", message, "NotAllowed")
        return _POLICIES.get(name, "Background")

    # ── manifests ────────────────────────────────────────────────────────────────────────────────────────────────

    def _manifest(self, part: ResourcePart, pointer: str) -> tuple[MapManifest | TextManifest, _Kind]:
        given = [key for key in ("manifest", "manifestRef") if self._compiler.places.is_given(f"{pointer}/{key}")]
        if len(given) != 1:
            missing = 'the key "manifest" is missing' if not given else "give one of manifest and manifestRef"
            self._compiler.report(pointer, missing, "ExactlyOne" if given else "MissingKey")
        if part.manifest_ref is not None:
            return self._referenced(part.manifest_ref, f"{pointer}/manifestRef")
        at = f"{pointer}/manifest"
        if isinstance(part.manifest, str):
            template = self._compiler.text(part.manifest, at)
            return TextManifest(template), self._kind_of_text(part.manifest, at)
        if isinstance(part.manifest, dict) and "ref" in part.manifest:
            return self._reference(part.manifest, at)
        return self._mapped(part.manifest or {}, at)

    def _reference(self, manifest: Mapping[str, Any], pointer: str) -> tuple[TextManifest, _Kind]:
        if len(manifest) > 1 or not isinstance(manifest["ref"], str):
            message = "a manifest is either an object or {ref: FILE}, with nothing beside it"
            self._compiler.report(pointer, message, "NotAllowed")
        return self._referenced(str(manifest["ref"]), f"{pointer}/ref")

    def _referenced(self, name: str, pointer: str) -> tuple[TextManifest, _Kind]:
        text, file, fault = self._read(name)
        if fault:
            self._compiler.report(pointer, fault, "FileReference")
            return TextManifest(NO_TEMPLATE), _Kind("", "")
        template = self._compiler.file_text(text, file)
        return TextManifest(template, file), self._kind_of_text(text, pointer)

    def _kind_of_text(self, text: str, pointer: str) -> _Kind:
        found = [re.search(_TEXT_KEY.format(key), text, re.MULTILINE) for key in ("apiVersion", "kind")]
        names = [each[1] if each else "" for each in found]
        self._check_kind(names[0], names[1], pointer)
        return _Kind(*names)

    def _mapped(self, manifest: Mapping[str, Any], pointer: str) -> tuple[MapManifest, _Kind]:
        names = [str(manifest.get(key) or "") for key in ("apiVersion", "kind")]
        if self._compiler.places.is_given(pointer):
            self._check_kind(names[0], names[1], pointer)
            metadata = manifest.get("metadata")
            if not isinstance(metadata, dict) or not metadata.get("name"):
                self._compiler.report(pointer, "the manifest has no metadata.name", "MissingKey")
        return MapManifest(self._compiler.tree(manifest, pointer)), _Kind(*names)

    def _check_kind(self, api_version: str, kind: str, pointer: str) -> None:
        for key, value in (("apiVersion", api_version), ("kind", kind)):
            if not value:
                self._compiler.report(pointer, f"the manifest has no {key}", "MissingKey")
            elif OPENING in value:
                message = f"{key} of a manifest must not be a template: it is needed before anything is rendered"
                self._compiler.report(pointer, message, "NotAllowed")
