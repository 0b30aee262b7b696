"""Manifests: files that declare clusters and node pools, in YAML or JSON.

    kind: Cluster
    metadata:
      name: payments
      labels: {env: prod}
    spec:
      region: eu-west-1
    ---
    kind: NodePool
    clusterName: payments
    metadata: {name: workers}
    spec: {replicas: 3}

Without `labels` a resource keeps its labels. The output of `hyperfleet get -o yaml`, also of a list, is a manifest,
too: fields that only the server sets are ignored.

`apply`, `create`, `edit` and `delete` read them. All errors in all files are found, with their positions, before
anything is sent; names and labels are checked by the server's own code.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from hyperfleet.cli.resources import CLUSTER, NODE_POOL, Noun
from hyperfleet.documents import DocumentPlace, DocumentProblem, Places, YamlDocument, bind, read, salvage
from hyperfleet.documents.nodes import ListNode, MappingNode, ScalarNode
from hyperfleet.errors import DocumentError

STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_KINDS: Final = {"Cluster": CLUSTER, "NodePool": NODE_POOL}
_MAX_NAMES: Final = (
    4 * 1024 * 1024
)  # characters of a file: a fleet of a thousand clusters, and half a minute of reading
_ONLY_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
# Server pointers and their counterparts in a manifest.
_PLACES: Final = (("/name", "/metadata/name"), ("/labels", "/metadata/labels"))


class Manifest(Struct, frozen=True):
    """The desired state of one resource, and where it is declared."""

    noun: Noun
    name: str
    spec: dict[str, Any]
    labels: dict[str, str] | None
    cluster: str | None
    places: Places

    def __str__(self) -> str:
        """Format the name as other commands accept it."""
        return "/".join(part for part in (self.noun.name, self.cluster, self.name) if part)

    def place(self, pointer: str) -> DocumentPlace:
        """Return the position in the file for a pointer of the server."""
        return _place(self.places, pointer)


class _Metadata(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    labels: dict[str, str] | None = None


class _Written(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A manifest as people write it."""

    kind: Literal["Cluster", "NodePool"]
    metadata: _Metadata
    spec: dict[str, Any]
    cluster_name: str | None = None
    api_version: Literal["hyperfleet/v1"] | None = None  # accepted because kubectl users write it


class _ServerMetadata(Struct, frozen=True, rename="camel"):
    labels: dict[str, str] | None = None
    cluster_id: str | None = None


class _ServerResource(Struct, frozen=True, rename="camel"):
    """A resource as the server returns it; other fields are ignored."""

    type: Literal["Cluster", "NodePool"]
    name: str
    metadata: _ServerMetadata
    spec: dict[str, Any]


def read_manifests(files: Iterable[str]) -> list[Manifest]:
    """Read files, directories and standard input; raise `DocumentError` with everything that is wrong in all of them.

    Clusters come before node pools, so that a file may have a pool before its cluster.
    """
    manifests: list[Manifest] = []
    problems: list[DocumentProblem] = []
    for file in files:
        try:
            texts = {each: read_text(each) for each in _spread(file)}
        except DocumentError as error:
            problems += error.problems
            continue
        for each, text in texts.items():
            found, wrong = parse_manifests(text, name_file(each))
            manifests += found
            problems += wrong
    problems += _find_duplicates(manifests)
    if problems:
        raise DocumentError(problems)
    return sorted(manifests, key=lambda each: each.noun is NODE_POOL)


def parse_manifests(text: str, file: str) -> tuple[list[Manifest], list[DocumentProblem]]:
    """Parse the manifests of a text; `file` is the name used in problems."""
    reading = read(_as_yaml(text), file, _MAX_NAMES)
    manifests: list[Manifest] = []
    problems = list(reading.problems)
    for document in _split_resources(reading.documents):
        manifest, wrong = _parse(document)
        manifests += [manifest] if manifest else []
        problems += wrong
    if not manifests and not problems:
        problems.append(DocumentProblem(DocumentPlace(file, 1, 1), "it contains no manifest", "Empty"))
    return manifests, problems


def write_manifest(noun: Noun, name: str, spec: object, labels: object, cluster: str | None = None) -> dict[str, Any]:
    """Return the document of a manifest."""
    kind = next(kind for kind, each in _KINDS.items() if each is noun)
    return {
        "kind": kind,
        **({"clusterName": cluster} if cluster else {}),
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "spec": spec,
    }


