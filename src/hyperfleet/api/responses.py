"""Writes responses: entity tags, 304, compression, preferences.

A stored answer is sent as it is. Its entity tag is its revision, with the content encoding as a suffix, because an
entity tag identifies bytes.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import zstandard
from starlette.requests import Request
from starlette.responses import Response

from hyperfleet.api.problems import Problem, Refused
from hyperfleet.api.requests import known_tags, wanted_tags

# Bytes. One resource is smaller: compressing it would cost four times as much as reading it.
MIN_COMPRESSED: Final = 8 * 1024
GZIP: Final = 16 + zlib.MAX_WBITS  # zlib's number for a gzip header

JSON: Final = "application/json"
TEXT: Final = "text/plain"

_NO_STORE: Final = "no-store"
_REVALIDATE: Final = "no-cache"


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, 1, GZIP)


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(body)


_COMPRESSORS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"zstd": _zstd, "gzip": _gzip}  # the preferred one first


def answer_stored(request: Request, body: bytes, revision: int) -> Response:
    """Answer a GET with a stored answer, or 304 if the client has it."""
    return _answer_read(request, body, str(revision))


def answer_made(request: Request, shape: msgspec.Struct) -> Response:
    """Answer a GET with a computed answer."""
    return answer_json(request, msgspec.json.encode(shape))


def answer_versioned(request: Request, shape: msgspec.Struct, version: int) -> Response:
    """Answer a GET with something that has a version and other parts that change without it."""
    body = msgspec.json.encode(shape)
    return _answer_read(request, body, _versioned_tag(version, body))


def answer_new_version(request: Request, shape: msgspec.Struct, version: int) -> Response:
    """Answer a write with the new version, with the entity tag that a GET would send."""
    body = msgspec.json.encode(shape)
    return _send(request, 200, body, _versioned_tag(version, body), {"Cache-Control": _NO_STORE})


def answer_json(request: Request, body: bytes) -> Response:
    """Answer a GET with JSON without a revision; its entity tag is a hash of its bytes."""
    return _answer_read(request, body, _tag_of(body))


def answer_in(request: Request, body: bytes, media_type: str) -> Response:
    """Answer a GET with a computed answer in another media type."""
    return _answer_read(request, body, _tag_of(body), media_type, "Accept, Accept-Encoding")


def prefers_text(request: Request) -> bool:
    """Return whether a client prefers plain text to JSON."""
    return prefers(request, TEXT)


def prefers(request: Request, media_type: str) -> bool:
    """Return whether a client prefers a media type to JSON."""
    weights = _read_weights(",".join(request.headers.getlist("accept")))
    other = weights.get(media_type, weights.get(f"{media_type.partition('/')[0]}/*", 0.0))
    return other > weights.get("application/json", weights.get("application/*", weights.get("*/*", 0.0)))


def accepts_gzip(request: Request) -> bool:
    """Return whether a client accepts gzip."""
    weights = _read_weights(request.headers.get("accept-encoding", ""))
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def answer_written(
    request: Request, status: int, body: bytes, revision: int = 0, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer a write with the new state; `revision` 0: the resource is gone."""
    tag = str(revision) if revision else ""
    return _send(request, status, body, tag, {"Cache-Control": _NO_STORE, **(headers or {})})


def preferred_return(request: Request) -> str:
    """Return `minimal` or `representation`, if a client prefers one of them (RFC 7240)."""
    preferences = ",".join(request.headers.getlist("prefer")).split(",")
    for preference in preferences:
        name, _, value = preference.partition(";")[0].replace(" ", "").lower().partition("=")
        if name == "return" and value in ("minimal", "representation"):
            return value
    return ""


def _answer_read(
    request: Request, body: bytes, tag: str, media_type: str = JSON, vary: str = "Accept-Encoding"
) -> Response:
    wanted, known = wanted_tags(request), known_tags(request)
    if wanted is not None and tag not in wanted:
        raise Refused(Problem("PreconditionFailed", f"it has changed; its ETag is now {_entity_tag(tag, '')}"))
    headers = {"Cache-Control": _REVALIDATE, "Vary": vary}
    if known is None or tag in known:
        encoding = _choose_encoding(request, body)
        return Response(status_code=304, headers={"ETag": _entity_tag(tag, encoding), **headers})
    return _send(request, 200, body, tag, headers, media_type)


def _versioned_tag(version: int, body: bytes) -> str:
    """Return an entity tag of these bytes that begins with the version, which `If-Match` is compared with."""
    return f"{version}.{_tag_of(body)}"


def _tag_of(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def _send(
    request: Request, status: int, body: bytes, tag: str, headers: Mapping[str, str], media_type: str = JSON
) -> Response:
    encoding = _choose_encoding(request, body)
    sent = {"Vary": "Accept-Encoding", **headers}
    if tag:
        sent["ETag"] = _entity_tag(tag, encoding)
    if encoding:
        sent["Content-Encoding"] = encoding
        body = _COMPRESSORS[encoding](body)
    return Response(body, status, sent, media_type)


def _entity_tag(tag: str, encoding: str) -> str:
    return f'"{tag}-{encoding}"' if encoding else f'"{tag}"'


def _choose_encoding(request: Request, body: bytes) -> str:
    """Return the preferred content encoding; empty for short bodies."""
    accepted = request.headers.get("accept-encoding")
    if accepted is None or len(body) < MIN_COMPRESSED:
        return ""
    weights = _read_weights(accepted)
    anything = weights.get("*", 0.0)
    best = max(_COMPRESSORS, key=lambda name: weights.get(name, anything))  # among equals, the first
    weight = weights.get(best, anything)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else ""


def _read_weights(accepted: str) -> dict[str, float]:
    """Read `gzip;q=0.5, zstd`; an invalid weight counts as 0."""
    weights = {}
    for item in accepted.split(","):
        name, _, parameter = item.partition(";")
        key, _, value = parameter.partition("=")
        weight = value.strip() if key.strip().lower() == "q" else "1"
        weights[name.strip().lower()] = float(weight) if weight.replace(".", "", 1).isdecimal() else 0.0
    return weights
