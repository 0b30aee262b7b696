"""Manifests: files that say what clusters and node pools there shall be, in YAML or JSON.

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

Without `labels` a resource keeps those that it has. What `hyperfleet get -o yaml` writes, a list of it included, is a
manifest, too: what only the server can set is left aside.

`apply`, `create`, `edit` and `delete` read them. Everything that is wrong in all of the files is found, with its place,
before anything is sent; names and labels are checked by the code that the server checks them with.
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
_MOST: Final = 4 * 1024 * 1024  # characters of a file: a fleet of a thousand clusters, and half a minute of reading
_ONLY_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
# Where the server's words for a part of a resource are in a manifest.
_PLACES: Final = (("/name", "/metadata/name"), ("/labels", "/metadata/labels"))


class Manifest(Struct, frozen=True):
    """What one resource shall be, and where that is written."""

    noun: Noun
    name: str
    spec: dict[str, Any]
    labels: dict[str, str] | None
    cluster: str | None
    places: Places

    def __str__(self) -> str:
        """Write it as other commands take it."""
        return "/".join(part for part in (self.noun.name, self.cluster, self.name) if part)

    def place(self, pointer: str) -> DocumentPlace:
        """Return where something is written that the server points to."""
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
    api_version: Literal["hyperfleet/v1"] | None = None  # who knows kubectl writes one


class _ToldMetadata(Struct, frozen=True, rename="camel"):
    labels: dict[str, str] | None = None
    cluster_id: str | None = None


class _Told(Struct, frozen=True, rename="camel"):
    """A resource as the server tells it; what is not here only the server can set."""

    type: Literal["Cluster", "NodePool"]
    name: str
    metadata: _ToldMetadata
    spec: dict[str, Any]


def read_manifests(files: Iterable[str]) -> list[Manifest]:
    """Read files, directories and standard input; raise `DocumentError` with everything that is wrong in all of them.

    Clusters come before node pools, so that a pool may stand before its cluster.
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
    problems += _find_twins(manifests)
    if problems:
        raise DocumentError(problems)
    return sorted(manifests, key=lambda each: each.noun is NODE_POOL)


def parse_manifests(text: str, file: str) -> tuple[list[Manifest], list[DocumentProblem]]:
    """Read the manifests of a text; `file` is the name that problems carry."""
    reading = read(_as_yaml(text), file, _MOST)
    manifests: list[Manifest] = []
    problems = list(reading.problems)
    for document in _take_apart(reading.documents):
        manifest, wrong = _parse(document)
        manifests += [manifest] if manifest else []
        problems += wrong
    if not manifests and not problems:
        problems.append(DocumentProblem(DocumentPlace(file, 1, 1), "there is no manifest in it", "Empty"))
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
    """Write JSON so that it is YAML, too: some characters may stand in the texts of one and not of the other."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    return _ONLY_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _spread(file: str) -> list[str]:
    """Put the manifests of a directory in its place, in the order of their names."""
    path = Path(file)
    if file == STDIN or not path.is_dir():
        return [file]
    inside = sorted(str(each) for each in path.iterdir() if each.suffix in _SUFFIXES and each.is_file())
    if not inside:
        raise _unreadable(file, f"there is no {', '.join(_SUFFIXES)} file in this directory")
    return inside


def read_text(file: str) -> str:
    """Read a file or standard input; raise `DocumentError` if that cannot be."""
    try:
        raw = _read_input() if file == STDIN else Path(file).read_bytes()
        return raw.decode("utf-8")
    except (OSError, ValueError) as error:  # a path may have a NUL in it
        reason = getattr(error, "strerror", None)
        if reason is None:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise _unreadable(file, reason) from error


def name_file(file: str) -> str:
    """Say what a file is called in a sentence."""
    return "standard input" if file == STDIN else file


def _read_input() -> bytes:
    if sys.stdin is None:  # whoever started us closed it
        raise OSError(errno.EBADF, "there is no standard input")
    return sys.stdin.buffer.read()


def _unreadable(file: str, reason: str) -> DocumentError:
    return DocumentError(
        [DocumentProblem(DocumentPlace(name_file(file), 1, 1), f"cannot be read: {reason}", "Unreadable")]
    )


def _take_apart(documents: Iterable[YamlDocument]) -> Iterator[YamlDocument]:
    """Yield each document that is one resource; of a list, its items. An empty one is what a trailing `---` leaves."""
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
        told, problems = bind(document, _Told)
        if told is None:
            return None, problems
        labels, cluster = told.metadata.labels or {}, told.metadata.cluster_id
        return _check(Manifest(_KINDS[told.type], told.name, told.spec, labels, cluster, places))
    written, problems = bind(document, _Written)
    if written is None:
        return None, sorted([*problems, *_check_the_good(document, places)])
    metadata = written.metadata
    return _check(
        Manifest(_KINDS[written.kind], metadata.name, written.spec, metadata.labels, written.cluster_name, places)
    )


def _check(manifest: Manifest) -> tuple[Manifest | None, Sequence[DocumentProblem]]:
    """Check what a type cannot say."""
    problems = list(_check_names(manifest.name, manifest.labels, manifest.place))
    if manifest.noun is NODE_POOL and not manifest.cluster:
        message = "clusterName is missing: the name or id of the cluster that this node pool is in"
        problems.append(DocumentProblem(manifest.places.value(""), message, "MissingField"))
    if manifest.noun is CLUSTER and manifest.cluster:
        message = "clusterName is only for node pools"
        problems.append(DocumentProblem(manifest.places.key("/clusterName"), message, "UnknownField"))
    return (None if problems else manifest), sorted(problems)


def _check_the_good(document: YamlDocument, places: Places) -> Iterable[DocumentProblem]:
    """Check what is good of a manifest with problems, so that everything is told at once."""
    saved = salvage(document, _Written)
    if saved is None or saved.metadata is None:
        return ()
    return _check_names(saved.metadata.name, saved.metadata.labels, lambda pointer: _place(places, pointer))


def _check_names(
    name: str | None, labels: Mapping[str, str] | None, place: Callable[[str], DocumentPlace]
) -> Iterator[DocumentProblem]:
    """Check name and labels, if they are there, as the server will."""
    from hyperfleet.api.intake import read_merge_patch
    from hyperfleet.model.kind import CLUSTER as CLUSTER_KIND

    given = {"name": name, "labels": labels}
    body = {key: value for key, value in given.items() if value is not None}
    for fault in read_merge_patch(body, CLUSTER_KIND, "").errors:
        yield DocumentProblem(place(fault.pointer), fault.message, fault.code)


def _place(places: Places, pointer: str) -> DocumentPlace:
    """Return where something is written in a manifest that the server points to in its own words."""
    for theirs, ours in _PLACES:
        if (pointer == theirs or pointer.startswith(f"{theirs}/")) and not places.is_given(theirs):
            return places.value(ours + pointer.removeprefix(theirs))
    return places.value(pointer)


def _find_twins(manifests: Iterable[Manifest]) -> Iterator[DocumentProblem]:
    """Find what is there twice: which of them should count?"""
    first: dict[str, DocumentPlace] = {}
    for manifest in manifests:
        place = manifest.place("/name")
        before = first.setdefault(str(manifest), place)
        if before is not place:
            yield DocumentProblem(place, f"{manifest} is there already, at {before}", "Duplicate")
