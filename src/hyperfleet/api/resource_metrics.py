"""The conditions of single resources as metrics: `hyperfleet_cluster_status_condition` and its like.

Off unless `metrics.perResource` is set: 10,000 clusters with six conditions are 180,000 lines, 20 MB uncompressed. They
are written in small slices, between other requests, and sent as they are written.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from time import monotonic
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from hyperfleet.api.exposition import ExpositionFormat, escape, head_of
from hyperfleet.api.responses import GZIP, accepts_gzip
from hyperfleet.errors import StoreError
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind, Kinds
from hyperfleet.ports import Query, Scope, Store, StoredAnswer
from hyperfleet.services.instruments import MetricFamily
from hyperfleet.services.time_slices import TimeSlices

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 200  # resources per read; a few milliseconds
_WARNING_INTERVAL: Final = 600.0  # seconds: scrapes come every few seconds, one warning in ten minutes is enough
_STATUSES: Final = (TRUE, FALSE, UNKNOWN)


def _family_of(kind: Kind) -> MetricFamily:
    noun = kind.name.lower()
    help_ = f"A state set: 1 for the status of a condition of a {noun}, 0 for the two others."
    return MetricFamily(f"hyperfleet_{noun}_status_condition", "gauge", help_, (noun, "name", "condition", "status"))


STATE_SETS: Final = tuple(_family_of(kind) for kind in (CLUSTER, NODE_POOL))
CUT_OFF: Final = MetricFamily(
    "hyperfleet_resource_metrics_cut_off",
    "gauge",
    "1 if some resources of a kind are missing: there are more than metrics.maxResources, or the store was down.",
    ("kind",),
)


class _Condition(Struct, gc=False):
    type: str
    status: str


class _Status(Struct, gc=False):
    conditions: tuple[_Condition, ...]


class _ResourceView(Struct, gc=False):
    """The parts of a stored answer that are read."""

    id: str
    name: str
    status: _Status


_decode: Final = msgspec.json.Decoder(_ResourceView).decode


class ResourceMetrics:
    """Writes the lines of single resources."""

    def __init__(self, store: Store, kinds: Kinds, most: int) -> None:
        """Read at most `most` resources of each kind from `store`."""
        self._store = store
        self._kinds = kinds
        self._most = most
        self._warned_at = -_WARNING_INTERVAL

    def stream(self, request: Request, text: bytes, form: ExpositionFormat, scope: Scope) -> Response:
        """Answer `text`, then the lines of all resources of a scope, then the end of the format."""
        headers = {"Cache-Control": "no-store", "Vary": "Accept, Accept-Encoding"}
        pieces = self._write(text, form.end, scope)
        if accepts_gzip(request):
            headers["Content-Encoding"] = "gzip"
            pieces = _compress(pieces)
        return _Stream(pieces, headers, form.media_type)

    async def _write(self, text: bytes, end: bytes, scope: Scope) -> AsyncIterator[bytes]:
        yield text
        cut_off = []
        for kind in self._kinds:
            family, seen = _family_of(kind), 0
            yield head_of(family)
            try:
                async for page in self._read(kind, scope):
                    seen += len(page)
                    yield await _write_lines(family, page[: len(page) - max(seen - self._most, 0)])
            except StoreError as error:
                _LOG.warning("metrics without some resources: %s", error)
                seen = self._most + 1
            cut_off.append((kind.name, seen > self._most))
        yield head_of(CUT_OFF)
        yield "".join([f'{CUT_OFF.name}{{kind="{kind}"}} {int(is_cut)}.0\n' for kind, is_cut in cut_off]).encode()
        self._warn([kind for kind, is_cut in cut_off if is_cut])
        yield end

    async def _read(self, kind: Kind, scope: Scope) -> AsyncIterator[Sequence[StoredAnswer]]:
        """Yield the resources of a kind, a page at a time, until there are more than are shown."""
        query, seen = Query(kind.name, scope, limit=_PAGE), 0
        while seen <= self._most and (page := await self._store.find(query)):
            yield page
            seen += len(page)
            query = replace(query, after=(page[-1].key, page[-1].id))

    def _warn(self, kinds: Sequence[str]) -> None:
        if kinds and monotonic() - self._warned_at >= _WARNING_INTERVAL:
            self._warned_at = monotonic()
            _LOG.warning(
                "metrics show at most %s resources of a kind; some are left out of: %s", self._most, ", ".join(kinds)
            )


class _Stream(Response):
    """A streaming response. Starlette's own imports 130 ms worth of modules for the first one."""

    def __init__(self, pieces: AsyncIterator[bytes], headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(None, 200, headers, media_type)
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _write_lines(family: MetricFamily, page: Sequence[StoredAnswer]) -> bytes:
    """Write the lines of some resources; yield to other tasks in between."""
    slices, lines, noun = TimeSlices(), [], family.labels[0]
    for answer in page:
        view = _decode(answer.body)
        begin = f'{family.name}{{{noun}="{escape(view.id)}",name="{escape(view.name)}",condition="'
        for condition in view.status.conditions:
            middle = f'{begin}{escape(condition.type)}",status="'
            lines += [f'{middle}{status}"}} {int(status == condition.status)}.0\n' for status in _STATUSES]
        await slices.yield_if_due()
    return "".join(lines).encode()


async def _compress(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compress each piece, in a thread, because zlib releases the interpreter lock."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, GZIP)
    async for piece in pieces:
        if packed := await asyncio.to_thread(compressor.compress, piece):
            yield packed
    yield compressor.flush()
