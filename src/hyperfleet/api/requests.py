"""Reads a request: its target, its body within limits, its preconditions, its idempotency key.

Handlers call this and get values; any error ends the request as `Refused`. `resource_bodies` and `report_bodies`
interpret the body.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from gzip import GzipFile
from typing import Final

import msgspec
import zstandard
from starlette.requests import Request

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.context import RequestLimits
from hyperfleet.api.json_bodies import parse_json
from hyperfleet.api.problems import Problem, Refused, from_body, from_header, from_query, from_refusal
from hyperfleet.documents.wording import quote
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME
from hyperfleet.services.callers import Caller
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.results import Preconditions, Target, not_found
from hyperfleet.services.time_slices import TimeSlices

JSON: Final = ("application/json",)
ANY: Final = ("*/*",)  # of the API of the Go clients
MERGE_PATCH: Final = ("application/merge-patch+json", "application/json")
ENCODINGS: Final = "gzip, zstd"

_MAX_KEY: Final = 255  # characters of an idempotency key; a UUID has 36
_MAX_WINDOW: Final = 8 * 1024 * 1024  # bytes of memory for a zstd frame: what every decoder must support
_INFLATED: Final = 512 * 1024  # bytes decompressed at a time, in a millisecond or two; other requests run in between
# Each piece of a body costs 0.2 ms, however small. Networks send pieces of more than a kilobyte.
_FREE_PIECES: Final = 256
_MIN_PIECE: Final = 1_024  # bytes on average

ID: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,127}")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_ENTITY_TAG: Final = re.compile(r'\s*(?P<weak>W/)?"(?P<value>[\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')
_ENCODED: Final = re.compile("-(gzip|zstd)$")
_REVISION: Final = re.compile(r"[0-9]{1,19}")


# ── the target ───────────────────────────────────────────────────────────────────────────────────────────────────────


def target_of(request: Request, kind: Kind) -> Target:
    """Return the resource that a path names."""
    return checked_target(Target(kind, request.path_params["id"], request.path_params.get("parent_id")))


def parent_of(request: Request, kinds: Kinds, kind: Kind) -> str | None:
    """Return the id of the parent that a path names, for a resource that has no id yet."""
    above = kinds.get(kind.parent) if kind.parent else None
    return checked_target(Target(above, request.path_params["parent_id"])).id if above else None


def is_id(text: str) -> bool:
    """Return whether a text is a valid id."""
    return ID.fullmatch(text) is not None


def adapter_of(request: Request) -> str:
    """Return the adapter that a path names; refuse an invalid name."""
    adapter = str(request.path_params["adapter"])
    if len(adapter) > MAX_ADAPTER_NAME or not ADAPTER_PATTERN.fullmatch(adapter):
        rule = f"1 to {MAX_ADAPTER_NAME} letters, digits and -_., the first and the last a letter or digit"
        raise Refused(Problem("InvalidRequest", f"{quote(adapter)} is not a valid adapter name: it must have {rule}"))
    return adapter


def checked_target(target: Target) -> Target:
    """Return the target if its ids are valid; others are not found, without a query to the store."""
    if is_id(target.id) and is_id(target.parent_id or target.id):
        return target
    raise Refused(from_refusal(not_found(target)))


# ── query parameters ─────────────────────────────────────────────────────────────────────────────────────────────────


def parameters_of(request: Request) -> Mapping[str, Sequence[str]]:
    """Return the values of every query parameter."""
    return {name: request.query_params.getlist(name) for name in request.query_params}


def refuse_parameters(request: Request, known: Sequence[str] = ()) -> None:
    """Refuse unknown query parameters: a misspelt one must not be ignored."""
    given = Parameters(parameters_of(request))
    given.refuse_unknown(known)
    if given.errors:
        raise Refused(from_query(given.errors))


# ── the body ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def read_json(
    request: Request, limits: RequestLimits, media_types: tuple[str, ...] = JSON, most: int = 0
) -> object:
    """Read the body as JSON, with limits on media type, size after decompression (`most`), depth and values."""
    return parse_json(await read_body(request, limits, media_types, most), limits)


async def read_body(
    request: Request, limits: RequestLimits, media_types: tuple[str, ...] = JSON, most: int = 0
) -> bytes:
    """Read the body and undo its content encoding."""
    _check_media_type(request, media_types)
    most = most or limits.body_bytes
    raw = await _read_bytes(request, most)
    if (
        raw and media_types != ANY and not request.headers.get("content-type")
    ):  # a web page may send a body without one to any site
        message = f"the body has no Content-Type; send {' or '.join(media_types)}"
        raise Refused(Problem("UnsupportedMediaType", message))
    return await _inflate(request, raw, most)


def _check_media_type(request: Request, media_types: tuple[str, ...]) -> None:
    """Refuse a body of another media type."""
    given = request.headers.get("content-type", "")
    media_type, _, parameters = given.partition(";")
    if media_types != ANY and media_type.strip().lower() not in ("", *media_types):
        message = f"the body is {media_type.strip()[:80]}; send {' or '.join(media_types)}"
        raise Refused(Problem("UnsupportedMediaType", message))
    charset = parameters.partition("charset=")[2].strip(' "').lower()
    if charset not in ("", "utf-8", "utf8"):
        raise Refused(Problem("UnsupportedMediaType", "JSON must be UTF-8"))


async def _read_bytes(request: Request, most: int) -> bytes:
    """Read no more than allowed, whatever the announced length, and in no more pieces than a network makes of it."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > most:
        raise Refused(_too_large(most, is_read=False))
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise Refused(_too_large(most, is_read=False))
        chunks.append(chunk)
        if len(chunks) > _FREE_PIECES + size // _MIN_PIECE:
            message = f"the body comes in too many pieces; send at least {_MIN_PIECE} bytes at a time"
            raise Refused(Problem("InvalidRequest", message, headers={"Connection": "close"}))
    return b"".join(chunks)


