"""Reads bodies about resources: from decoded JSON to values for services, or to all errors with their JSON pointers.

Our own keys may be camelCase or snake_case, but not both in one body. Nothing below `spec`, `data`, `metadata` and
`labels` is checked, except the labels themselves. An answer of ours may be sent back as it is: fields that only the
server sets are accepted and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents import pointer
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.model.json_value import name_type
from hyperfleet.model.kind import Kind
from hyperfleet.services.resources import MAX_LABELS

MAX_NAME: Final = 63  # the length of a DNS label: names are used in host names
NAME_PATTERN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
MAX_FORCE_REASON: Final = 1024  # characters; a sentence or two
MAX_VERSION: Final = 2**53 - 1  # the largest integer that every JSON library reads exactly
MAX_LABEL_PREFIX: Final = 253  # the limits of Kubernetes labels
MAX_LABEL: Final = 63
LABEL_PATTERN: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
LABEL_PREFIX_PATTERN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_MAX_SUGGESTIONS: Final = 5  # in one body; each takes a tenth of a millisecond
_SERVER_FIELDS: Final = ("href", "status")  # set by the server only
_KEYS: Final = ("name", "spec", "labels", "metadata", "type", "kind", "id", "generation", *_SERVER_FIELDS)


class NewResource(Struct, frozen=True):
    """The body of a new resource; valid only without errors."""

    name: str
    spec: dict[str, Any]
    labels: dict[str, Any]
    errors: tuple[BodyProblem, ...] = ()


class ChangedResource(Struct, frozen=True):
    """The body of an edit; UNSET: not given."""

    name: str | UnsetType = UNSET
    spec: dict[str, Any] | UnsetType = UNSET
    labels: dict[str, Any] | UnsetType | None = UNSET  # in a merge patch, null removes one or all
    generation: int | UnsetType = UNSET
    errors: tuple[BodyProblem, ...] = ()


def read_creation(body: object, kind: Kind) -> NewResource:
    """Read a new resource: `name` and `spec` are required, `id` and `generation` are ignored."""
    reader = _Reader()
    fields = reader.own_fields(body)
    reader.check_kind(fields, kind)
    if "name" not in fields:
        reader.error("/name", "MissingField", "name is required")
    name, spec, labels = reader.name(fields), reader.spec(fields, is_required=True), reader.labels(fields)
    return NewResource(name or "", spec or {}, labels or {}, reader.found)


def read_replacement(body: object, kind: Kind, id_: str) -> ChangedResource:
    """Read a replacement: `spec` is required; without labels, all labels are removed."""
    reader = _Reader()
    fields = reader.own_fields(body)
    reader.check_identity(fields, kind, id_)
    spec, labels = reader.spec(fields, is_required=True), reader.labels(fields)
    return ChangedResource(reader.name(fields), spec, labels or {}, reader.generation(fields), reader.found)


def read_merge_patch(body: object, kind: Kind, id_: str) -> ChangedResource:
    """Read a merge patch of a resource."""
    reader = _Reader()
    fields = reader.own_fields(body)
    reader.check_identity(fields, kind, id_)
    spec = reader.spec(fields, is_required=False)
    labels = None if reader.has_null_labels(fields) else reader.labels(fields, is_merge=True)
    return ChangedResource(reader.name(fields), spec, labels, reader.generation(fields), reader.found)


def read_force_reason(body: object) -> tuple[str, tuple[BodyProblem, ...]]:
    """Read the reason for a forced removal."""
    reader = _Reader()
    fields = reader.own_fields(body, ("reason",))
    reason = fields.get("reason")
    if isinstance(reason, str) and 1 <= len(reason.strip()) <= len(reason) <= MAX_FORCE_REASON:
        return reason, reader.found
    if isinstance(body, dict):
        message = f"reason is required: a text of 1 to {MAX_FORCE_REASON} characters, kept in the history"
        reader.error("/reason", "WrongType" if "reason" in fields else "MissingField", message)
    return "", reader.found


def read_rollback(body: object) -> tuple[int, tuple[BodyProblem, ...]]:
    """Read which version a rollback goes back to."""
    reader = _Reader()
    fields = reader.own_fields(body, ("version",))
    version = fields.get("version")
    if isinstance(version, float) and version.is_integer():  # as for a generation
        version = int(version)
    if isinstance(version, int) and not isinstance(version, bool) and 1 <= version <= MAX_VERSION:
        return version, reader.found
    if isinstance(body, dict):
        message = f"version is required: the number of a version, from 1 to {MAX_VERSION}"
        reader.error("/version", "WrongType" if "version" in fields else "MissingField", message)
    return 0, reader.found


class _Reader:
    """Reads one body and collects its errors."""

    def __init__(self) -> None:
        self._errors: list[BodyProblem] = []

    @property
    def found(self) -> tuple[BodyProblem, ...]:
        return tuple(self._errors)

    def error(self, at: str, code: str, message: str) -> None:
        self._errors.append(BodyProblem(at, code, message))

    def own_fields(self, body: object, known: tuple[str, ...] = _KEYS) -> Mapping[str, Any]:
        """Return the fields of a body; an unknown field is an error."""
        if not isinstance(body, dict):
            self.error("", "WrongType", f"the body must be an object, not {name_type(body)}")
            return {}
        for number, key in enumerate(sorted(body.keys() - set(known))):
            hint = suggest(key[:64], known) if number < _MAX_SUGGESTIONS else ""
            self.error(pointer.join("", key), "UnknownField", f"{quote(key)} is not a field here{hint}")
        return body

    def check_kind(self, fields: Mapping[str, Any], kind: Kind) -> None:
        for key in ("type", "kind"):
            if fields.get(key) not in (None, kind.name):
                self.error(f"/{key}", "NotAllowed", f"must be {kind.name} here")

    def check_identity(self, fields: Mapping[str, Any], kind: Kind, id_: str) -> None:
        self.check_kind(fields, kind)
        if fields.get("id") not in (None, id_):
            self.error("/id", "Immutable", f"the path has the id {id_}")

    def name(self, fields: Mapping[str, Any]) -> str | UnsetType:
        name = fields.get("name")
        if name is None and "name" not in fields:
            return UNSET
        if not isinstance(name, str):
            self.error("/name", "WrongType", f"name must be a string, not {name_type(name)}")
        elif len(name) > MAX_NAME:
            self.error("/name", "TooLong", f"name has {len(name)} characters; at most {MAX_NAME} are allowed")
        elif not NAME_PATTERN.fullmatch(name):
            message = (
                f"{quote(name)} must be a DNS label: lower-case letters, digits and -, not beginning or ending with -"
            )
            self.error("/name", "BadFormat", message)
        else:
            return name
        return UNSET

    def spec(self, fields: Mapping[str, Any], *, is_required: bool) -> dict[str, Any] | UnsetType:
        if "spec" not in fields:
            if is_required:
                self.error("/spec", "MissingField", "spec is required")
            return UNSET
        spec = fields["spec"]
        if isinstance(spec, dict):
            return spec
        self.error("/spec", "WrongType", f"spec must be an object, not {name_type(spec)}")
        return UNSET

    def generation(self, fields: Mapping[str, Any]) -> int | UnsetType:
        value = fields.get("generation", UNSET)
        if value is UNSET or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        if isinstance(value, float) and value.is_integer():  # JSON Schema and many programs treat 1.0 as an integer
            return int(value)
        self.error("/generation", "WrongType", f"generation must be an integer, not {name_type(value)}")
        return UNSET

    def has_null_labels(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the labels are null wherever they are given."""
        metadata = fields.get("metadata")
        given = [each["labels"] for each in (fields, metadata) if isinstance(each, dict) and "labels" in each]
        return bool(given) and all(labels is None for labels in given)

    def labels(self, fields: Mapping[str, Any], *, is_merge: bool = False) -> dict[str, Any] | UnsetType:
        """Read the labels, which may be at the top level or in `metadata`."""
        metadata = fields.get("metadata", {})
        if not isinstance(metadata, dict):
            self.error("/metadata", "WrongType", f"metadata must be an object, not {name_type(metadata)}")
            metadata = {}
        at_top, inside = fields.get("labels", UNSET), metadata.get("labels", UNSET)
        if at_top is not UNSET and inside is not UNSET and at_top != inside:
            self.error("/labels", "Contradiction", "labels and metadata/labels differ; give them once")
        if at_top is not UNSET:
            return self._check_labels(at_top, "/labels", is_merge=is_merge)
        return UNSET if inside is UNSET else self._check_labels(inside, "/metadata/labels", is_merge=is_merge)

    def _check_labels(self, labels: object, at: str, *, is_merge: bool) -> dict[str, Any] | UnsetType:
        if not isinstance(labels, dict):
            self.error(at, "WrongType", f"labels must be an object of strings, not {name_type(labels)}")
            return UNSET
        if len(labels) > MAX_LABELS:
            self.error(at, "TooMany", f"{len(labels)} labels; at most {MAX_LABELS} are allowed")
            return UNSET
        for key, value in labels.items():
            self._check_label(key, value, pointer.join(at, key), is_merge=is_merge)
        return labels

    def _check_label(self, key: str, value: object, at: str, *, is_merge: bool) -> None:
        if not is_label_key(key):
            message = (
                f"the key {quote(key)} must have 1 to {MAX_LABEL} letters, digits and -_. (the first and the last "
                "a letter or digit), after an optional DNS name and /"
            )
            self.error(at, "BadFormat", message)
        if is_merge and value is None:
            return
        if not isinstance(value, str):
            self.error(at, "WrongType", f"the value of a label must be a string, not {name_type(value)}")
        elif not is_label_value(value):
            message = f"the value must have at most {MAX_LABEL} letters, digits and -_."
            self.error(at, "BadFormat", message)


def is_label_key(key: str) -> bool:
    """Return whether a text is a valid label key of Kubernetes."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= MAX_LABEL_PREFIX and LABEL_PREFIX_PATTERN.fullmatch(prefix)):
        return False
    return len(name) <= MAX_LABEL and LABEL_PATTERN.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Return whether a text is a valid label value of Kubernetes."""
    return not value or (len(value) <= MAX_LABEL and LABEL_PATTERN.fullmatch(value) is not None)
