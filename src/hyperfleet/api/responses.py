"""Writing a response: entity tags, 304, compression, preferences.

A stored answer is sent as it is. Its entity tag is its revision, with the content encoding as a suffix, because an
entity tag names bytes.
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

# Bytes; one resource has fewer: to compress it would cost four times what it costs to read it.
WORTHWHILE: Final = 8 * 1024
GZIP: Final = 16 + zlib.MAX_WBITS  # zlib's way to say: with a gzip header

JSON: Final = "application/json"
TEXT: Final = "text/plain"

_NO_STORE: Final = "no-store"
_REVALIDATE: Final = "no-cache"


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, 1, GZIP)


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(body)


_COMPRESSORS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"zstd": _zstd, "gzip": _gzip}  # the better one first


def answer_stored(request: Request, body: bytes, revision: int) -> Response:
    """Answer a GET with a stored answer, or with 304 if the reader has it."""
    return _answer_read(request, body, str(revision))


def answer_made(request: Request, shape: msgspec.Struct) -> Response:
    """Answer a GET with something made for it."""
    return answer_json(request, msgspec.json.encode(shape))


def answer_versioned(request: Request, shape: msgspec.Struct, version: int) -> Response:
    """Answer a GET with something that has a version and parts that move without it."""
    body = msgspec.json.encode(shape)
    return _answer_read(request, body, _versioned_tag(version, body))


def answer_new_version(request: Request, shape: msgspec.Struct, version: int) -> Response:
    """Answer a write with the version that stands there now, under the entity tag that a GET would give it."""
    body = msgspec.json.encode(shape)
    return _send(request, 200, body, _versioned_tag(version, body), {"Cache-Control": _NO_STORE})


def answer_json(request: Request, body: bytes) -> Response:
    """Answer a GET with JSON that has no revision; its entity tag is made from its bytes."""
    return _answer_read(request, body, _tag_of(body))


def answer_in(request: Request, body: bytes, media_type: str) -> Response:
    """Answer a GET with something made for it, in the media type that the reader prefers."""
    return _answer_read(request, body, _tag_of(body), media_type, "Accept, Accept-Encoding")


def prefers_text(request: Request) -> bool:
    """Tell whether a reader wants plain text rather than JSON."""
    return prefers(request, TEXT)


def prefers(request: Request, media_type: str) -> bool:
    """Tell whether a reader wants a media type rather than JSON."""
    weights = _read_weights(",".join(request.headers.getlist("accept")))
    other = weights.get(media_type, weights.get(f"{media_type.partition('/')[0]}/*", 0.0))
    return other > weights.get("application/json", weights.get("application/*", weights.get("*/*", 0.0)))


def accepts_gzip(request: Request) -> bool:
    """Tell whether a reader takes gzip."""
    weights = _read_weights(request.headers.get("accept-encoding", ""))
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def answer_written(
    request: Request, status: int, body: bytes, revision: int = 0, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer a write with what stands there now; `revision` 0: it does not stand there any more."""
    tag = str(revision) if revision else ""
    return _send(request, status, body, tag, {"Cache-Control": _NO_STORE, **(headers or {})})


def preferred_return(request: Request) -> str:
    """Return `minimal` or `representation`, if a writer says which answer it prefers (RFC 7240)."""
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
        raise Refused(Problem("PreconditionFailed", f"it has changed: its ETag is now {_entity_tag(tag, '')}"))
    headers = {"Cache-Control": _REVALIDATE, "Vary": vary}
    if known is None or tag in known:
        encoding = _choose_encoding(request, body)
        return Response(status_code=304, headers={"ETag": _entity_tag(tag, encoding), **headers})
    return _send(request, 200, body, tag, headers, media_type)


def _versioned_tag(version: int, body: bytes) -> str:
    """Name these bytes, beginning with the version, which is what `If-Match` of a write is compared with."""
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
    """Return the content encoding that the reader likes best; none for what is short."""
    accepted = request.headers.get("accept-encoding")
    if accepted is None or len(body) < WORTHWHILE:
        return ""
    weights = _read_weights(accepted)
    anything = weights.get("*", 0.0)
    best = max(_COMPRESSORS, key=lambda name: weights.get(name, anything))  # of equals, the first
    weight = weights.get(best, anything)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else ""


def _read_weights(accepted: str) -> dict[str, float]:
    """Read `gzip;q=0.5, zstd`; what is not a weight counts as nothing."""
    weights = {}
    for item in accepted.split(","):
        name, _, parameter = item.partition(";")
        key, _, value = parameter.partition("=")
        weight = value.strip() if key.strip().lower() == "q" else "1"
        weights[name.strip().lower()] = float(weight) if weight.replace(".", "", 1).isdecimal() else 0.0
    return weights