async def _inflate(request: Request, raw: bytes, most: int) -> bytes:
    """Decompress the body; the limit applies to the result, so that a small bomb cannot grow."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return raw
    read, pieces, size, slices = _inflater(encoding, raw), [], 0, TimeSlices()
    try:
        while size <= most and (piece := read(_INFLATED)):
            pieces.append(piece)
            size += len(piece)
            await slices.yield_if_due()
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        problem = BodyProblem("", "BadEncoding", f"the body is not {encoding}, although its Content-Encoding says so")
        raise Refused(from_body((problem,))) from None
    if size > most:
        raise Refused(_too_large(most))
    return b"".join(pieces)


def _inflater(encoding: str, raw: bytes) -> Callable[[int], bytes]:
    """Return a function that reads up to so many bytes of the decompressed body."""
    match encoding:
        case "gzip" | "x-gzip":
            return GzipFile(fileobj=io.BytesIO(raw)).read
        case "zstd":
            decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
            return decompressor.stream_reader(raw, read_across_frames=True).read
    message = f"the content encoding is {encoding[:80]}; supported are {ENCODINGS}"
    raise Refused(Problem("UnsupportedMediaType", message, headers={"Accept-Encoding": ENCODINGS}))


def _too_large(most: int, *, is_read: bool = True) -> Problem:
    """Say that a body is too large; if it is not read to its end, the server closes the connection after the answer."""
    headers = {} if is_read else {"Connection": "close"}
    return Problem("BodyTooLarge", f"the body has more than {most} bytes", headers=headers)


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def preconditions_of(request: Request) -> Preconditions:
    """Return the revisions that a write applies to."""
    if "if-none-match" in request.headers:
        if request.headers["if-none-match"].strip() != "*":
            raise Refused(from_header("If-None-Match", 'entity tags are only for GET; for a write, use If-Match: "12"'))
        return Preconditions(is_absent=True)  # a missing resource is 404 in any case
    tags = wanted_tags(request)
    return Preconditions() if tags is None else Preconditions(revisions=_revisions(tags))


def replaced_versions(request: Request) -> frozenset[int] | None:
    """Return the versions that a write may replace, from the required `If-Match`; None: any version."""
    if "if-match" not in request.headers:
        message = 'send the ETag of what you read as If-Match, or its version: If-Match: "3"'
        raise Refused(Problem("PreconditionRequired", message))
    tags = wanted_tags(request)
    return None if tags is None else _revisions(frozenset(tag.partition(".")[0] for tag in tags))


def wanted_tags(request: Request) -> frozenset[str] | None:
    """Return the entity tags of `If-Match`; None: any."""
    value = ",".join(request.headers.getlist("if-match"))
    if not value or value.strip() == "*":
        return None
    return frozenset(_bare(tag) for tag, is_weak in _read_tags("If-Match", value) if not is_weak)


def known_tags(request: Request) -> frozenset[str] | None:
    """Return the entity tags of `If-None-Match`, without their encoding; None: any."""
    value = ",".join(request.headers.getlist("if-none-match"))
    if value.strip() == "*":
        return None
    return frozenset(_bare(tag) for tag, _ in _read_tags("If-None-Match", value))


def _bare(tag: str) -> str:
    """Return an entity tag without the suffix of its encoding."""
    return _ENCODED.sub("", tag)


def _read_tags(header: str, value: str) -> list[tuple[str, bool]]:
    """Parse a list of entity tags: each with whether it is weak."""
    tags, at = [], 0
    while at < len(value):
        match = _ENTITY_TAG.match(value, at)
        if match is None:
            raise Refused(from_header(header, 'must be * or a list of entity tags in quotes, such as "12"'))
        tags.append((match["value"], match["weak"] is not None))
        at = match.end()
    return tags


def _revisions(tags: frozenset[str]) -> frozenset[int]:
    return frozenset(int(tag) for tag in tags if _REVISION.fullmatch(tag))


def idempotency_key_of(request: Request, caller: Caller) -> str:
    """Return a digest of idempotency key, caller and path; empty if there is no key."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return ""
    if not _PRINTABLE.fullmatch(key) or len(key) > _MAX_KEY:
        raise Refused(from_header("Idempotency-Key", f"must be 1 to {_MAX_KEY} printable ASCII characters"))
    tenants = caller.scope.tenants
    owner = (caller.name, None if tenants is None else sorted(tenants))
    return digest_of(
        (*owner, request.scope["path"], key)
    )  # a digest, because many tenants would be too long for an index


def digest_of(body: object) -> str:
    """Return a digest of a body that does not depend on the order of keys."""
    return hashlib.blake2b(msgspec.json.encode(body, order="deterministic"), digest_size=16).hexdigest()