def _as_yaml(text: str) -> str:
    """Escape characters that JSON texts may contain and YAML may not."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    return _ONLY_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _spread(file: str) -> list[str]:
    """Return the manifests of a directory, sorted by name; or the file itself."""
    path = Path(file)
    if file == STDIN or not path.is_dir():
        return [file]
    inside = sorted(str(each) for each in path.iterdir() if each.suffix in _SUFFIXES and each.is_file())
    if not inside:
        raise _unreadable(file, f"there is no {', '.join(_SUFFIXES)} file in this directory")
    return inside


def read_text(file: str) -> str:
    """Read a file or standard input; raise `DocumentError` if it cannot be read."""
    try:
        raw = _read_input() if file == STDIN else Path(file).read_bytes()
        return raw.decode("utf-8")
    except (OSError, ValueError) as error:  # a path may have a NUL in it
        reason = getattr(error, "strerror", None)
        if reason is None:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise _unreadable(file, reason) from error


def name_file(file: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if file == STDIN else file


def _read_input() -> bytes:
    if sys.stdin is None:  # closed by the parent process
        raise OSError(errno.EBADF, "there is no standard input")
    return sys.stdin.buffer.read()


def _unreadable(file: str, reason: str) -> DocumentError:
    return DocumentError(
        [DocumentProblem(DocumentPlace(name_file(file), 1, 1), f"cannot be read: {reason}", "Unreadable")]
    )


def _split_resources(documents: Iterable[YamlDocument]) -> Iterator[YamlDocument]:
    """Yield the documents, and the items of lists; skip empty ones, which a trailing `---` leaves."""
    for document in documents:
        root = document.root
        items = root.find("items") if isinstance(root, MappingNode) else None
        if items is not None and isinstance(items.value, ListNode) and not _has(root, "spec"):
            yield from (YamlDocument(document.file, document.source, item) for item in items.value.items)
        elif not (isinstance(root, ScalarNode) and root.value is None):
            yield document


def _has(node: object, key: str) -> bool:
    return isinstance(node, MappingNode) and node.find(key) is not None


def _parse(document: YamlDocument) -> tuple[Manifest | None, Sequence[DocumentProblem]]:
    places = Places(document)
    if _has(document.root, "type") and not _has(document.root, "kind"):
        resource, problems = bind(document, _ServerResource)
        if resource is None:
            return None, problems
        labels, cluster = resource.metadata.labels or {}, resource.metadata.cluster_id
        return _check(Manifest(_KINDS[resource.type], resource.name, resource.spec, labels, cluster, places))
    written, problems = bind(document, _Written)
    if written is None:
        return None, sorted([*problems, *_check_valid_parts(document, places)])
    metadata = written.metadata
    return _check(
        Manifest(_KINDS[written.kind], metadata.name, written.spec, metadata.labels, written.cluster_name, places)
    )


def _check(manifest: Manifest) -> tuple[Manifest | None, Sequence[DocumentProblem]]:
    """Check what types do not express."""
    problems = list(_check_names(manifest.name, manifest.labels, manifest.place))
    if manifest.noun is NODE_POOL and not manifest.cluster:
        message = "clusterName is missing: the name or id of the cluster that this node pool is in"
        problems.append(DocumentProblem(manifest.places.value(""), message, "MissingField"))
    if manifest.noun is CLUSTER and manifest.cluster:
        message = "clusterName is only for node pools"
        problems.append(DocumentProblem(manifest.places.key("/clusterName"), message, "UnknownField"))
    return (None if problems else manifest), sorted(problems)


def _check_valid_parts(document: YamlDocument, places: Places) -> Iterable[DocumentProblem]:
    """Check the valid parts of a manifest with problems, so that everything is reported at once."""
    saved = salvage(document, _Written)
    if saved is None or saved.metadata is None:
        return ()
    return _check_names(saved.metadata.name, saved.metadata.labels, lambda pointer: _place(places, pointer))


def _check_names(
    name: str | None, labels: Mapping[str, str] | None, place: Callable[[str], DocumentPlace]
) -> Iterator[DocumentProblem]:
    """Check name and labels, if given, with the server's rules."""
    from hyperfleet.api.resource_bodies import read_merge_patch
    from hyperfleet.model.kind import CLUSTER as CLUSTER_KIND

    given = {"name": name, "labels": labels}
    body = {key: value for key, value in given.items() if value is not None}
    for fault in read_merge_patch(body, CLUSTER_KIND, "").errors:
        yield DocumentProblem(place(fault.pointer), fault.message, fault.code)


def _place(places: Places, pointer: str) -> DocumentPlace:
    """Return the position in a manifest for a pointer of the server."""
    for theirs, ours in _PLACES:
        if (pointer == theirs or pointer.startswith(f"{theirs}/")) and not places.is_given(theirs):
            return places.value(ours + pointer.removeprefix(theirs))
    return places.value(pointer)


def _find_duplicates(manifests: Iterable[Manifest]) -> Iterator[DocumentProblem]:
    """Find resources that are declared twice."""
    first: dict[str, DocumentPlace] = {}
    for manifest in manifests:
        place = manifest.place("/name")
        before = first.setdefault(str(manifest), place)
        if before is not place:
            yield DocumentProblem(place, f"{manifest} is already declared at {before}", "Duplicate")
