"""Answers of an API server: which error an HTTP status is, and objects as we hand them out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.errors import (
    KindUnknown,
    KubernetesError,
    KubernetesForbidden,
    KubernetesUnreachable,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    VersionExpired,
)
from hyperfleet.kubernetes.port import KubernetesObject, ObjectKind

_LONGEST_MESSAGE: Final = 2_000  # characters; some messages quote the whole object
# The API server answers with 500 to a manifest with a field that its kind does not have, or a value of the wrong type.
_NOT_TYPED: Final = "failed to create typed patch object"
_ERRORS: Final[Mapping[int, type[KubernetesError]]] = {
    400: ObjectInvalid,
    401: KubernetesForbidden,
    403: KubernetesForbidden,
    404: ObjectNotFound,
    405: ObjectInvalid,
    409: ObjectConflict,
    410: VersionExpired,
    413: ObjectInvalid,
    415: ObjectInvalid,
    422: ObjectInvalid,
}


class _Details(Struct, frozen=True, rename="camel"):
    name: str = ""
    retry_after_seconds: int = 0


class Status(Struct, frozen=True):
    """What an API server answers when it does not do what was asked."""

    code: int = 0
    message: str = ""
    details: _Details | None = None


def read_error(code: int, body: bytes, headers: Mapping[str, str]) -> KubernetesError:
    """Return the error that an answer is."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status(message=body[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip())
    return make_error(code, status, headers.get("Retry-After", ""))


def make_error(code: int, status: Status, retry_after: str = "") -> KubernetesError:
    """Return the error of a status."""
    details = status.details or _Details()
    message = status.message[:_LONGEST_MESSAGE] or f"the API server answers with {code}"
    if code == 500 and status.message.startswith(_NOT_TYPED):
        return ObjectInvalid(message, status=code)
    if code == 429 or code >= 500:
        seconds = int(retry_after) if retry_after.isdecimal() else details.retry_after_seconds
        return KubernetesUnreachable(message, status=code, retry_after=seconds or None)
    if code == 404 and not details.name:  # an object that is missing is named, a path that is not served is not
        return KindUnknown(message, status=code)
    return _ERRORS.get(code, KubernetesError)(message, status=code)


def read_json(body: bytes) -> dict[str, Any]:
    """Read an answer that must be a JSON object."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise KubernetesUnreachable("the answer is not JSON: is this an API server?") from error


def clean(found: KubernetesObject, kind: ObjectKind) -> KubernetesObject:
    """Take managed fields out, and put the kind in: the items of a list have none."""
    found.get("metadata", {}).pop("managedFields", None)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **found}
